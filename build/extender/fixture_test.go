// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// long is a time that no test should take.
const long = 30 * time.Second

// header is what every configuration here begins with.
const header = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"

// byDiskType prefers ssd to hdd by this project's own plugin, and filters out what has no disk.
const byDiskType = header + `
profiles:
- schedulerName: served
  plugins:
    multiPoint: {enabled: [{name: MyScorePlugin, weight: 25}]}
  pluginConfig:
  - {name: MyScorePlugin, args: {nodeLabel: disktype, preferredValues: [ssd, hdd]}}
`

// enabling gives a configuration with plugins of these tests, each NAME or NAME: WEIGHT.
func enabling(plugins ...string) string {
	text := header + "profiles:\n- schedulerName: served\n  plugins:\n    multiPoint:\n      enabled:\n"
	for _, plugin := range plugins {
		text += "      - " + plugin + "\n"
	}
	return text
}

// fixture is an extender whose API server is a fake.
type fixture struct {
	client  *fake.Clientset
	decider *Decider
	url     string
	// refuse is, if set, how the API server answers bindings.
	refuse error
}

// newFixture serves a configuration over HTTP, in a cluster that holds some objects. The limits are those of the
// requests.
func newFixture(t testing.TB, configuration string, limits Limits, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{client: fake.NewSimpleClientset(objects...)}
	f.client.PrependReactor("create", "pods", f.bind)
	profile, err := LoadProfile(writeFile(t, "config.yaml", configuration), "", testPlugins(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	factory := newInformerFactory(f.client)
	f.decider, err = newDecider(profile, connections{client: f.client, factory: factory, events: &events.FakeRecorder{}})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), f.decider.cluster.synced...) {
		t.Fatal("not synced")
	}
	// Not by these limits: a connection that is slow to begin would end without an answer.
	options := Options{Limits: generous}
	server := httptest.NewUnstartedServer(nil)
	server.Config = options.server(NewHandler(f.decider, &Binder{client: f.client}, limits))
	server.Start()
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// generous are limits that nothing here comes near to.
var generous = Limits{RequestTimeout: long, MaxBodyBytes: 1 << 20}

// bind does what the API server does with a binding, where the fake would put the binding in the pod's place.
func (f *fixture) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	binding, ok := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	if !ok {
		return false, nil, nil
	}
	if f.refuse != nil {
		return true, nil, f.refuse
	}
	found, err := f.client.Tracker().Get(action.GetResource(), action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := found.(*corev1.Pod).DeepCopy()
	conflict := func(format string, arguments ...any) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(corev1.Resource("pods/binding"), pod.Name, fmt.Errorf(format, arguments...))
	}
	switch {
	case binding.UID != "" && binding.UID != pod.UID:
		return conflict("Precondition failed: UID in precondition: %v, UID in object meta: %v", binding.UID, pod.UID)
	case pod.Spec.NodeName != "":
		return conflict("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	}
	pod.Spec.NodeName = binding.Target.Name
	return true, binding, f.client.Tracker().Update(action.GetResource(), pod, action.GetNamespace())
}

// post sends a body, of which a string is sent as it is, and decodes the answer into something. It gives the status.
func (f *fixture) post(t testing.TB, verb string, body, into any) int {
	t.Helper()
	response, content := f.send(t, http.MethodPost, "/"+verb, encode(t, body), fields{"Content-Type": "application/json"})
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v in %s", response.Status, err, content)
	}
	return response.StatusCode
}

// fields are the header of a request, with one value for each key.
type fields map[string]string

// send sends a request, and returns the response with its whole body.
func (f *fixture) send(t testing.TB, method, path string, body []byte, header fields) (*http.Response, []byte) {
	t.Helper()
	request, err := http.NewRequest(method, f.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range header {
		request.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, content
}

func encode(t testing.TB, body any) []byte {
	t.Helper()
	if text, ok := body.(string); ok {
		return []byte(text)
	}
	content, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// newPod is the pod that is to be scheduled.
func newPod() *corev1.Pod {
	return st.MakePod().Name("incoming").Namespace("default").UID("incoming").SchedulerName(corev1.DefaultSchedulerName).Obj()
}

// onNode is a pod that runs somewhere.
func onNode(name, node string) *corev1.Pod {
	return st.MakePod().Name(name).Namespace("default").UID(name).Node(node).Obj()
}

// bareNode is a node without labels, and with room for some pods.
func bareNode(name string) *corev1.Node { return st.MakeNode().Name(name).Obj() }

func diskNode(name, diskType string) *corev1.Node {
	return st.MakeNode().Name(name).Label("disktype", diskType).Obj()
}

// The plugins of these tests, beside this project's own.
func testPlugins(t testing.TB) frameworkruntime.Registry {
	registry := frameworkruntime.Registry{
		"Labelled": func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			return &labelled{name: "Labelled", label: "score", handle: handle}, nil
		},
		"Other": func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			return &labelled{name: "Other", label: "other", handle: handle}, nil
		},
		"Alone":           func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) { return alone{handle}, nil },
		"Refusing":        func(runtime.Object, framework.Handle) (framework.Plugin, error) { return refusing{}, nil },
		"Broken":          func(runtime.Object, framework.Handle) (framework.Plugin, error) { return broken{}, nil },
		"PanickingFilter": func(runtime.Object, framework.Handle) (framework.Plugin, error) { return panickingFilter{}, nil },
		"PanickingScore":  func(runtime.Object, framework.Handle) (framework.Plugin, error) { return panickingScore{}, nil },
		"Patient":         func(runtime.Object, framework.Handle) (framework.Plugin, error) { return patient{}, nil },
		"Deaf": func(runtime.Object, framework.Handle) (framework.Plugin, error) {
			plugin := &deaf{wait: make(chan struct{})}
			// A plugin that never ended would hold up the end of the test.
			t.Cleanup(func() { plugin.once.Do(func() { close(plugin.wait) }) })
			return plugin, nil
		},
	}
	if err := registry.Merge(Plugins()); err != nil {
		t.Fatal(err)
	}
	return registry
}

// labelled scores a node by a label, in the snapshot that it was made with.
type labelled struct {
	name, label string
	handle      framework.Handle
}

func (l *labelled) Name() string { return l.name }

func (l *labelled) Score(_ context.Context, _ *framework.CycleState, _ *corev1.Pod, node string) (int64, *framework.Status) {
	info, err := l.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return 0, framework.AsStatus(err)
	}
	score, err := strconv.ParseInt(info.Node().Labels[l.label], 10, 64)
	if err != nil {
		return 0, framework.AsStatus(err)
	}
	return score, nil
}

