// SPDX-License-Identifier: Apache-2.0

package pseudorandom

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

func TestAttemptsCountOnePerCycle(t *testing.T) {
	attempts := NewAttempts(7, "Plugin")
	first, second := framework.NewCycleState(), framework.NewCycleState()

	for call := 0; call < 2; call++ {
		got := attempts.Of(first, "pod-a")
		if want := Key(7, "pod-a", "1"); got.Number != 1 || got.Key != want {
			t.Errorf("call %d of the first cycle is attempt %d with key %#x, want 1 and %#x", call, got.Number, got.Key, want)
		}
	}
	if got := attempts.Of(first.Clone(), "pod-a").Number; got != 1 {
		t.Errorf("a copy of the first cycle's state is attempt %d, want 1", got)
	}
	got := attempts.Of(second, "pod-a")
	if want := Key(7, "pod-a", "2"); got.Number != 2 || got.Key != want {
		t.Errorf("the second cycle is attempt %d with key %#x, want 2 and %#x", got.Number, got.Key, want)
	}
	if got := attempts.Of(first, "pod-a").Number; got != 1 {
		t.Errorf("the first cycle became attempt %d, want 1", got)
	}
	if got := attempts.Of(framework.NewCycleState(), "pod-b").Number; got != 1 {
		t.Errorf("another pod begins at attempt %d, want 1", got)
	}
}

func TestAttemptsOfTwoPlugins(t *testing.T) {
	state := framework.NewCycleState()
	a, b := NewAttempts(1, "A"), NewAttempts(2, "B")
	if a.Of(state, "pod").Key == b.Of(state, "pod").Key {
		t.Error("two plugins with different seeds have the same key in one cycle")
	}
}

func TestAttemptsForgetTheOldest(t *testing.T) {
	attempts := NewAttempts(0, "Plugin")
	for i := 0; i <= rememberedPods; i++ {
		attempts.Of(framework.NewCycleState(), types.UID(fmt.Sprint(i)))
	}
	if got := attempts.numbers.Len(); got != rememberedPods {
		t.Errorf("%d pods are remembered, want %d", got, rememberedPods)
	}
	if got := attempts.Of(framework.NewCycleState(), types.UID(fmt.Sprint(rememberedPods))).Number; got != 2 {
		t.Errorf("the newest pod's next attempt is %d, want 2", got)
	}
	if got := attempts.Of(framework.NewCycleState(), "0").Number; got != 1 {
		t.Errorf("the forgotten pod's next attempt is %d, want 1", got)
	}
}

// TestAttemptsInParallel calls Of from 16 workers, as the scheduler does if Score is a plugin's first call in a cycle.
func TestAttemptsInParallel(t *testing.T) {
	const workers, cycles = 16, 10000
	attempts := NewAttempts(0, "Plugin")
	for cycle := int64(1); cycle <= cycles; cycle++ {
		state := framework.NewCycleState()
		var numbers [workers]int64
		plugintest.InParallel(workers, func(worker int) { numbers[worker] = attempts.Of(state, "pod").Number })
		for worker, number := range numbers {
			if number != cycle {
				t.Fatalf("worker %d sees attempt %d in cycle %d", worker, number, cycle)
			}
		}
	}
}
