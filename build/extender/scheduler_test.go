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
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// This file has upstream's client and scheduler. It tests the table of docs/extender.md about an extender that is down,
// slow or wrong.

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

// upstreamsClient returns the client of upstream's scheduler.
func upstreamsClient(t testing.TB, config schedulerconfig.Extender) framework.Extender {
	t.Helper()
	client, err := scheduler.NewHTTPExtender(&config)
	if err != nil {
		t.Fatal(err)
	}
	return client
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
	plugintest.WaitFor(t, "the scheduler knows the nodes", func() bool { return s.SchedulerCache.NodeCount() == len(nodes.Items) })
	return s
}

// decide makes one decision without binding.
func (s stockScheduler) decide(t *testing.T, pod *corev1.Pod) (string, error) {
	t.Helper()
	result, err := s.Algorithm.Schedule(t.Context(), s.Extenders, s.Profiles["default-scheduler"], framework.NewCycleState(), pod)
	return result.SuggestedHost, err
}

// nextEvent waits for an event with one of some reasons.
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

// TestWeight checks a node's total: weight × score of the scheduler's own plugin, which prefers one node, and
// weight × score × 10 of the extender, which prefers the other.
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

// failing returns the addresses of extenders that fail in all ways that a scheduler distinguishes.
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
			_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the scheduler is gone
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

// full returns a pod that fills a node and can be evicted.
func full(node string) []*corev1.Pod {
	return []*corev1.Pod{st.MakePod().Name("on-" + node).Namespace("default").UID("on-" + node).Node(node).Priority(0).
		Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"}).Obj()}
}

// preempting schedules an important pod in a cluster of full nodes, and returns the node whose pod was evicted, or the
// event if there is none.
func preempting(t *testing.T, url string, change ...func(*schedulerconfig.Extender)) string {
	t.Helper()
	room := map[corev1.ResourceName]string{corev1.ResourceCPU: "1", corev1.ResourcePods: "10"}
	// The scheduler alone would choose this node: its pod is less important than the other's.
	bare := st.MakeNode().Name("bare").Capacity(room).Obj()
	ssd := st.MakeNode().Name("ssd").Capacity(room).Label("disktype", "ssd").Obj()
	pods := append(full("bare"), full("ssd")...)
	important := int32(5)
	pods[1].Spec.Priority = &important
	incoming := st.MakePod().Name("incoming").Namespace("default").UID("incoming").SchedulerName(corev1.DefaultSchedulerName).Priority(10).
		Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"}).Obj()
	f := newFixture(t, byDiskType, generous, append(objects([]*corev1.Node{bare, ssd}, pods...), incoming)...)
	s := newStockScheduler(t, f.client, stock, extenderConfig(url, append(change, impatient)...))
	plugintest.WaitFor(t, "the scheduler knows the pods", func() bool {
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
