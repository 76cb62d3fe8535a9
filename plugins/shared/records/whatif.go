// SPDX-License-Identifier: Apache-2.0

package records

import (
	"container/list"
	"context"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/answers"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

const (
	// whatIfTime limits the total time of a request, and whatIfsWaiting the number of waiting requests.
	whatIfTime     = 10 * time.Second
	whatIfsWaiting = 8
	// whatIfShare limits the share of time in which dry runs run: one second in whatIfShare seconds.
	whatIfShare = 20
	// whatIfMost limits how much of the time in which a dry run does not pause scheduling is counted for whatIfShare.
	whatIfMost = time.Second / 4
)

// whatIfs runs one dry run at a time, with a pause after each.
type whatIfs struct {
	waiting, place chan struct{}
	next           time.Time
}

// find waits for its turn and dry-runs scheduling for the pods that ask returns.
func (r *Recorder) find(ctx context.Context, ask func() (GangRequest, error), all bool) (*WhatIf, error) {
	if r.Sources.WhatIf == nil {
		return nil, answers.Refuse(http.StatusNotImplemented, "this scheduler has no dry runs", "GET "+PodsPath)
	}
	ctx, cancel := context.WithTimeout(ctx, whatIfTime)
	defer cancel()
	busy := answers.Refuse(http.StatusTooManyRequests, "too many requests for dry runs", "ask again in some seconds")
	if !take(r.whatIfs.waiting) {
		return nil, busy
	}
	defer func() { <-r.whatIfs.waiting }()
	select {
	case r.whatIfs.place <- struct{}{}:
		defer func() { <-r.whatIfs.place }()
	case <-ctx.Done():
		return nil, busy
	}
	timer := time.NewTimer(time.Until(r.whatIfs.next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, busy
	}
	// Decoding and failures count too. The time for which scheduling was paused counts in full, even if a plugin has
	// exceeded the limit.
	began, held := time.Now(), time.Duration(0)
	defer func() {
		took := time.Since(began)
		if took > whatIfMost {
			took = whatIfMost
		}
		if took < held {
			took = held
		}
		r.whatIfs.next = time.Now().Add((whatIfShare - 1) * took)
	}()
	request, err := ask()
	if err != nil {
		return nil, err
	}
	var answer *WhatIf
	if answer, held, err = r.whatIf(ctx, request, all); err != nil {
		return nil, err
	}
	answer.Seconds = held.Seconds()
	for _, verdict := range answer.Verdicts {
		for i := range verdict.Rejections {
			verdict.Rejections[i].Reasons = shortened(verdict.Rejections[i].Reasons)
		}
	}
	return answer, nil
}

// Draft returns a recorder for the attempts of a dry run, which are not kept.
func (r *Recorder) Draft() *Recorder {
	return &Recorder{
		Sources: Sources{Explainers: r.Sources.Explainers, Permit: func(func(string, framework.WaitingPod)) {}},
		options: Options{Pods: 1 << 20, Bytes: 1 << 40}, now: r.now,
		plugins: make(map[string][]Plugin), pods: make(map[types.UID]*list.Element), waiting: list.New(), done: list.New(),
	}
}

// Try begins an attempt of a Draft, or continues it with another CycleState.
func (r *Recorder) Try(a *Attempt, state *framework.CycleState, p *v1.Pod, profile string, nodes int) *Attempt {
	whatif.Mark(state)
	if a == nil {
		return r.Begin(state, p, profile, nodes)
	}
	a.state = state
	state.Write(stateKey, a)
	return a
}

// Finish ends an attempt of a Draft and returns its decision.
func (a *Attempt) Finish(p *v1.Pod, evaluated, feasible int) Decision {
	a.recorder.End(a, p, "", evaluated, feasible, nil)
	return a.Decision()
}
