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
	// permitTimeout is the scheduler's own limit for a waiting pod. The longest delay, 10 minutes, is well below.
	permitTimeout = 15 * time.Minute
	// registrationInterval is the interval of the checks whether the pod waits, if its delay ends before the scheduler
	// registers it, which happens after the Permit of all plugins.
	registrationInterval = 10 * time.Millisecond
	// registrationLimit is the time after the delay in which that is checked. A pod that does not wait by then was
	// rejected by another plugin, or was already allowed.
	registrationLimit = 10 * time.Second
)

// Permit makes the pod wait for a random time.
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
	pl.event(pod, "Delay", "Binding is delayed by %v (maxPermitDelay %v)", round(delay), max)
	ctx, stop := context.WithCancel(context.Background())
	current.stopWaiting = stop
	go pl.allow(ctx, pod, pl.clock.NewTimer(delay))
	return framework.NewStatus(framework.Wait, "binding is delayed by Chaos"), permitTimeout
}

// allow allows the waiting pod when the timer fires. It returns if the attempt ends before, or if the pod is not
// waiting after registrationLimit.
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

// round rounds a delay to milliseconds, unless it is shorter.
func round(delay time.Duration) time.Duration {
	if delay < time.Millisecond {
		return delay
	}
	return delay.Round(time.Millisecond)
}
