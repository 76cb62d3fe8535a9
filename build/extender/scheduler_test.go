// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// This file asks as upstream does: with its client, and with its whole scheduler around that. What it shows of
// upstream's ways with an extender that is down, slow or wrong is what manifests/config/extender.yaml and the page on
// extenders say.

// extenderConfig is a scheduler's configuration of an extender, with all verbs.
func extenderConfig(url string, change ...func(*schedulerconfig.Extender)) schedulerconfig.Extender {
	config := schedulerconfig.Extender{
		URLPrefix: url, FilterVerb: "filter", PrioritizeVerb: "prioritize", PreemptVerb: "preempt", BindVerb: "bind", Weight: 25,
		HTTPTimeout: metav1.Duration{Duration: long},
	}
	for _, change := range change {
		change(&config)
	}
	return config
}

// in chooses one of the modes.
func in(mode string) func(*schedulerconfig.Extender) {
	return func(e *schedulerconfig.Extender) { e.NodeCacheCapable = mode == "names" }
}

// upstreamsClient is what upstream's scheduler asks extenders with.
func upstreamsClient(t testing.TB, config schedulerconfig.Extender) framework.Extender {
	t.Helper()
	client, err := scheduler.NewHTTPExtender(&config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestUpstreamsClient(t *testing.T) {
	nodes := []*corev1.Node{diskNode("ssd", "ssd"), bareNode("bare"), diskNode("hdd", "hdd")}
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			pod := newPod()
			f := newFixture(t, byDiskType, generous, append(objects(nodes, onNode("on-ssd", "ssd"), onNode("on-bare", "bare")), pod)...)
			client := upstreamsClient(t, extenderConfig(f.url, in(mode)))

			passed, failed, unresolvable, err := client.Filter(pod, nodes)
			if err != nil {
				t.Fatal(err)
			}
			if len(passed) != 2 || !reflect.DeepEqual(passed[0], nodes[0]) || !reflect.DeepEqual(passed[1], nodes[2]) {
				t.Errorf("passed %v", passed)
			}
			if len(failed) != 0 || len(unresolvable) != 1 || !strings.Contains(unresolvable["bare"], "disktype") {
				t.Errorf("failed %v, unresolvable %v", failed, unresolvable)
			}

			scores, weight, err := client.Prioritize(pod, passed)
			want := extenderv1.HostPriorityList{{Host: "ssd", Score: 10}, {Host: "hdd", Score: 5}}
			if err != nil || weight != 25 || !reflect.DeepEqual(*scores, want) {
				t.Errorf("scores %v, weight %d, %v", scores, weight, err)
			}

			infos, err := newSnapshot(f.decider.cluster, nodes)
			if err != nil {
				t.Fatal(err)
			}
			victims := map[string]*extenderv1.Victims{
				"ssd": {Pods: []*corev1.Pod{onNode("on-ssd", "ssd")}}, "bare": {Pods: []*corev1.Pod{onNode("on-bare", "bare")}},
			}
			kept, err := client.ProcessPreemption(pod, victims, infos)
			if err != nil || len(kept) != 1 || len(kept["ssd"].Pods) != 1 || kept["ssd"].Pods[0].Name != "on-ssd" {
				t.Errorf("kept %v, %v", kept, err)
			}
			victims["ssd"].Pods[0].UID = "unknown"
			if kept, err := client.ProcessPreemption(pod, victims, infos); err != nil || len(kept) != 0 {
				t.Errorf("an unknown victim: kept %v, %v", kept, err)
			}

			binding := &corev1.Binding{ObjectMeta: pod.ObjectMeta, Target: corev1.ObjectReference{Name: "ssd"}}
			for range 2 {
				if err := client.Bind(binding); err != nil {
					t.Error(err)
				}
			}
			binding.Target.Name = "hdd"
			if err := client.Bind(binding); err == nil || !strings.Contains(err.Error(), "it is bound to node ssd") {
				t.Errorf("elsewhere: %v", err)
			}
		})
	}
}

// stockScheduler is upstream's scheduler on a fake API server.
type stockScheduler struct {
	*scheduler.Scheduler
	events *events.FakeRecorder
}

