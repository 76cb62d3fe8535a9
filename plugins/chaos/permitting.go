// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

const (
	// permitTimeout is after what time the scheduler gives a waiting pod up; it allows no more. The longest delay, 10
	// minutes, is well below.
	permitTimeout = 15 * time.Minute
	// registrationInterval is how often it is looked whether the pod waits already, when its delay is over first: the
	// scheduler registers it only after the Permit of all plugins.
	registrationInterval = 10 * time.Millisecond
	// registrationLimit is for how long that is looked after the delay. A pod that does not wait by then never will:
	// another plugin rejected it, or it was allowed already.
	registrationLimit = 10 * time.Second
)

// Permit lets the pod wait for a random time.
func (pl *Chaos) Permit(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (*framework.Status, time.Duration) {
	max := pl.args.MaxPermitDelay.Duration
	if max == 0 {
		return nil, 0
	}
	current := pl.disturbed(state, pod)
	if current == nil {
		return nil, 0
	}
	delay := current.permitDelay(max)
	pl.counters.delayed.Inc()
	pl.log("Binding is delayed", pod, current, "delay", delay)
	if pl.args.DryRun {
		return nil, 0
	}
	pl.tell(pod, "Delay", "Binding is delayed by %v (maxPermitDelay %v)", round(delay), max)
	ctx, stop := context.WithCancel(context.Background())
	current.stopWaiting = stop
	go pl.allow(ctx, pod, pl.clock.NewTimer(delay))
	return framework.NewStatus(framework.Wait, "binding is delayed by Chaos"), permitTimeout
}

// allow lets the waiting pod go on when the timer fires. It ends without when the attempt ends first, or when the pod
// does not wait registrationLimit later.
func (pl *Chaos) allow(ctx context.Context, pod *v1.Pod, timer clock.Timer) {
	defer timer.Stop()
	var deadline time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		if waiting := pl.handle.GetWaitingPod(pod.UID); waiting != nil {
			waiting.Allow(Name)
			return
		}
		now := pl.clock.Now()
		if deadline.IsZero() {
			deadline = now.Add(registrationLimit)
		}
		if !now.Before(deadline) {
			return
		}
		timer.Reset(registrationInterval)
	}
}

// round makes a delay readable: to the millisecond, unless it is shorter.
func round(delay time.Duration) time.Duration {
	if delay < time.Millisecond {
		return delay
	}
	return delay.Round(time.Millisecond)
}
