// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/carried"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// asker is a plugin whose only source is a function.
type asker struct {
	filterer
	ask func(ctx context.Context, nodes []*v1.Node, out io.Writer) error
}

func (a asker) CheckSources(ctx context.Context, nodes []*v1.Node, out io.Writer) error {
	return a.ask(ctx, nodes, out)
}

func newAsker(name string, ask func(ctx context.Context, nodes []*v1.Node, out io.Writer) error) frameworkruntime.PluginFactory {
	return making(asker{filterer{name: name}, ask}, nil)
}

// apiServer starts a server that returns these nodes, or an error without nodes, and counts the requests. It returns a
// kubeconfig.
func apiServer(t *testing.T, names ...string) (kubeconfig string, requests *int32) {
	t.Helper()
	requests = new(int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		atomic.AddInt32(requests, 1)
		if request.Method != http.MethodGet || request.URL.Path != "/api/v1/nodes" {
			t.Errorf("asked to %s %s", request.Method, request.URL.Path)
		}
		if len(names) == 0 {
			http.Error(w, "not\nnow", http.StatusForbidden)
			return
		}
		list := v1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
		for _, name := range names {
			list.Items = append(list.Items, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return write(t, fmt.Sprintf(`{clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u}], current-context: c}`, server.URL)), requests
}

func TestValidateChecksSourcesOnceForEachProfile(t *testing.T) {
	kubeconfig, requests := apiServer(t, "node-a", "node-b")
	registry := frameworkruntime.Registry{
		"Quiet": newAsker("Quiet", func(context.Context, []*v1.Node, io.Writer) error { return nil }),
		"Panicking": newAsker("Panicking", func(_ context.Context, _ []*v1.Node, out io.Writer) error {
			fmt.Fprint(out, "half")
			panic("no such node")
		}),
		"Asker": newAsker("Asker", func(ctx context.Context, nodes []*v1.Node, out io.Writer) error {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("the context has no deadline")
			}
			var names []string
			for _, node := range nodes {
				names = append(names, node.Name)
			}
			fmt.Fprintf(out, "matched: %s\nunmatched: 0\n", strings.Join(names, ", "))
			return utilerrors.NewAggregate([]error{errors.New("http://a: no\nanswer"), errors.New("http://b: 500")})
		}),
	}
	document := head + fmt.Sprintf(`
clientConnection: {kubeconfig: %s}
profiles:
- schedulerName: default-scheduler
  plugins: {filter: {enabled: [{name: Quiet}, {name: Asker}, {name: Panicking}]}}
- schedulerName: plain
- schedulerName: other
  plugins: {multiPoint: {enabled: [{name: Asker}]}}
`, kubeconfig)
	want := `the configuration from the flags is valid (kubescheduler.config.k8s.io/v1beta3)
profile default-scheduler: the default plugins with these changes
  added:    Quiet (filter), Asker (filter), Panicking (filter)
profile plain: the default plugins
profile other: the default plugins with these changes
  added:    Asker (filter)
profile default-scheduler: the sources of Asker
  matched: node-a, node-b
  unmatched: 0
warning: profile default-scheduler: Asker: http://a: no answer
warning: profile default-scheduler: Asker: http://b: 500
profile default-scheduler: the sources of Panicking
  half
warning: profile default-scheduler: Panicking: panic: no such node; next: report this as a bug of the plugin, with the stack from the log
profile default-scheduler: the sources of Quiet
profile other: the sources of Asker
  matched: node-a, node-b
  unmatched: 0
warning: profile other: Asker: http://a: no answer
warning: profile other: Asker: http://b: 500
`
	if diff := cmp.Diff(want, validate(t, Start{Registry: registry}, document)); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if n := atomic.LoadInt32(requests); n != 1 {
		t.Errorf("the API server was asked %d times, want once", n)
	}
}

func TestValidateNotesTheDefaultLimitOfRequestsInALargeCluster(t *testing.T) {
	const want = "note: clientConnection.qps is 50, the default: the scheduler binds at most 50 pods per second, and the cluster has " +
		"255 nodes; next: set qps: 51 and burst: 102, if the API server has room\n"
	registry := frameworkruntime.Registry{"Asker": newAsker("Asker", func(context.Context, []*v1.Node, io.Writer) error { return nil })}
	for _, tt := range []struct {
		nodes int
		limit string
		want  bool
	}{{254, "", false}, {255, "", true}, {255, ", qps: 51", false}} {
		kubeconfig, _ := apiServer(t, make([]string, tt.nodes)...)
		out := validate(t, Start{Registry: registry}, head+fmt.Sprintf(
			"clientConnection: {kubeconfig: %s%s}\nprofiles: [{plugins: {filter: {enabled: [{name: Asker}]}}}]\n", kubeconfig, tt.limit))
		if strings.Contains(out, want) != tt.want || strings.Contains(out, "clientConnection.qps") != tt.want {
			t.Errorf("%d nodes%s: printed\n%s\nwant %q: %v", tt.nodes, tt.limit, out, want, tt.want)
		}
	}
}

func TestValidateChecksSourcesWithoutNodes(t *testing.T) {
	forbidding, _ := apiServer(t)
	tests := []struct {
		name, kubeconfig, want string
	}{
		{name: "no kubeconfig, outside of a pod", want: "unable to load in-cluster configuration"},
		{name: "a missing kubeconfig", kubeconfig: "/no/such/file", want: "stat /no/such/file: no such file or directory"},
		{name: "an API server that refuses", kubeconfig: forbidding, want: "not now"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			asked := 0
			registry := frameworkruntime.Registry{"Asker": newAsker("Asker", func(_ context.Context, nodes []*v1.Node, out io.Writer) error {
				asked++
				if nodes != nil {
					t.Errorf("got %d nodes, want nil", len(nodes))
				}
				_, err := io.WriteString(out, "100 series")
				return err
			})}
			document := head + fmt.Sprintf("clientConnection: {kubeconfig: %q}\nprofiles: [{plugins: {filter: {enabled: [{name: Asker}]}}}]\n", tt.kubeconfig)
			out := validate(t, Start{Registry: registry}, document)
			if asked != 1 {
				t.Errorf("the source was asked %d times", asked)
			}
			at := strings.Index(out, "warning: cannot list the nodes of the cluster")
			if at < 0 || !strings.Contains(out[at:], tt.want) || strings.Count(out, "warning: ") != 1 ||
				!strings.HasSuffix(out, "profile default-scheduler: the sources of Asker\n  100 series\n") {
				t.Errorf("printed\n%s\nwant one warning with %q, and then the source", out, tt.want)
			}
		})
	}
}

// TestValidateSendsNoRequest covers configurations without plugins that have sources, and invalid ones.
func TestValidateSendsNoRequest(t *testing.T) {
	kubeconfig, requests := apiServer(t, "node-a")
	registry := frameworkruntime.Registry{
		"Scorer": making(scorer{}, nil),
		"Broken": making(nil, errors.New("broken")),
		"Asker": newAsker("Asker", func(context.Context, []*v1.Node, io.Writer) error {
			t.Error("the source was asked")
			return nil
		}),
	}
	for _, tt := range []struct {
		name, plugins string
		valid         bool
	}{
		{"no sources", "{multiPoint: {enabled: [{name: Scorer}]}}", true},
		{"sources, but another plugin fails", "{multiPoint: {enabled: [{name: Asker}, {name: Broken}]}}", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := load(t, head+fmt.Sprintf("clientConnection: {kubeconfig: %s}\nprofiles: [{plugins: %s}]\n", kubeconfig, tt.plugins))
			var out, errOut bytes.Buffer
			err := Validate(&out, &errOut, Start{Config: cfg, Registry: registry}, nil)
			if (err == nil) != tt.valid {
				t.Errorf("returned %v\n%s", err, &errOut)
			}
			if strings.Contains(out.String(), "sources of") {
				t.Errorf("printed\n%s", &out)
			}
			if n := atomic.LoadInt32(requests); n != 0 {
				t.Errorf("the API server was asked %d times", n)
			}
		})
	}
}

func TestValidateChecksCustomResourceDefinitions(t *testing.T) {
	carried.Register(carried.Plugin{Name: "Carried", CRDs: []carried.CRD{{Name: "things.example.com", Group: "example.com", Version: "v1", Resource: "things"}}})
	registry := frameworkruntime.Registry{"Carried": making(filterer{name: "Carried"}, nil)}
	got := validate(t, Start{Registry: registry, Master: "https://127.0.0.1:1"}, head+"profiles: [{plugins: {filter: {enabled: [{name: Carried}]}}}]\n")
	if want := "warning: plugin Carried needs the CustomResourceDefinition things.example.com, but it is unknown"; !strings.Contains(got, want) {
		t.Errorf("printed\n%s\nwant %q", got, want)
	}
}