// newStockScheduler makes a scheduler with a configuration that can name the plugin Labelled, and with extenders.
func newStockScheduler(
	t *testing.T, client kubernetes.Interface, configuration string, extenders ...schedulerconfig.Extender,
) stockScheduler {
	t.Helper()
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(configuration), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := stockScheduler{events: events.NewFakeRecorder(1000)}
	factory := informers.NewSharedInformerFactory(client, 0)
	s.Scheduler, err = scheduler.New(client, factory, nil, func(string) events.EventRecorder { return s.events }, ctx.Done(),
		scheduler.WithProfiles(object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles...),
		scheduler.WithExtenders(extenders...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{"Labelled": testPlugins(t)["Labelled"]}),
		scheduler.WithPodInitialBackoffSeconds(1),
	)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Handlers run after the informers' caches know.
	await(t, "the scheduler knows the nodes", func() bool { return s.SchedulerCache.NodeCount() == len(nodes.Items) })
	return s
}

func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollImmediate(time.Millisecond, long, func() (bool, error) { return condition(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// decide makes one decision, and binds nothing.
func (s stockScheduler) decide(t *testing.T, pod *corev1.Pod) (string, error) {
	t.Helper()
	result, err := s.Algorithm.Schedule(t.Context(), s.Extenders, s.Profiles["default-scheduler"], framework.NewCycleState(), pod)
	return result.SuggestedHost, err
}

// nextEvent waits for an event of one of some reasons, and gives the whole of it.
func (s stockScheduler) nextEvent(t *testing.T, reasons ...string) string {
	t.Helper()
	deadline := time.After(long)
	for {
		select {
		case event := <-s.events.Events:
			if slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(event, reason) }) {
				return event
			}
		case <-deadline:
			t.Fatalf("no event of %v", reasons)
		}
	}
}

// stock is a configuration with one profile, upstream's own.
const stock = header + "profiles: [{schedulerName: default-scheduler}]\n"

// TestWeight has the scheduler's own plugin prefer one node and the extender the other. A node's total is the plugin's
// weight × score, and the extender's weight × score × 10.
func TestWeight(t *testing.T) {
	ours := st.MakeNode().Name("ours").Label("disktype", "ssd").Label("score", "0").Obj()
	theirs := st.MakeNode().Name("theirs").Label("disktype", "tape").Label("score", "60").Obj()
	f := newFixture(t, byDiskType, generous, ours, theirs)
	onlyLabelled := header + `
profiles:
- schedulerName: default-scheduler
  plugins:
    preScore: {disabled: [{name: "*"}]}
    score: {disabled: [{name: "*"}], enabled: [{name: Labelled, weight: 2}]}
`
	for weight, want := range map[int64]string{
		1: "theirs", // ours: 1 × 10 × 10 = 100; theirs: 2 × 60 = 120
		2: "ours",   // ours: 2 × 10 × 10 = 200; theirs: 120
	} {
		s := newStockScheduler(t, f.client, onlyLabelled, extenderConfig(f.url, func(e *schedulerconfig.Extender) { e.Weight = weight }))
		if got, err := s.decide(t, newPod()); err != nil || got != want {
			t.Errorf("weight %d: %s, %v, want %s", weight, got, err, want)
		}
	}
}

// failing are extenders that cannot be used, in all ways that matter to a scheduler.
func failing(t *testing.T) map[string]string {
	t.Helper()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	serve := func(handler http.HandlerFunc) string {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return server.URL
	}
	return map[string]string{
		"down": "http://" + gone.Addr().String(),
		"slow": serve(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then it is seen that the scheduler goes away
			<-r.Context().Done()
		}),
		"failing":      serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }),
		"not speaking": serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "what?") }),
	}
}

// impatient keeps the tests with a slow extender short.
func impatient(e *schedulerconfig.Extender) { e.HTTPTimeout.Duration = 100 * time.Millisecond }

// only leaves an extender one verb.
func only(verb string) func(*schedulerconfig.Extender) {
	return func(e *schedulerconfig.Extender) {
		for name, field := range map[string]*string{
			"filter": &e.FilterVerb, "prioritize": &e.PrioritizeVerb, "preempt": &e.PreemptVerb, "bind": &e.BindVerb,
		} {
			if name != verb {
				*field = ""
			}
		}
	}
}

