// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

// The scheduler assumes a pod on the node that it chose, and counts it there until it sees the pod bound. A pod that
// goes to another node must be counted there too, in the cycles of all profiles, or that node gets more than it can
// hold. What all profiles count besides the pods on a node are the pods nominated to it, so a place is held by a
// nominated pod.
//
//  1. It is a stand-in: a copy of the pod under another UID. The pod's own nomination would not do, because the
//     scheduler drops that as soon as it sees the pod bound, while a cycle may be under way whose snapshot is older
//     than the binding; that cycle would find neither the nomination nor the pod.
//  2. It is nominated in Reserve, in the goroutine of the scheduling cycles: no cycle comes between the filters that
//     found the node feasible and the nomination.
//  3. It is given up when the pod has not got the node (Unreserve; PostBind if another plugin bound the pod), or when a
//     snapshot holds the pod on the node (PreFilter): then all later cycles count the pod itself.
//  4. PreFilter is called for pods of this profile only. If none comes, the place is given up when the pod was seen
//     bound or gone twice in the informer's cache, lookInterval apart. The scheduler's cache is fed by the same
//     informer and lags behind by milliseconds, and so do the filters of a cycle behind its snapshot. A cycle with slow
//     HTTP extenders may take longer than lookInterval, but they are called after the filters, by which alone nodes are
//     found to fit. Preemption reads nominations after the extenders: it may then take the node for emptier than it is,
//     and evict too little. Nothing is bound on its word, the filters of the next attempt count again.
//  5. Between the binding and rule 3 or 4 the node counts the pod twice; it may look full, never empty.
const (
	lookInterval = 5 * time.Second
	looks        = 2
)

// standInPriority is the highest priority below that of system-critical pods: the place counts for all pods but for
// those, which no disturbed pod may keep from a node. A system-critical pod can so take a place that is held; the
// kubelet then lets it in and turns the other pod away.
const standInPriority = scheduling.SystemCriticalPriority - 1

// Reserve says what was done to the choice of the node. It holds the drawn node's place, if another one is the best,
// until the pod is bound there.
func (pl *Chaos) Reserve(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) *framework.Status {
	current := pl.disturbed(state, pod)
	if current == nil {
		return nil
	}
	atomic.StoreUint32(&current.outcome.reserved, 1)
	pl.tellChoice(pod, current)
	if current.drawn == "" || current.drawn == nodeName || pl.boundByExtender(pod) {
		return nil
	}
	current.redirecting = true
	pl.log("Pod goes to a random node", pod, current, "node", current.drawn, "best", nodeName)
	if pl.args.DryRun {
		// Bind counts, when it is done; a dry run does not come so far.
		pl.counters.redirected.Inc()
		return nil
	}
	current.reservation = pl.reservations.hold(pod, current.number, current.drawn)
	return nil
}

// tellChoice sends one event about all that Chaos did to the choice of the node, if it did anything.
func (pl *Chaos) tellChoice(pod *v1.Pod, current *attempt) {
	if pl.args.DryRun {
		return
	}
	var done []string
	if atomic.LoadUint32(&current.outcome.rejected) == 1 {
		done = append(done, fmt.Sprintf("the coin fell against some nodes (rejectPercent %d)", pl.args.RejectPercent))
	}
	if atomic.LoadUint32(&current.scored) == 1 {
		done = append(done, "a die scored the nodes (randomScore)")
	}
	if len(done) > 0 {
		pl.tell(pod, "Choose", "The choice of a node was disturbed: %s", strings.Join(done, "; "))
	}
}

// Unreserve gives the place up, and ends the delay.
func (pl *Chaos) Unreserve(_ context.Context, state *framework.CycleState, _ *v1.Pod, _ string) {
	if current := pl.attempts.read(state); current != nil {
		current.end()
		pl.reservations.giveUp(current.reservation)
	}
}

