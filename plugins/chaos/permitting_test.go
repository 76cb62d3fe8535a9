// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func delayArgs(max time.Duration) config.ChaosArgs {
	return config.ChaosArgs{Namespaces: []string{"test"}, MaxPermitDelay: &metav1.Duration{Duration: max}}
}

// waiting starts what the binding cycle does first, and returns where its result arrives.
func (w *world) waiting(pod *v1.Pod) <-chan *framework.Status {
	done := make(chan *framework.Status, 1)
	go func() { done <- w.WaitOnPermit(context.Background(), pod) }()
	return done
}

func TestDelayEndsOnTime(t *testing.T) {
	pod := makePod(1)
	w := newWorld(t, delayArgs(time.Minute), makeNodes(1), pod)
	r := w.cycle(t, pod)
	if r.permit.Code() != framework.Wait {
		t.Fatalf("Permit = %v, want Wait", r.permit)
	}
	delay := w.plugin.attempts.read(r.state).permitDelay(time.Minute)
	want := []string{"pod-1: Normal Chaos Delay: Binding is delayed by " + delay.Round(time.Millisecond).String() + " (maxPermitDelay 1m0s)"}
	if got := w.events.with(""); !reflect.DeepEqual(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}

	done := w.waiting(pod)
	w.clock.Step(delay - 1)
	if w.GetWaitingPod(pod.UID) == nil {
		t.Fatal("the pod does not wait")
	}
	select {
	case status := <-done:
		t.Fatalf("the pod went on 1 ns too early: %v", status)
	default:
	}
	w.clock.Step(1)
	if status := <-done; !status.IsSuccess() {
		t.Errorf("after the delay: %v, want success", status)
	}
	waitForNoGoroutines(t)
	if w.clock.HasWaiters() {
		t.Error("a timer is left running")
	}
}

// slowPermit is a Permit plugin that lets the delay of Chaos pass before it answers.
type slowPermit struct {
	framework.PermitPlugin
	permit func() *framework.Status
}

func (p *slowPermit) Name() string { return "SlowPermit" }

func (p *slowPermit) Permit(context.Context, *framework.CycleState, *v1.Pod, string) (*framework.Status, time.Duration) {
	return p.permit(), 0
}

func TestDelayEndsBeforeThePodWaits(t *testing.T) {
	pod := makePod(1)
	slow := &slowPermit{}
	w := newWorldWith(t, delayArgs(time.Minute), makeNodes(1), []*v1.Pod{pod}, []string{Name, "SlowPermit", defaultbinder.Name},
		frameworkruntime.Registry{"SlowPermit": func(apiruntime.Object, framework.Handle) (framework.Plugin, error) { return slow, nil }})

	slow.permit = func() *framework.Status {
		// The goroutine finds no waiting pod, and waits again.
		w.clock.Step(time.Minute)
		waitFor(t, "the goroutine looks again", w.clock.HasWaiters)
		return nil
	}
	w.cycle(t, pod)
	done := w.waiting(pod)
	waitFor(t, "the pod is allowed", func() bool {
		w.clock.Step(registrationInterval)
		return len(done) == 1
	})
	if status := <-done; !status.IsSuccess() {
		t.Errorf("the pod has the status %v", status)
	}
	waitForNoGoroutines(t)
}

func TestDelayIfAnotherPluginRejects(t *testing.T) {
	pod := makePod(1)
	slow := &slowPermit{permit: func() *framework.Status { return framework.NewStatus(framework.Unschedulable, "no") }}
	w := newWorldWith(t, delayArgs(time.Minute), makeNodes(1), []*v1.Pod{pod}, []string{Name, "SlowPermit", defaultbinder.Name},
		frameworkruntime.Registry{"SlowPermit": func(apiruntime.Object, framework.Handle) (framework.Plugin, error) { return slow, nil }})
	r := w.cycle(t, pod)
	if !r.permit.IsUnschedulable() {
		t.Fatalf("Permit = %v, want Unschedulable", r.permit)
	}
	w.RunReservePluginsUnreserve(context.Background(), r.state, pod, r.best)
	waitForNoGoroutines(t)
}

// TestDelayWithoutUnreserve: the profile does not enable Reserve, so nothing tells that another plugin rejected the
// pod.
func TestDelayWithoutUnreserve(t *testing.T) {
	pod := makePod(1)
	w := newWorld(t, delayArgs(time.Minute), makeNodes(1), pod)
	if status, _ := w.plugin.Permit(context.Background(), framework.NewCycleState(), pod, "node-1"); status.Code() != framework.Wait {
		t.Fatalf("Permit = %v, want Wait", status)
	}
	// After the delay a step at a time, and no more than the limit: one step over it at most.
	w.clock.Step(time.Minute)
	for passed := time.Duration(0); passed <= registrationLimit+registrationLimit/10; passed += registrationLimit / 10 {
		waitFor(t, "the next look, or the end", func() bool { return w.clock.HasWaiters() || goroutines() == "" })
		w.clock.Step(registrationLimit / 10)
	}
	waitForNoGoroutines(t)
	if w.clock.HasWaiters() {
		t.Error("a timer is left running")
	}
}

// TestDelayIfAnotherPluginAllows: another plugin allows the pod; the goroutine ends when the pod does not wait after
// the delay.
func TestDelayIfAnotherPluginAllows(t *testing.T) {
	pod := makePod(1)
	w := newWorld(t, delayArgs(time.Minute), makeNodes(1), pod)
	w.cycle(t, pod)
	w.GetWaitingPod(pod.UID).Allow(Name)
	if status := <-w.waiting(pod); !status.IsSuccess() {
		t.Fatal(status)
	}
	waitFor(t, "the goroutine ends", func() bool {
		w.clock.Step(permitTimeout / 10)
		return goroutines() == ""
	})
}