// TestExtenderThatFails checks the table of docs/extender.md, with an extender that has one verb at a time.
func TestExtenderThatFails(t *testing.T) {
	for name, url := range failing(t) {
		for _, ignorable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ignorable: %v", name, ignorable), func(t *testing.T) {
				ignore := func(e *schedulerconfig.Extender) { e.Ignorable = ignorable }
				pod := newPod()
				f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"), diskNode("b", "ssd"), pod)
				scheduler := func(verb string) stockScheduler {
					return newStockScheduler(t, f.client, stock, extenderConfig(url, only(verb), impatient, ignore))
				}
				// The error is not that the pod fits nowhere: preemption is not tried, and the pod is retried.
				node, err := scheduler("filter").decide(t, pod)
				if (node != "") != ignorable || (err == nil) != ignorable || errors.As(err, new(*framework.FitError)) {
					t.Errorf("filter: %s, %v", node, err)
				}
				// It is never an error: the scheduler's own scores decide alone.
				if node, err = scheduler("prioritize").decide(t, pod); err != nil || node == "" {
					t.Errorf("prioritize: %s, %v", node, err)
				}
				// Pods have to go only if the extender is left out.
				want := "FailedScheduling"
				if ignorable {
					want = "bare"
				}
				if got := preempting(t, url, only("preempt"), ignore); !strings.Contains(got, want) {
					t.Errorf("preempt: %s, want %s", got, want)
				}
				// The scheduler's own binder does not step in.
				s := scheduler("bind")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go s.Run(ctx)
				if event := s.nextEvent(t, "Scheduled", "FailedScheduling"); !strings.Contains(event, "binding rejected") {
					t.Errorf("bind: %s", event)
				}
				after, err := f.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
				if err != nil || after.Spec.NodeName != "" {
					t.Errorf("bind: bound to %q, %v", after.Spec.NodeName, err)
				}
			})
		}
	}
}

// full fills a node with a pod that has to give way.
func full(node string) []*corev1.Pod {
	return []*corev1.Pod{st.MakePod().Name("on-" + node).Namespace("default").UID("on-" + node).Node(node).Priority(0).
		Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"}).Obj()}
}

// preempting has a scheduler place an important pod in a cluster in which each node is full, and gives the node whose
// pod had to go, or the event if none had.
func preempting(t *testing.T, url string, change ...func(*schedulerconfig.Extender)) string {
	t.Helper()
	room := map[corev1.ResourceName]string{corev1.ResourceCPU: "1", corev1.ResourcePods: "10"}
	// The one whose pod would be chosen, were it for the scheduler alone: it is less important than the other's.
	bare := st.MakeNode().Name("bare").Capacity(room).Obj()
	ssd := st.MakeNode().Name("ssd").Capacity(room).Label("disktype", "ssd").Obj()
	pods := append(full("bare"), full("ssd")...)
	important := int32(5)
	pods[1].Spec.Priority = &important
	incoming := st.MakePod().Name("incoming").Namespace("default").UID("incoming").SchedulerName(corev1.DefaultSchedulerName).Priority(10).
		Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"}).Obj()
	f := newFixture(t, byDiskType, generous, append(objects([]*corev1.Node{bare, ssd}, pods...), incoming)...)
	s := newStockScheduler(t, f.client, stock, extenderConfig(url, append(change, impatient)...))
	await(t, "the scheduler knows the pods", func() bool {
		count, err := s.SchedulerCache.PodCount()
		return err == nil && count == len(pods)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.Run(ctx)
	event := s.nextEvent(t, "Preempted", "FailedScheduling")
	for _, pod := range pods {
		_, err := f.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return pod.Spec.NodeName
		}
	}
	return event
}

// TestNodeThatWasNotSent shows that a stock scheduler would bind a pod to any node that an extender names, if whole
// nodes are sent; this project's scheduler drops it. If names are sent, it is an error: see
// TestExtenderFilterWithUnknownNodes of the patch 0450.
func TestNodeThatWasNotSent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"Nodes":{"items":[{"metadata":{"name":"stranger"}}]}}`)
	}))
	defer server.Close()
	f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"), diskNode("b", "ssd"))
	config := extenderConfig(server.URL, only("filter"), in("whole nodes"))
	if node, err := newStockScheduler(t, f.client, stock, config).decide(t, newPod()); err != nil || node != "stranger" {
		t.Errorf("got %q, %v, want stranger", node, err)
	}
}
