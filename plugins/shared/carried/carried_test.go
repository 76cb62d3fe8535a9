// SPDX-License-Identifier: Apache-2.0

package carried

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

var gang = CRD{Name: "gangs.example.com", Group: "example.com", Version: "v1", Resource: "gangs"}

// register replaces the carried plugins while the test runs.
func register(t *testing.T, carried ...Plugin) {
	before := plugins
	plugins = nil
	t.Cleanup(func() { plugins = before })
	for _, plugin := range carried {
		Register(plugin)
	}
}

// serving is an API server that answers one path with a text, lists of gangs with a status, and all others with 404.
func serving(t *testing.T, path, text string, status int) *restclient.Config {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/apis/example.com/v1/gangs" {
			w.WriteHeader(status)
			return
		}
		if request.URL.Path != path {
			http.NotFound(w, request)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return &restclient.Config{Host: server.URL}
}

type made struct{}

func (made) Name() string { return "Gang" }

func newMade(runtime.Object, framework.Handle) (framework.Plugin, error) { return made{}, nil }

func TestPluginIsMadeWhereTheClusterHasItsCRDs(t *testing.T) {
	const list = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[{"name":"RESOURCE"}]}`
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, tt := range map[string]struct {
		config *restclient.Config
		want   string
	}{
		"it has them":                      {serving(t, "/apis/example.com/v1", strings.Replace(list, "RESOURCE", "gangs", 1), 200), ""},
		"it has them, and they are secret": {serving(t, "/apis/example.com/v1", strings.Replace(list, "RESOURCE", "gangs", 1), 403), "forbidden"},
		"it does not know the group":       {serving(t, "/apis/other.example.com/v1", list, 200), "gangs.example.com"},
		"it has others of the group":       {serving(t, "/apis/example.com/v1", strings.Replace(list, "RESOURCE", "others", 1), 200), "gangs.example.com"},
		"it does not answer, so it waits":  {&restclient.Config{Host: closed.URL}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			register(t, Plugin{Name: "Gang", New: newMade, CRDs: []CRD{gang}})
			registry := frameworkruntime.Registry{}
			if err := AddTo(registry); err != nil {
				t.Fatal(err)
			}
			plugin, err := registry["Gang"](nil, plugintest.Handle(t, "profile", frameworkruntime.WithKubeConfig(tt.config)))
			if tt.want == "" {
				if err != nil || plugin == nil {
					t.Errorf("made %v, %v", plugin, err)
				}
				return
			}
			if tt.want == "forbidden" {
				if err == nil || !strings.HasSuffix(err.Error(), "; next: kubectl apply -f manifests/rbac/, from the release bundle") {
					t.Errorf("made %v, %v", plugin, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "does not have the CustomResourceDefinition "+tt.want+"; next: kubectl apply -f crds/"+tt.want+".yaml") {
				t.Errorf("made %v, %v", plugin, err)
			}
		})
	}
}

func TestANameThatIsTaken(t *testing.T) {
	register(t, Plugin{Name: "Gang", New: newMade}, Plugin{Name: "Gang", New: newMade})
	if err := AddTo(frameworkruntime.Registry{}); err == nil || !strings.Contains(err.Error(), "Gang") {
		t.Errorf("added twice: %v", err)
	}
}

func TestOursIsNotAdded(t *testing.T) {
	register(t, Plugin{Name: "Gang", CRDs: []CRD{gang}})
	registry := frameworkruntime.Registry{}
	if err := AddTo(registry); err != nil || len(registry) > 0 {
		t.Errorf("added %v, %v", registry, err)
	}
}

func TestMissing(t *testing.T) {
	register(t, Plugin{Name: "Gang", CRDs: []CRD{gang}}, Plugin{Name: "Other", CRDs: []CRD{gang}}, Plugin{Name: "Plain"})
	names := map[string]bool{"Gang": true, "Plain": true, "NodeResourcesFit": true}
	empty := serving(t, "/none", "", 200)
	got := Missing(names, func() (*restclient.Config, error) { return empty, nil })
	if len(got) != 1 || !strings.HasPrefix(got[0], "plugin Gang: the cluster does not have the CustomResourceDefinition gangs.example.com; next: ") {
		t.Errorf("missing: %q", got)
	}
	got = Missing(names, func() (*restclient.Config, error) { return nil, errors.New("no kubeconfig") })
	if len(got) != 1 || !strings.Contains(got[0], "it is unknown whether the cluster has it: no kubeconfig") {
		t.Errorf("where there is no cluster: %q", got)
	}
	delete(names, "Gang")
	if got := Missing(names, func() (*restclient.Config, error) { t.Error("asked for nothing"); return empty, nil }); len(got) > 0 {
		t.Errorf("of plugins without CRDs: %q", got)
	}
}
