// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
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

// newStockScheduler makes a scheduler with an extender.
func newStockScheduler(
	t *testing.T, client kubernetes.Interface, extender schedulerconfig.Extender, options ...scheduler.Option,
) stockScheduler {
	t.Helper()
	s := stockScheduler{events: events.NewFakeRecorder(1000)}
	factory := informers.NewSharedInformerFactory(client, 0)
	var err error
	s.Scheduler, err = scheduler.New(client, factory, nil, func(string) events.EventRecorder { return s.events }, t.Context().Done(),
		append(options, scheduler.WithExtenders(extender))...)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	nodes, _ := factory.Core().V1().Nodes().Lister().List(labels.Everything())
	pods, _ := factory.Core().V1().Pods().Lister().List(labels.Everything())
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	// Handlers run after the informers' caches know.
	plugintest.WaitFor(t, "the scheduler knows the nodes and the pods", func() bool {
		count, err := s.SchedulerCache.PodCount()
		return err == nil && count == len(pods) && s.SchedulerCache.NodeCount() == len(nodes)
	})
	return s
}

// decide makes one decision without binding.
func (s stockScheduler) decide(t *testing.T, pod *corev1.Pod) (string, error) {
	t.Helper()
	result, err := s.Algorithm.Schedule(t.Context(), s.Extenders, s.Profiles["default-scheduler"], framework.NewCycleState(), pod)
	return result.SuggestedHost, err
}

// run schedules until the next event with one of some reasons, which it returns.
func (s stockScheduler) run(t *testing.T, reasons ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	go s.Run(ctx)
	for {
		select {
		case event := <-s.events.Events:
			if slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(event, reason) }) {
				return event
			}
		case <-ctx.Done():
			t.Fatalf("no event of %v", reasons)
		}
	}
}

// TestWeight checks a node's total: weight × score of the scheduler's own plugin, which prefers one node, and
// weight × score × 10 of the extender, which prefers the other.
func TestWeight(t *testing.T) {
	ours := st.MakeNode().Name("ours").Label("disktype", "ssd").Label("score", "0").Obj()
	theirs := st.MakeNode().Name("theirs").Label("disktype", "tape").Label("score", "60").Obj()
	f := newFixture(t, byDiskType, generous, ours, theirs)
	only := func(name string, weight int32) schedulerconfig.PluginSet {
		return schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: name, Weight: weight}}}
	}
	onlyLabelled := schedulerconfig.KubeSchedulerProfile{SchedulerName: "default-scheduler", Plugins: &schedulerconfig.Plugins{
		QueueSort: only("PrioritySort", 0), Score: only("Labelled", 2), Bind: only("DefaultBinder", 0),
	}}
	for weight, want := range map[int64]string{
		1: "theirs", // ours: 1 × 10 × 10 = 100; theirs: 2 × 60 = 120
		2: "ours",   // ours: 2 × 10 × 10 = 200; theirs: 120
	} {
		s := newStockScheduler(t, f.client, extenderConfig(f.url, func(e *schedulerconfig.Extender) { e.Weight = weight }), scheduler.WithProfiles(onlyLabelled),
			scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{"Labelled": testPlugins(t)["Labelled"]}))
		if got, err := s.decide(t, newPod()); err != nil || got != want {
			t.Errorf("weight %d: %s, %v, want %s", weight, got, err, want)
		}
	}
}

// failing returns the addresses of extenders that fail in all ways that a scheduler distinguishes.
func failing(t *testing.T) map[string]string {
	t.Helper()
	serve := func(handler http.HandlerFunc) string {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return server.URL
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	return map[string]string{
		"down": gone.URL,
		"slow": serve(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the scheduler is gone
			<-r.Context().Done()
		}),
		"failing":      serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }),
		"not speaking": serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "what?") }),
	}
}

// TestExtenderThatFails checks the table of docs/extender.md, with an extender that has one verb at a time.
func TestExtenderThatFails(t *testing.T) {
	for name, url := range failing(t) {
		for _, ignorable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ignorable: %v", name, ignorable), func(t *testing.T) {
				only := func(verb func(*schedulerconfig.Extender)) schedulerconfig.Extender {
					// The timeout keeps the tests with a slow extender short.
					config := schedulerconfig.Extender{URLPrefix: url, Ignorable: ignorable, Weight: 1, HTTPTimeout: metav1.Duration{Duration: 100 * time.Millisecond}}
					verb(&config)
					return config
				}
				pod := newPod()
				f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"), diskNode("b", "ssd"), pod)
				// The error is not that the pod fits nowhere: preemption is not tried, and the pod is retried.
				s := newStockScheduler(t, f.client, only(func(e *schedulerconfig.Extender) { e.FilterVerb = "filter" }))
				node, err := s.decide(t, pod)
				if (node != "") != ignorable || (err == nil) != ignorable || errors.As(err, new(*framework.FitError)) {
					t.Errorf("filter: %s, %v", node, err)
				}
				// It is never an error: the scheduler's own scores decide alone.
				s = newStockScheduler(t, f.client, only(func(e *schedulerconfig.Extender) { e.PrioritizeVerb = "prioritize" }))
				if node, err = s.decide(t, pod); err != nil || node == "" {
					t.Errorf("prioritize: %s, %v", node, err)
				}
				// Pods have to go only if the extender is left out.
				evicted, event := preempting(t, only(func(e *schedulerconfig.Extender) { e.PreemptVerb = "preempt" }))
				if evicted != ignorable || !evicted && !strings.Contains(event, "FailedScheduling") {
					t.Errorf("preempt: evicted %v, %s", evicted, event)
				}
				// The scheduler's own binder does not step in.
				s = newStockScheduler(t, f.client, only(func(e *schedulerconfig.Extender) { e.BindVerb = "bind" }))
				if event := s.run(t, "Scheduled", "FailedScheduling"); !strings.Contains(event, "binding rejected") {
					t.Errorf("bind: %s", event)
				}
				after, err := f.client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
				if err != nil || after.Spec.NodeName != "" {
					t.Errorf("bind: bound to %q, %v", after.Spec.NodeName, err)
				}
			})
		}
	}
}

// preempting schedules an important pod on a full node, and returns whether the other pod was evicted, and the event.
func preempting(t *testing.T, extender schedulerconfig.Extender) (bool, string) {
	t.Helper()
	room := map[corev1.ResourceName]string{corev1.ResourceCPU: "1", corev1.ResourcePods: "10"}
	pod := func(name string) *st.PodWrapper {
		return st.MakePod().Name(name).Namespace("default").UID(name).SchedulerName(corev1.DefaultSchedulerName).
			Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"})
	}
	f := newFixture(t, byDiskType, generous,
		st.MakeNode().Name("full").Capacity(room).Obj(), pod("runs").Node("full").Priority(0).Obj(), pod("important").Priority(10).Obj())
	event := newStockScheduler(t, f.client, extender).run(t, "Preempted", "FailedScheduling")
	_, err := f.client.CoreV1().Pods("default").Get(t.Context(), "runs", metav1.GetOptions{})
	return apierrors.IsNotFound(err), event
}
