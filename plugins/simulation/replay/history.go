// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// latest returns the pod that a history means by a name, or the one with which its owner has replaced it here. Nil if it
// has ended.
func (s *Simulation) latest(key string) *pod {
	p := s.named[key]
	for p != nil && p.next != nil {
		p = p.next
	}
	if p == nil || p.ended {
		return nil
	}
	return p
}

// free ends the pod of a name. An API server refuses another one before.
func (s *Simulation) free(key string) {
	if p := s.latest(key); p != nil {
		p.unwanted = true
		s.disrupt(p)
		s.end(p)
	}
}

// createNamed adds a pod of a history.
func (s *Simulation) createNamed(w *input.Workload) {
	key := w.Pod.Namespace + "/" + w.Named()
	s.free(key)
	// No scheduler chooses the node of a static pod.
	if on := strings.TrimPrefix(w.Owner, "Node/"); on != w.Owner && s.nodes[on] != nil {
		s.planEnd(s.adoptAs(s.real(w, on), w))
		return
	}
	p := s.create(w, w.Named(), 0)
	p.owes, s.named[key] = true, p
}

// deleteNamed deletes a pod of a history. Its owner wants one pod less, because the history has the one in its place.
func (s *Simulation) deleteNamed(of *input.Event) {
	p := s.latest(of.Delete)
	if p == nil {
		return
	}
	p.unwanted = true
	object := s.current(p.key)
	switch {
	case p.node == nil:
		s.end(p)
	case of.Grace != nil:
		s.delete(object, false, *of.Grace)
	default:
		s.delete(object, false, s.grace(object))
	}
}

// real returns a pod of a history as it was on a node.
func (s *Simulation) real(w *input.Workload, on string) *v1.Pod {
	of := shallow(w.Pod)
	of.Name = w.Named()
	of.UID, of.CreationTimestamp = types.UID(fmt.Sprintf("%s/%s/%d", of.Namespace, of.Name, s.adopted)), metav1.Now()
	of.OwnerReferences, of.Spec.NodeName, of.Status.Phase = input.OwnerReferences(w.Owner), on, v1.PodRunning
	laterfields.Pods.Set(of.UID, w.Later)
	s.admit(of)
	s.leaveOutClaims(of)
	return of
}

// leaveOutClaims drops the volumes of a history's pod whose claims are unknown: it would wait for ever.
func (s *Simulation) leaveOutClaims(of *v1.Pod) {
	if !s.options.History {
		return
	}
	var kept []v1.Volume
	for _, volume := range of.Spec.Volumes {
		claim := volume.PersistentVolumeClaim
		if claim == nil || s.store.of(&v1.PersistentVolumeClaim{}).get(of.Namespace+"/"+claim.ClaimName) != nil {
			kept = append(kept, volume)
		}
	}
	if len(kept) < len(of.Spec.Volumes) {
		s.notes["pods have claims that the snapshot lacks, and are scheduled without these volumes"]++
		of.Spec.Volumes = kept
	}
}

// step is what happens in a history at a time; order is that of steps of one time.
type step struct {
	at    time.Duration
	order int
	do    func()
	// binding is set if do is nil.
	binding *binding
}

// binding is a pod of a history that is bound.
type binding struct {
	*input.Workload
	// pod is the pod on its node, or nil before it is bound, and if the node is gone.
	pod *pod
}

// The order of steps whose times are equal, because they are known to the second: what makes place comes first.
const (
	nodeComes = iota
	podEnds
	podBound
	nodeGoes
)

// burst is the time within which bindings follow each other in another order than their decisions: the scheduler writes
// several at a time.
const burst = 50 * time.Millisecond

// inOrder sorts steps. Those that are equal keep the order of the pods' creation.
func inOrder(steps []step) {
	sort.SliceStable(steps, func(i, j int) bool {
		a, b := &steps[i], &steps[j]
		return a.at < b.at || a.at == b.at && a.order < b.order
	})
}

// joinBursts gives the bindings of a burst the time of its last one. So they are in the order of creation again.
func joinBursts(steps []step) {
	var bound []*step
	for i := range steps {
		if steps[i].order == podBound {
			bound = append(bound, &steps[i])
		}
	}
	sort.SliceStable(bound, func(i, j int) bool { return bound[i].at < bound[j].at })
	last := time.Duration(0)
	for i := len(bound) - 1; i >= 0; i-- {
		if i == len(bound)-1 || last-bound[i].at > burst {
			last = bound[i].at
		}
		bound[i].at = last
	}
}

