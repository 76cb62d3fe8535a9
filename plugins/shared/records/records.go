// SPDX-License-Identifier: Apache-2.0

// Package records keeps the latest scheduling attempts in memory: for each attempt, the number of nodes that each
// plugin rejected with the reasons, the scores of the best nodes, and the result. Of a pod it records only its names
// and what plugins report about it.
//
// A nil *Recorder records nothing and creates nil *Attempts; all their methods may be called.
package records

import (
	"container/list"
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	// attemptsOfPod limits the attempts per pod; the last ones are kept.
	attemptsOfPod = 5
	// waitingPods is how many pods that wait are kept for each bound pod.
	waitingPods = 10
	// bestNodes limits the scored nodes per attempt, in addition to the chosen node.
	bestNodes = 10
	// sampleNodes limits the node names per text of a rejection, and textsOfAttempt the separate texts per attempt.
	sampleNodes    = 5
	textsOfAttempt = 16
	// bytesOfText limits each text from a plugin, an extender or the scheduler.
	bytesOfText = 1 << 10
)

// Options are the limits of a Recorder.
type Options struct {
	// Pods is the number of bound pods to keep. Ten times as many pods that wait are kept, and of those beyond Pods
	// only the last attempt. If a limit is exceeded, bound pods give way first, then those with the oldest attempt.
	Pods int
	// Bytes limits the estimated memory of the attempts.
	Bytes int64
}

// DefaultOptions are a scheduler's default limits.
var DefaultOptions = Options{Pods: 1000, Bytes: 64 << 20}

// Sources are the inputs of a Recorder's answers.
type Sources struct {
	// Pods lists the cluster's pods that have not ended. Profiles are the names of the profiles.
	Pods     corelisters.PodLister
	Profiles []string
	// Queue calls visit for each pending pod, in no particular order; Lengths returns their number. visit must not
	// retain its arguments, which change later.
	Queue   func(visit func(where Where, info *framework.QueuedPodInfo, until time.Time))
	Lengths func() QueueLengths
	// Permit calls visit for each pod that waits for Permit plugins.
	Permit func(visit func(profile string, waiting framework.WaitingPod))
	// WhatIf dry-runs scheduling for a pod, and also returns how long scheduling was paused; nil if dry runs are not
	// available. With all, the result has the verdicts of all nodes.
	WhatIf func(ctx context.Context, pod *v1.Pod, all bool) (*WhatIf, time.Duration, error)
	// WhatIfGang is WhatIf for a whole gang; nil if no profile decides gangs as one. It returns nil without an error if
	// the pods are not of a gang, such as in a profile without a gangs.Source. Then WhatIf is asked for a single pod.
	WhatIfGang func(ctx context.Context, request GangRequest) (*GangWhatIf, time.Duration, error)
	// Explainers are the plugins of each profile that explain their decisions.
	Explainers map[string][]Explainer
	// Version is the scheduler's version, Configuration the short hash of its configuration.
	Version, Configuration string
}

// Recorder keeps attempts by pod. Only the scheduling goroutine calls Next, Begin and End; any goroutine may call the
// other methods at any time.
type Recorder struct {
	// Sources are set before the first record or request.
	Sources Sources

	options Options
	now     func() time.Time
	// next is the pod that the queue returned last, current the attempt of this cycle, and plugins the plugins of each
	// profile from Hold.
	next    *framework.QueuedPodInfo
	wokenBy string
	current *Attempt
	plugins map[string][]Plugin

	whatIfs whatIfs

	// queueKept is the queue as of queueMade.
	queueMutex sync.Mutex
	queueKept  Queue
	queueMade  time.Time

	mutex sync.Mutex
	pods  map[types.UID]*list.Element // of *pod
	// waiting and done have the pods without a node, and those that are bound or being bound. The pod with the latest
	// attempt is first.
	waiting, done *list.List
	bytes         int64
	leader        string
}

type pod struct {
	uid             types.UID
	namespace, name string
	attempts        []*Attempt
}

// New returns a Recorder, or nil if a limit is not positive.
func New(options Options) *Recorder {
	if options.Pods <= 0 || options.Bytes <= 0 {
		return nil
	}
	return &Recorder{
		options: options, now: time.Now, plugins: make(map[string][]Plugin),
		pods: make(map[types.UID]*list.Element), waiting: list.New(), done: list.New(),
		whatIfs: whatIfs{waiting: make(chan struct{}, whatIfsWaiting), place: make(chan struct{}, 1)},
	}
}

// Next records the queue's data on the pod whose attempt begins next, and the event that triggered the retry.
func (r *Recorder) Next(podInfo *framework.QueuedPodInfo, wokenBy string) {
	if r != nil {
		r.next, r.wokenBy = podInfo, wokenBy
	}
}

// Begin returns a new attempt to schedule a pod, and stores it in the CycleState for Of. nodes is the number of nodes in
// the cluster.
func (r *Recorder) Begin(state *framework.CycleState, p *v1.Pod, profile string, nodes int) *Attempt {
	if r == nil {
		return nil
	}
	a := &Attempt{recorder: r, state: state, trail: new(trail), began: r.now(), profile: profile, nodes: nodes, number: 1}
	if next := r.next; next != nil && next.Pod != nil && next.Pod.UID == p.UID {
		a.number, a.queued, a.first, a.wokenBy = next.Attempts, next.Timestamp, next.InitialAttemptTimestamp, r.wokenBy
	}
	r.next, r.current = nil, a
	state.Write(stateKey, a)
	return a
}

