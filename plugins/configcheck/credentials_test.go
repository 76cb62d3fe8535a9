// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func TestCredentialNotes(t *testing.T) {
	const open = "begins with http://, so what is read from bearerTokenFile and valueFile is sent there without encryption"
	tests := []struct {
		name       string
		prometheus config.NodeLoadPrometheus
		want       []string
	}{
		{name: "nothing to read", prometheus: config.NodeLoadPrometheus{
			Endpoints: []string{"http://a:9090"}, Headers: []config.NodeLoadHeader{{Name: "X-Scope-OrgID", Value: "tenant"}},
		}},
		{
			name: "a token", prometheus: config.NodeLoadPrometheus{
				Endpoints: []string{"https://a", "HTTP://b:9090"}, BearerTokenFile: "/token",
			},
			want: []string{"note: profiles[2].pluginConfig[1].args.prometheus.endpoints[1]: " + open},
		},
		{
			name: "a header in a file", prometheus: config.NodeLoadPrometheus{
				Endpoints: []string{"http://a:9090", "http://b:9090"}, Headers: []config.NodeLoadHeader{{Name: "Cookie", ValueFile: "/cookie"}},
			},
			want: []string{
				"note: profiles[2].pluginConfig[1].args.prometheus.endpoints[0]: " + open,
				"note: profiles[2].pluginConfig[1].args.prometheus.endpoints[1]: " + open,
			},
		},
		{name: "a proxy on this machine", prometheus: config.NodeLoadPrometheus{
			Endpoints: []string{"http://localhost:9090", "http://127.0.0.1:9090", "http://[::1]:9090"}, BearerTokenFile: "/token",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &schedulerconfig.KubeSchedulerProfile{PluginConfig: []schedulerconfig.PluginConfig{
				{Name: "Chaos", Args: &config.ChaosArgs{}}, {Name: "NodeLoad", Args: &config.NodeLoadArgs{Prometheus: tt.prometheus}},
			}}
			if diff := cmp.Diff(tt.want, credentialNotes(field.NewPath("profiles").Index(2), p)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidatePrintsCredentialNotes(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	registry := frameworkruntime.Registry{"Asker": newAsker("Asker", func(context.Context, []*v1.Node, io.Writer) error { return nil })}
	cfg := load(t, head+"profiles: [{plugins: {filter: {enabled: [{name: Asker}]}}}]\n")
	// The plugin has another name, because a patched scheduler has NodeLoad already.
	cfg.Profiles[0].PluginConfig = append(cfg.Profiles[0].PluginConfig, schedulerconfig.PluginConfig{Name: "Asker", Args: &config.NodeLoadArgs{
		Prometheus: config.NodeLoadPrometheus{Endpoints: []string{"http://a:9090"}, BearerTokenFile: "/token"},
	}})
	var out, errOut bytes.Buffer
	if err := Validate(&out, &errOut, Start{Config: cfg, Registry: registry}, nil); err != nil {
		t.Fatalf("%v\n%s", err, &errOut)
	}
	if !strings.Contains(out.String(), ".args.prometheus.endpoints[0]: begins with http://") {
		t.Errorf("printed no note:\n%s", &out)
	}
}
