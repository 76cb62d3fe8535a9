// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// profile is the name of the profile of the tests.
const profile = "gangs"

// world is a plugin, with the clients of its cluster. Tests set objects as its informers would, in their own order.
type world struct {
	*testing.T
	*Coscheduling
	pods   *fake.Clientset
	custom *dynamicfake.FakeDynamicClient
	events chan string
}

func newWorld(t *testing.T, change func(args *config.CoschedulingArgs)) *world {
	t.Helper()
	w := &world{T: t, pods: fake.NewSimpleClientset()}
	w.custom = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "PodGroupList"})
	w.Coscheduling = w.plugin(profile, change, informers.NewSharedInformerFactory(w.pods, 0))
	return w
}

// plugin makes the plugin of a profile.
func (w *world) plugin(profile string, change func(args *config.CoschedulingArgs), factory informers.SharedInformerFactory) *Coscheduling {
	w.Helper()
	recorder := events.NewFakeRecorder(100)
	w.events = recorder.Events
	handle := plugintest.Handle(w, profile, frameworkruntime.WithInformerFactory(factory), frameworkruntime.WithClientSet(w.pods),
		frameworkruntime.WithEventRecorder(recorder))
	args := &config.CoschedulingArgs{}
	scheme.Scheme.Default(args)
	if change != nil {
		change(args)
	}
	pl, err := newPlugin(args, handle, w.custom)
	if err != nil {
		w.Fatal(err)
	}
	return pl
}

// group sets a PodGroup, created the given number of seconds after the epoch.
func (w *world) group(name string, minMember, second int64, annotations ...string) {
	w.groups.groupChanged(nil, podGroupOf(name, minMember, second, annotations...))
}

func podGroupOf(name string, minMember, second int64, annotations ...string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]interface{}{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]interface{}{
			"namespace": "ns", "name": name, "creationTimestamp": time.Unix(second, 0).UTC().Format(time.RFC3339),
		},
		"spec": map[string]interface{}{"minMember": minMember, "minResources": map[string]interface{}{"cpu": int64(3)}},
	}}
	for i := 0; i < len(annotations); i += 2 {
		_ = unstructured.SetNestedField(object.Object, annotations[i+1], "metadata", "annotations", annotations[i])
	}
	return object
}

func podOf(name, group string) *st.PodWrapper {
	return st.MakePod().Namespace("ns").Name(name).UID(name).SchedulerName(profile).Label(gangs.Label, group)
}

// set sets pods.
func (w *world) set(pods ...*st.PodWrapper) {
	w.Helper()
	for _, pod := range pods {
		object, found, _ := w.groups.pods.GetStore().Get(pod.Obj())
		if err := w.groups.pods.GetIndexer().Add(pod.Obj()); err != nil {
			w.Fatal(err)
		}
		var before *v1.Pod
		if found {
			before = object.(*v1.Pod)
		}
		w.groups.podChanged(before, pod.Obj())
	}
}

func (w *world) delete(pod *st.PodWrapper) {
	w.Helper()
	if err := w.groups.pods.GetIndexer().Delete(pod.Obj()); err != nil {
		w.Fatal(err)
	}
	w.groups.podChanged(pod.Obj(), nil)
}

// await waits for a condition.
func (w *world) await(what string, holds func() bool) {
	w.Helper()
	plugintest.WaitFor(w, what, holds)
}

func names(pods []*v1.Pod) string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return strings.Join(all, " ")
}

// refusing sends no request, as while a configuration is validated.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }

func TestNew(t *testing.T) {
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	valid := &config.CoschedulingArgs{}
	scheme.Scheme.Default(valid)
	invalid := valid.DeepCopy()
	invalid.AttemptTimeout.Duration = 0
	for name, tt := range map[string]struct {
		args       runtime.Object
		kubeConfig *restclient.Config
		want       string
	}{
		"while no request is sent":      {valid, &restclient.Config{Host: "https://cluster.invalid", Transport: refusing{}}, ""},
		"a cluster without PodGroups":   {valid, &restclient.Config{Host: empty.URL}, "does not have the CustomResourceDefinition podgroups.scheduling.sigs.k8s.io"},
		"no client":                     {valid, nil, "no configuration for a client"},
		"invalid args":                  {invalid, nil, "attemptTimeout"},
		"the args of another plugin":    {&config.ChaosArgs{}, nil, "want args of type CoschedulingArgs"},
		"no args, as without a default": {nil, nil, "want args of type CoschedulingArgs"},
	} {
		t.Run(name, func(t *testing.T) {
			pl, err := New(tt.args, plugintest.Handle(t, profile, frameworkruntime.WithKubeConfig(tt.kubeConfig)))
			if tt.want == "" && (err != nil || pl == nil) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("made %v, %v, want the error %q", pl, err, tt.want)
			}
		})
	}
}