func (l *labelled) ScoreExtensions() framework.ScoreExtensions { return nil }

// alone wants a node on which no other pod is, by what PreFilter sees and is told of pods that go away.
type alone struct{ handle framework.Handle }

// podCounts say how many pods are on each node.
type podCounts map[string]int

func (c podCounts) Clone() framework.StateData { return maps.Clone(c) }

func (alone) Name() string { return "Alone" }

func (a alone) PreFilter(_ context.Context, state *framework.CycleState, _ *corev1.Pod) *framework.Status {
	infos, err := a.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return framework.AsStatus(err)
	}
	counts := podCounts{}
	for _, info := range infos {
		counts[info.Node().Name] = len(info.Pods)
	}
	state.Write("Alone", counts)
	return nil
}

func (a alone) PreFilterExtensions() framework.PreFilterExtensions { return a }

func (alone) AddPod(context.Context, *framework.CycleState, *corev1.Pod, *framework.PodInfo, *framework.NodeInfo) *framework.Status {
	return framework.NewStatus(framework.Error, "no pods are added here")
}

func (alone) RemovePod(
	_ context.Context, state *framework.CycleState, _ *corev1.Pod, _ *framework.PodInfo, info *framework.NodeInfo,
) *framework.Status {
	data, err := state.Read("Alone")
	if err != nil {
		return framework.AsStatus(err)
	}
	data.(podCounts)[info.Node().Name]--
	return nil
}

func (alone) Filter(_ context.Context, state *framework.CycleState, _ *corev1.Pod, info *framework.NodeInfo) *framework.Status {
	data, err := state.Read("Alone")
	if err != nil {
		return framework.AsStatus(err)
	}
	switch count := data.(podCounts)[info.Node().Name]; {
	case count != len(info.Pods):
		return framework.NewStatus(framework.Error,
			fmt.Sprintf("PreFilter counts %d pods on %s, and there are %d", count, info.Node().Name, len(info.Pods)))
	case count > 0:
		return framework.NewStatus(framework.Unschedulable, fmt.Sprintf("%d pods are there", count))
	}
	return nil
}

// refusing rejects the pod as such.
type refusing struct{}

func (refusing) Name() string                                       { return "Refusing" }
func (refusing) PreFilterExtensions() framework.PreFilterExtensions { return nil }
func (refusing) PreFilter(context.Context, *framework.CycleState, *corev1.Pod) *framework.Status {
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, "not this pod")
}

// broken fails on the node "broken", in words that the scheduler takes for a format.
type broken struct{}

func (broken) Name() string { return "Broken" }
func (broken) Filter(_ context.Context, _ *framework.CycleState, _ *corev1.Pod, info *framework.NodeInfo) *framework.Status {
	if info.Node().Name == "broken" {
		return framework.NewStatus(framework.Error, "100% broken")
	}
	return nil
}

// patient returns as soon as the deadline is over, as if all was well.
type patient struct{}

func (patient) Name() string { return "Patient" }
func (patient) Filter(ctx context.Context, _ *framework.CycleState, _ *corev1.Pod, _ *framework.NodeInfo) *framework.Status {
	<-ctx.Done()
	return nil
}
func (patient) Score(ctx context.Context, _ *framework.CycleState, _ *corev1.Pod, _ string) (int64, *framework.Status) {
	<-ctx.Done()
	return 0, nil
}
func (patient) ScoreExtensions() framework.ScoreExtensions { return nil }

// deaf does not even return then.
type deaf struct {
	wait chan struct{}
	once sync.Once
}

func (*deaf) Name() string { return "Deaf" }
func (d *deaf) Filter(context.Context, *framework.CycleState, *corev1.Pod, *framework.NodeInfo) *framework.Status {
	<-d.wait
	return nil
}