// later returns the later time. A pod is bound up to a burst later than in the history, and must be there when it ends.
func later(a, b time.Duration) time.Duration {
	if a < b {
		return b
	}
	return a
}

// CheckHistory schedules each pod of a history when it was really bound, and compares with its real node. All else
// happens as it really did.
func (s *Simulation) CheckHistory(events []input.Event) result.Check {
	check := result.Check{Others: map[string][]string{}}
	var steps []step
	var expected []*input.Workload
	bounds, never := map[string]time.Duration{}, 0
	plan := func(at time.Duration, order int, do func()) {
		steps = append(steps, step{at: at, order: order, do: do})
	}
	for i := range events {
		of := &events[i]
		switch w := of.Pods; {
		case w != nil && w.Real.Node == "":
			never++
		case w != nil:
			expected = append(expected, w)
			bound, b := of.At+w.Real.Waited, &binding{Workload: w}
			bounds[w.Pod.Namespace+"/"+w.Named()] = bound
			steps = append(steps, step{at: bound, order: podBound, binding: b})
			if w.Duration > 0 {
				plan(later(bound+w.Duration, bound+burst+1), podEnds, func() { s.end(b.pod) })
			}
		case of.Delete != "":
			if of.Grace == nil {
				continue // The history ends before the pod.
			}
			var p *pod
			at := of.At
			if bound, known := bounds[of.Delete]; known {
				at = later(at, bound+burst+1)
			}
			plan(at, podEnds, func() { p = s.leave(of) })
			plan(at+*of.Grace, podEnds, func() { s.end(p) })
		case of.NodeObject != nil:
			plan(of.At, nodeComes, func() { s.Apply(of) })
		default:
			plan(of.At, nodeGoes, func() { s.Apply(of) })
		}
	}
	joinBursts(steps)
	inOrder(steps)
	if never > 0 {
		s.notes[fmt.Sprintf("pods that were never bound are not compared: %d", never)]++
	}
	s.Expect(expected, 0)
	for i := 0; i < len(steps); {
		if s.now() < steps[i].at && s.Advance(steps[i].at, 0, func(time.Duration, int64) {}) != nil {
			break
		}
		var bindings []*binding
		for first := steps[i].at; i < len(steps) && steps[i].at == first && steps[i].do == nil; i++ {
			bindings = append(bindings, steps[i].binding)
		}
		if len(bindings) == 0 {
			steps[i].do()
			i++
		}
		s.checkBurst(bindings, &check)
	}
	return check
}

// checkBurst checks pods that were bound at the same time, as far as that is known, and puts them on their real nodes. Their
// order is unknown: next comes the first one that agrees, or if none does, the first one.
func (s *Simulation) checkBurst(bindings []*binding, check *result.Check) {
	// A new pod is tried at once, and one that waits after its backoff.
	sort.SliceStable(bindings, func(i, j int) bool { return bindings[i].Real.Waited/time.Second < bindings[j].Real.Waited/time.Second })
	for len(bindings) > 0 {
		next, at, decided := verdict{}, 0, map[string]string{}
		var pod *v1.Pod
		for i, b := range bindings {
			s.free(b.Pod.Namespace + "/" + b.Named())
			if kind := strings.SplitN(b.Owner, "/", 2)[0]; kind == "DaemonSet" || kind == "Node" {
				pod, at = nil, i
				check.Kept++
				break
			}
			// The pods of an owner are equal.
			if node, known := decided[b.Owner]; known && b.Owner != "" && node != b.Real.Node {
				continue
			}
			real := s.real(b.Workload, b.Real.Node)
			s.claim(real, nil)
			v := s.decide(real)
			if decided[b.Owner] = v.node; pod == nil || v.agrees() {
				pod, next, at = real, v, i
			}
			if v.agrees() {
				break
			}
		}
		b := bindings[at]
		bindings = append(bindings[:at:at], bindings[at+1:]...)
		if pod != nil {
			check.Pods++
			next.count(pod, check)
		} else {
			pod = s.real(b.Workload, b.Real.Node)
		}
		if s.nodes[b.Real.Node] != nil {
			b.pod = s.adoptAs(pod, b.Workload)
		}
	}
}

// leave begins the grace period of a pod, and returns it, or nil if it is not there.
func (s *Simulation) leave(of *input.Event) *pod {
	p := s.latest(of.Delete)
	if p == nil {
		return nil
	}
	object, ends := shallow(s.current(p.key)), metav1.NewTime(time.Now().Add(*of.Grace))
	object.DeletionTimestamp, p.deleted = &ends, true
	s.store.put(object)
	return p
}