// boundByExtender says whether an extender will bind the pod: extenders come before all Bind plugins.
func (pl *Chaos) boundByExtender(pod *v1.Pod) bool {
	for _, extender := range pl.handle.Extenders() {
		if extender.IsBinder() && extender.IsInterested(pod) {
			return true
		}
	}
	return false
}

// reservation is a place held on a node.
type reservation struct {
	uid     types.UID
	node    string
	standIn *v1.Pod
	// given is closed when the place is given up.
	given chan struct{}
}

// reservations are the places held by one profile's plugin.
type reservations struct {
	handle framework.Handle
	clock  clock.Clock
	pods   corelisters.PodLister

	mu   sync.Mutex
	held map[*reservation]struct{}
}

func newReservations(handle framework.Handle, clock clock.Clock) *reservations {
	return &reservations{
		handle: handle,
		clock:  clock,
		pods:   handle.SharedInformerFactory().Core().V1().Pods().Lister(),
		held:   map[*reservation]struct{}{},
	}
}

// hold nominates a stand-in for the pod to the node.
func (r *reservations) hold(pod *v1.Pod, attempt int64, node string) *reservation {
	place := &reservation{uid: pod.UID, node: node, standIn: standIn(pod, attempt, node), given: make(chan struct{})}
	r.mu.Lock()
	r.held[place] = struct{}{}
	r.mu.Unlock()
	// The update of a nomination that is not there adds it. Unlike the call that only adds, it has the same form in all
	// releases of 1.23.
	r.handle.UpdateNominatedPod(place.standIn, framework.NewPodInfo(place.standIn))
	go r.watch(place, r.clock.NewTimer(lookInterval))
	return place
}

// standIn makes the pod that is nominated: it takes what the pod takes. Its UID is its own at each attempt, so that
// nothing but giving it up removes it.
func standIn(pod *v1.Pod, attempt int64, node string) *v1.Pod {
	replica := pod.DeepCopy()
	replica.UID = types.UID(fmt.Sprintf("%s/chaos/%d", pod.UID, attempt))
	replica.Spec.NodeName = ""
	priority := standInPriority
	replica.Spec.Priority = &priority
	replica.Status.NominatedNodeName = node
	return replica
}

// giveUp ends a reservation; nil and one that was given up before are nothing to do.
func (r *reservations) giveUp(place *reservation) {
	if place == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, found := r.held[place]; !found {
		return
	}
	delete(r.held, place)
	close(place.given)
	r.handle.DeleteNominatedPodIfExists(place.standIn)
}

// settle gives up the places whose pods are in the snapshot. It must be called in a scheduling cycle.
func (r *reservations) settle(snapshot framework.NodeInfoLister) {
	for _, place := range r.list() {
		if nodeInfo, err := snapshot.Get(place.node); err == nil && holdsPod(nodeInfo, place.uid) {
			r.giveUp(place)
		}
	}
}

func (r *reservations) list() []*reservation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.held) == 0 {
		return nil
	}
	places := make([]*reservation, 0, len(r.held))
	for place := range r.held {
		places = append(places, place)
	}
	return places
}

func holdsPod(nodeInfo *framework.NodeInfo, uid types.UID) bool {
	for _, podInfo := range nodeInfo.Pods {
		if podInfo.Pod.UID == uid {
			return true
		}
	}
	return false
}

// watch gives the place up after the pod was seen bound or gone, see rule 4.
func (r *reservations) watch(place *reservation, timer clock.Timer) {
	defer timer.Stop()
	for seen := 0; seen < looks; {
		select {
		case <-place.given:
			return
		case <-timer.C():
		}
		if r.boundOrGone(place) {
			seen++
		}
		timer.Reset(lookInterval)
	}
	r.giveUp(place)
}

func (r *reservations) boundOrGone(place *reservation) bool {
	pod, err := r.pods.Pods(place.standIn.Namespace).Get(place.standIn.Name)
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return pod.UID != place.uid || pod.Spec.NodeName != ""
}
