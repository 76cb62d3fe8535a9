// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
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
			want: []string{"note: profiles[2].pluginConfig[0].args.prometheus.endpoints[1]: " + open},
		},
		{
			name: "a header in a file", prometheus: config.NodeLoadPrometheus{
				Endpoints: []string{"http://a:9090", "http://b:9090"}, Headers: []config.NodeLoadHeader{{Name: "Cookie", ValueFile: "/cookie"}},
			},
			want: []string{
				"note: profiles[2].pluginConfig[0].args.prometheus.endpoints[0]: " + open,
				"note: profiles[2].pluginConfig[0].args.prometheus.endpoints[1]: " + open,
			},
		},
		{name: "a proxy on this machine", prometheus: config.NodeLoadPrometheus{
			Endpoints: []string{"http://localhost:9090", "http://127.0.0.1:9090", "http://[::1]:9090"}, BearerTokenFile: "/token",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := &config.NodeLoadArgs{Prometheus: tt.prometheus}
			if diff := cmp.Diff(tt.want, notesOf("NodeLoad", args, schedulerconfig.Plugins{})); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