func TestLess(t *testing.T) {
	w := newWorld(t, nil)
	w.group("old", 2, 100)
	w.group("young", 2, 300)
	w.group("twin-a", 2, 200)
	w.group("twin-b", 2, 200)
	queued := func(name, group string, priority int32, second int64) *framework.QueuedPodInfo {
		pod := podOf(name, group).Priority(priority)
		if group == "" {
			pod = st.MakePod().Namespace("ns").Name(name).Priority(priority)
		}
		return &framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(pod.Obj()), InitialAttemptTimestamp: time.Unix(second, 0)}
	}
	// In the order that they should have. The seconds since when pods of a gang wait do not count.
	want := []*framework.QueuedPodInfo{
		queued("important", "", 10, 900), queued("of-important", "young", 5, 900),
		queued("z1", "old", 0, 901), queued("z2", "old", 0, 899),
		queued("first", "", 0, 150),
		queued("m", "twin-a", 0, 900), queued("z", "twin-a", 0, 800), queued("a", "twin-b", 0, 700), queued("n", "twin-b", 0, 600),
		queued("second", "", 0, 250), queued("b", "young", 0, 0),
		queued("alone", "unknown", 0, 350), queued("twin", "", 0, 400), queued("twin2", "", 0, 400),
	}
	for i := range want {
		for j := range want {
			if got := w.Less(want[i], want[j]); got != (i < j) {
				t.Errorf("%s before %s: %v", want[i].Pod.Name, want[j].Pod.Name, got)
			}
		}
	}
}

func TestFilters(t *testing.T) {
	w := newWorld(t, nil)
	zoned := st.MakeNode().Name("zoned").Label("zone", "a").Obj()
	for name, tt := range map[string]struct {
		group string
		cycle *gangs.Cycle
		// rejected is the reason of PreFilter, and nodes are those that Filter passes.
		rejected string
		nodes    int
	}{
		"no gang":                     {nodes: 3},
		"no gang, in a gang's cycle":  {cycle: &gangs.Cycle{Domain: gangs.Domain{Key: "zone", Value: "b"}}, nodes: 3},
		"a scheduler without gangs":   {group: "g", rejected: unpatched, nodes: 3},
		"a gang that may use all":     {group: "g", cycle: &gangs.Cycle{}, nodes: 3},
		"a gang in a zone":            {group: "g", cycle: &gangs.Cycle{Domain: gangs.Domain{Key: "zone", Value: "a"}}, nodes: 1},
		"a gang in the nameless zone": {group: "g", cycle: &gangs.Cycle{Domain: gangs.Domain{Key: "zone"}}, nodes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			pod, state := podOf("a", tt.group).Obj(), framework.NewCycleState()
			if tt.cycle != nil {
				tt.cycle.Set(state)
			}
			if got := w.PreFilter(context.TODO(), state, pod); got.Message() != tt.rejected || got.Code() == framework.Unschedulable {
				t.Errorf("PreFilter: %v, want %q", got, tt.rejected)
			}
			prepared, passed := w.PrepareFilter(state, pod), 0
			if (prepared == nil) != (tt.nodes == 3) {
				t.Errorf("it is prepared: %v", prepared != nil)
			}
			for _, node := range []*v1.Node{zoned, st.MakeNode().Name("nameless").Label("zone", "").Obj(), st.MakeNode().Name("none").Obj()} {
				info := plugintest.NodeInfo(node)
				status := w.Filter(context.TODO(), state, pod, info)
				if status.IsSuccess() {
					passed++
				} else if status.Code() != framework.UnschedulableAndUnresolvable || status.Message() != gangs.Outside {
					t.Errorf("%s: %v", node.Name, status)
				}
				if prepared == nil {
					continue
				}
				once := prepared(info)
				if once.Code() != status.Code() || once.Message() != status.Message() || !once.IsSuccess() && once.FailedPlugin() != Name {
					t.Errorf("%s: %v when prepared, %v by Filter", node.Name, once, status)
				}
			}
			if passed != tt.nodes {
				t.Errorf("%d nodes pass, want %d", passed, tt.nodes)
			}
		})
	}
}
