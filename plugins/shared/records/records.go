// SPDX-License-Identifier: Apache-2.0

// Package records keeps what the scheduler decided about its latest pods, and why, in memory: for each attempt which
// plugins rejected how many nodes and with what reasons, what the best nodes scored, and what came of it. It records no
// field of a pod but its names, and what plugins say of it.
//
// A nil *Recorder keeps nothing, and a nil *Attempt is of no Recorder: all their methods may be called.
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
	// attemptsOfPod are kept of each pod: the last ones.
	attemptsOfPod = 5
	// bestNodes are kept of each attempt, and the chosen node.
	bestNodes = 10
	// sampleNodes are named for each text with which nodes were rejected, and textsOfAttempt such texts are kept apart.
	sampleNodes    = 5
	textsOfAttempt = 16
	// bytesOfText are kept of what a plugin, an extender or the scheduler says.
	bytesOfText = 1 << 10
)

// Options are the bounds of a Recorder.
type Options struct {
	// Pods is how many pods are kept. The one whose last attempt is the oldest gives way to a new one.
	Pods int
	// Bytes is about how much memory the attempts may take.
	Bytes int64
}

// DefaultOptions are those of a scheduler that is told nothing else.
var DefaultOptions = Options{Pods: 1000, Bytes: 64 << 20}

// Sources are what a Recorder asks when it answers.
type Sources struct {
	// Pods are the cluster's, for the nodes that waiting pods are nominated for.
	Pods corelisters.PodLister
	// Queue calls visit for each pod that waits, in no order, and Lengths says how many do. What visit gets is not to
	// be kept: it changes.
	Queue   func(visit func(where Where, info *framework.QueuedPodInfo, until time.Time))
	Lengths func() QueueLengths
	// Permit has the pods that wait for Permit plugins.
	Permit func(visit func(profile string, waiting framework.WaitingPod))
	// WhatIf finds what would become of a pod, and says for how long scheduling has waited for it; nil where that
	// cannot be known. all asks for the verdicts of all nodes.
	WhatIf func(ctx context.Context, pod *v1.Pod, all bool) (*WhatIf, time.Duration, error)
	// Explainers are the plugins of each profile that have words of their own.
	Explainers map[string][]Explainer
	// Version is of the scheduler, and Configuration what it was configured with, in short.
	Version, Configuration string
}

// Recorder keeps attempts by pod. One goroutine schedules, and calls Next, Begin and End; all others may call the rest
// at any time.
type Recorder struct {
	// Sources are set before anything is recorded or asked.
	Sources Sources

	options Options
	now     func() time.Time
	// next is the pod that the queue has given last, current the attempt of this cycle, scratch memory for the scores
	// of one cycle, and plugins what Hold was told of each profile.
	next    *framework.QueuedPodInfo
	wokenBy string
	current *Attempt
	scratch []int64
	plugins map[string][]Plugin

	whatIfs whatIfs

	// extenders are the addresses of extenders, and what is shown of them.
	extenders map[string]string

	// queueKept is the queue as it was told last, at queueMade.
	queueMutex sync.Mutex
	queueKept  Queue
	queueMade  time.Time

	mutex   sync.Mutex
	pods    map[types.UID]*list.Element // of *pod
	order   *list.List                  // the pod with the latest attempt is the first
	bytes   int64
	leader  string
	history []QueueLengths
}

type pod struct {
	uid             types.UID
	namespace, name string
	attempts        []*Attempt
}

// New returns nil if nothing is to be kept.
func New(options Options) *Recorder {
	if options.Pods <= 0 || options.Bytes <= 0 {
		return nil
	}
	return &Recorder{
		options: options, now: time.Now, plugins: make(map[string][]Plugin),
		pods: make(map[types.UID]*list.Element), order: list.New(), extenders: make(map[string]string),
		whatIfs: whatIfs{waiting: make(chan struct{}, whatIfsWaiting), place: make(chan struct{}, 1)},
	}
}

// Next notes what the queue knows of the pod whose attempt begins next, and the event that has woken it.
func (r *Recorder) Next(podInfo *framework.QueuedPodInfo, wokenBy string) {
	if r != nil {
		r.next, r.wokenBy = podInfo, wokenBy
	}
}

// Begin begins an attempt to schedule a pod, and leaves it in the state of the cycle, for Of. nodes is how many the
// cluster has.
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

// End keeps an attempt whose scheduling cycle has come to a node, or to an error. It is not changed any more.
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
	element, found := r.pods[p.UID]
	if !found {
		element = r.order.PushFront(&pod{uid: p.UID, namespace: p.Namespace, name: p.Name})
		r.pods[p.UID] = element
	}
	r.order.MoveToFront(element)
	kept := element.Value.(*pod)
	if len(kept.attempts) == attemptsOfPod {
		r.bytes -= kept.attempts[0].bytes
		copy(kept.attempts, kept.attempts[1:])
		kept.attempts = kept.attempts[:attemptsOfPod-1]
	}
	kept.attempts = append(kept.attempts, a)
	r.bytes += a.bytes
	r.makeRoom()
}

// makeRoom lets pods go until the bounds hold; the latest stays.
func (r *Recorder) makeRoom() {
	for r.order.Len() > r.options.Pods || r.bytes > r.options.Bytes && r.order.Len() > 1 {
		gone := r.order.Remove(r.order.Back()).(*pod)
		delete(r.pods, gone.uid)
		for _, a := range gone.attempts {
			r.bytes -= a.bytes
		}
	}
}

// Failed notes why the last attempt of a pod did not bind it, in its scheduling cycle or after it.
func (r *Recorder) Failed(p *v1.Pod, err error) {
	r.change(p, func(a *Attempt) {
		if !a.failed {
			a.fail(err)
		}
		a.ended = r.now()
	})
}

// Bound notes that the last attempt of a pod has bound it.
func (r *Recorder) Bound(p *v1.Pod) {
	r.change(p, func(a *Attempt) { a.bound, a.ended = true, r.now() })
}

// change puts a changed copy in place of the last attempt of a pod, if there is one that has not ended: readers may
// have the attempt.
func (r *Recorder) change(p *v1.Pod, change func(*Attempt)) {
	if r == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if element, found := r.pods[p.UID]; found {
		attempts := element.Value.(*pod).attempts
		if last := attempts[len(attempts)-1]; last.ended.IsZero() {
			changed := *last
			change(&changed)
			changed.bytes = changed.size()
			attempts[len(attempts)-1] = &changed
			r.bytes += changed.bytes - last.bytes
			r.makeRoom()
		}
	}
}
