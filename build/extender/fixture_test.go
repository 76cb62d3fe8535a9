// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// long is longer than any test takes.
const long = 30 * time.Second

// header begins every configuration here.
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

// enabling returns a configuration with plugins.
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
	// refuse is the API server's error for bindings, if set.
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
	factory.WaitForCacheSync(ctx.Done())
	// On a busy machine, a connection with short limits would end without a response.
	f.serve(t, generous, NewHandler(f.decider, &Binder{client: f.client}, limits))
	return f
}

// serve serves a handler with the server's limits.
func (f *fixture) serve(t testing.TB, limits Limits, handler http.Handler) {
	options := Options{Limits: limits}
	server := httptest.NewUnstartedServer(nil)
	server.Config = options.server(handler)
	server.Start()
	t.Cleanup(server.Close)
	f.url = server.URL
}

// generous are limits that no test reaches.
var generous = Limits{RequestTimeout: long, MaxBodyBytes: 1 << 20}

// bind answers a binding as the API server does, where the fake would put the binding in the pod's place.
func (f *fixture) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	binding, ok := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	if !ok || f.refuse != nil {
		return ok, nil, f.refuse
	}
	found, err := f.client.Tracker().Get(action.GetResource(), action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := found.(*corev1.Pod).DeepCopy()
	if binding.UID != pod.UID || pod.Spec.NodeName != "" {
		return true, nil, errors.New("conflict")
	}
	pod.Spec.NodeName = binding.Target.Name
	return true, binding, f.client.Tracker().Update(action.GetResource(), pod, action.GetNamespace())
}

// post sends a body, a string unchanged, decodes the answer, and returns the status.
func (f *fixture) post(t testing.TB, verb string, body, into any) int {
	t.Helper()
	response, content := f.send(t, http.MethodPost, "/"+verb, "application/json", encode(t, body))
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v in %s", response.Status, err, content)
	}
	return response.StatusCode
}

// send sends a request, and returns the response with its whole body.
func (f *fixture) send(t testing.TB, method, path, contentType string, body []byte) (*http.Response, []byte) {
	t.Helper()
	request, err := http.NewRequest(method, f.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
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

// newPod returns the pod to schedule.
func newPod() *corev1.Pod {
	return st.MakePod().Name("incoming").Namespace("default").UID("incoming").SchedulerName(corev1.DefaultSchedulerName).Obj()
}

// onNode returns a pod that runs on a node.
func onNode(name, node string) *corev1.Pod {
	return st.MakePod().Name(name).Namespace("default").UID(name).Node(node).Obj()
}

// bareNode returns a node without labels.
func bareNode(name string) *corev1.Node { return st.MakeNode().Name(name).Obj() }

func diskNode(name, diskType string) *corev1.Node {
	return st.MakeNode().Name(name).Label("disktype", diskType).Obj()
}

// testPlugins has the plugins of these tests, and this project's own.
func testPlugins(t testing.TB) frameworkruntime.Registry {
	registry := Plugins()
	hung := make(chan struct{})
	// A plugin that never ended would hold up the end of the test.
	t.Cleanup(func() { close(hung) })
	for name, status := range map[string]func(context.Context) *framework.Status{
		// The scheduler takes these words for a format.
		"Broken":    func(context.Context) *framework.Status { return framework.NewStatus(framework.Error, "100% broken") },
		"Panicking": func(context.Context) *framework.Status { panic("out of order") },
		// Patient returns at the deadline, as if all was well, and Deaf does not even return then.
		"Patient": func(ctx context.Context) *framework.Status { <-ctx.Done(); return nil },
		"Deaf":    func(context.Context) *framework.Status { <-hung; return nil },
	} {
		registry[name] = func(runtime.Object, framework.Handle) (framework.Plugin, error) { return filter{name, status}, nil }
	}
	for name, label := range map[string]string{"Labelled": "score", "Other": "other"} {
		registry[name] = func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			return &labelled{name, label, handle}, nil
		}
	}
	registry["Alone"] = func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
		return &alone{handle: handle}, nil
	}
	return registry
}

func asStatus(err error) *framework.Status {
	if err == nil {
		return nil
	}
	return framework.AsStatus(err)
}

// filter is a plugin that does the same for every node.
type filter struct {
	name   string
	status func(context.Context) *framework.Status
}

func (f filter) Name() string { return f.name }

func (f filter) Filter(ctx context.Context, _ *framework.CycleState, _ *corev1.Pod, _ *framework.NodeInfo) *framework.Status {
	return f.status(ctx)
}

// labelled scores a node by a label, in the snapshot that it was made with. It panics at the score -1, and when it
// normalizes the score 101 of the first node.
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
	if score == -1 {
		panic("a score")
	}
	return score, asStatus(err)
}

func (l *labelled) ScoreExtensions() framework.ScoreExtensions { return l }

func (l *labelled) NormalizeScore(_ context.Context, _ *framework.CycleState, _ *corev1.Pod, scores framework.NodeScoreList) *framework.Status {
	if scores[0].Score == 101 {
		panic("all scores")
	}
	return nil
}

// alone requires a node without other pods, by the pods that PreFilter sees and those that are removed.
type alone struct{ handle framework.Handle }

// podCounts has the number of pods on each node.
type podCounts map[string]int

func (c podCounts) Clone() framework.StateData { return maps.Clone(c) }

func (*alone) Name() string { return "Alone" }

func (a *alone) PreFilter(_ context.Context, state *framework.CycleState, _ *corev1.Pod) *framework.Status {
	infos, err := a.handle.SnapshotSharedLister().NodeInfos().List()
	counts := podCounts{}
	for _, info := range infos {
		counts[info.Node().Name] = len(info.Pods)
	}
	state.Write("Alone", counts)
	return asStatus(err)
}

func (a *alone) PreFilterExtensions() framework.PreFilterExtensions { return a }

func (*alone) AddPod(context.Context, *framework.CycleState, *corev1.Pod, *framework.PodInfo, *framework.NodeInfo) *framework.Status {
	return framework.NewStatus(framework.Error, "no pods are added here")
}

func (*alone) RemovePod(
	_ context.Context, state *framework.CycleState, _ *corev1.Pod, _ *framework.PodInfo, info *framework.NodeInfo,
) *framework.Status {
	data, err := state.Read("Alone")
	if err == nil {
		data.(podCounts)[info.Node().Name]--
	}
	return asStatus(err)
}

func (*alone) Filter(_ context.Context, state *framework.CycleState, _ *corev1.Pod, info *framework.NodeInfo) *framework.Status {
	data, err := state.Read("Alone")
	if err != nil {
		return framework.AsStatus(err)
	}
	switch count := data.(podCounts)[info.Node().Name]; {
	case count != len(info.Pods):
		return framework.NewStatus(framework.Error, fmt.Sprintf("PreFilter counts %d pods, and there are %d", count, len(info.Pods)))
	case count > 0:
		return framework.NewStatus(framework.Unschedulable, fmt.Sprintf("%d pods are there", count))
	}
	return nil
}