// End keeps an attempt whose scheduling cycle ended with a node or an error. The attempt is immutable from then on. It
// replaces the last attempt if that has the same number and has not ended: an attempt for a gang may search several
// times for a pod.
func (r *Recorder) End(a *Attempt, p *v1.Pod, node string, evaluated, feasible int, err error) {
	if a == nil {
		return
	}
	a.took, a.held, r.current = r.now().Sub(a.began), held{}, nil
	a.node, a.evaluated, a.feasible = node, evaluated, feasible
	if err != nil {
		a.evaluated, a.feasible = a.rejected()+a.passed, a.passed
		a.fail(err)
	}
	if a.unschedulable {
		a.feasible = 0
	}
	a.complete()
	a.explain(p)
	a.bytes = a.size()

	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.dropGone()
	kept := &pod{uid: p.UID, namespace: p.Namespace, name: p.Name}
	if element, found := r.pods[p.UID]; found {
		kept = element.Value.(*pod)
	}
	r.move(kept, a)
	most := attemptsOfPod
	if r.waiting.Len() > r.options.Pods {
		most = 1
	}
	if last := len(kept.attempts) - 1; last >= 0 && kept.attempts[last].ended.IsZero() && kept.attempts[last].number == a.number {
		r.bytes -= kept.attempts[last].bytes
		kept.attempts = append([]*Attempt(nil), kept.attempts[:last]...)
	}
	for len(kept.attempts) >= most {
		r.bytes -= kept.attempts[0].bytes
		kept.attempts = append([]*Attempt(nil), kept.attempts[1:]...)
	}
	kept.attempts = append(kept.attempts, a)
	r.bytes += a.bytes
	r.makeRoom()
}

// dropGone moves the two pods that have waited longest since their last attempt to those that are done, if they are
// gone. Pods that wait are tried again, so all that are gone come to the end of the list.
func (r *Recorder) dropGone() {
	for i := 0; i < 2 && r.Sources.Pods != nil && r.waiting.Len() > 0; i++ {
		oldest := r.waiting.Back().Value.(*pod)
		if seen, err := r.Sources.Pods.Pods(oldest.namespace).Get(oldest.name); err == nil && seen.UID == oldest.uid && seen.Spec.NodeName == "" {
			return
		}
		r.waiting.Remove(r.waiting.Back())
		r.pods[oldest.uid] = r.done.PushFront(oldest)
	}
}

// move puts a pod at the front of the list where its last attempt belongs.
func (r *Recorder) move(p *pod, last *Attempt) {
	if element, found := r.pods[p.uid]; found {
		// Only one of them has it.
		r.waiting.Remove(element)
		r.done.Remove(element)
	}
	if last.node != "" && !last.failed {
		r.pods[p.uid] = r.done.PushFront(p)
	} else {
		r.pods[p.uid] = r.waiting.PushFront(p)
	}
}

// makeRoom removes pods until the limits are met; one always stays.
func (r *Recorder) makeRoom() {
	for {
		from := r.done
		switch {
		case r.done.Len() > r.options.Pods:
		case r.bytes <= r.options.Bytes || r.done.Len()+r.waiting.Len() == 1:
			if r.waiting.Len() <= waitingPods*r.options.Pods {
				return
			}
			from = r.waiting
		case r.done.Len() == 0:
			from = r.waiting
		}
		gone := from.Remove(from.Back()).(*pod)
		delete(r.pods, gone.uid)
		for _, a := range gone.attempts {
			r.bytes -= a.bytes
		}
	}
}

// Failed records why the last attempt of a pod did not bind it, in its scheduling cycle or later.
func (r *Recorder) Failed(p *v1.Pod, err error) {
	r.change(p, false, func(a *Attempt) {
		if !a.failed {
			a.fail(err)
		}
		a.ended = r.now()
	})
}

// Bound records that the last attempt of a pod has bound it.
func (r *Recorder) Bound(p *v1.Pod) {
	r.change(p, false, func(a *Attempt) { a.bound, a.ended = true, r.now() })
}

// Tell sets what a plugin says of the last attempt of a pod after its scheduling cycle. The text of a later call
// replaces that of an earlier one.
func (r *Recorder) Tell(p *v1.Pod, plugin, text string) {
	r.change(p, true, func(a *Attempt) { a.told = PluginWords{plugin, short(text)} })
}

// change replaces the last attempt of a pod with a changed copy, because readers may have the attempt. It changes an
// attempt that has ended only with ended.
func (r *Recorder) change(p *v1.Pod, ended bool, change func(*Attempt)) {
	if r == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if element, found := r.pods[p.UID]; found {
		attempts := element.Value.(*pod).attempts
		if last := attempts[len(attempts)-1]; ended || last.ended.IsZero() {
			changed := *last
			change(&changed)
			changed.bytes = changed.size()
			attempts[len(attempts)-1] = &changed
			r.bytes += changed.bytes - last.bytes
			r.move(element.Value.(*pod), &changed)
			r.makeRoom()
		}
	}
}
