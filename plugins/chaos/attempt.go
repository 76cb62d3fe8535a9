// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/draw"
	"k8s.io/utils/lru"
)

const (
	attemptKey framework.StateKey = Name + "/cycle"
	// rememberedPods bounds the memory of the outcomes, as draw.Attempts bounds that of the numbers: about 3 MiB when
	// full.
	rememberedPods = 1 << 14
)

// attempt is what is known about one attempt to schedule a pod that may be disturbed. It lies in the cycle's state.
//
// Who may touch what, so that no lock is needed: keys and number never change. The outcome and scored are atomic,
// because Filter and Score are called in parallel. drawn is written by PreScore; redirecting, reservation and
// stopWaiting by Reserve and Permit, in the goroutine of the scheduling cycle, which then starts that of the binding
// cycle, and by no other afterwards.
type attempt struct {
	keys
	number  int64
	outcome *outcome

	// scored is 1 after a node was scored by the die. It is atomic.
	scored uint32
	// drawn is the node that the pod goes to instead of the best; "" if it goes to the best.
	drawn string
	// redirecting says that the pod goes there, or would but for the dry run.
	redirecting bool
	// reservation holds the place on that node; nil if there is none.
	reservation *reservation
	// redirected says that the pod was bound there; Bind writes it, for PostBind.
	redirected bool
	// stopWaiting ends the goroutine that allows the pod after its delay; nil if there is none.
	stopWaiting context.CancelFunc
}

// outcome is what later attempts must know about one.
type outcome struct {
	// spared says that Chaos leaves the attempt alone: after too many rejections in a row, or because room was made for
	// the pod on a node.
	spared bool
	// streak is how many attempts before this one ended in Chaos' rejections, since the pod got a node or was spared.
	streak int32
	// rejected and reserved are 1 after Chaos rejected a node, and after the pod got one. They are atomic.
	rejected, reserved uint32
}

// Clone returns the attempt itself: a copy of the cycle's state belongs to the same attempt.
func (a *attempt) Clone() framework.StateData {
	return a
}

// end stops what the attempt left running.
func (a *attempt) end() {
	if a.stopWaiting != nil {
		a.stopWaiting()
	}
}

// nextStreak is the streak of the attempt after this one. An attempt that failed for another reason leaves it as it is:
// otherwise such failures in between would let Chaos keep a pod from its node for ever.
func (o *outcome) nextStreak() int32 {
	if o.spared || atomic.LoadUint32(&o.reserved) == 1 {
		return 0
	}
	if atomic.LoadUint32(&o.rejected) == 1 {
		return o.streak + 1
	}
	return o.streak
}

// attempts knows the attempts of all pods.
type attempts struct {
	counted   *draw.Attempts
	maxStreak int32

	// mu makes sure that an attempt is begun once, by the call that comes first.
	mu       sync.Mutex
	outcomes *lru.Cache // types.UID → *outcome of the pod's latest attempt
}

func newAttempts(seed int64, maxStreak int32) *attempts {
	return &attempts{counted: draw.NewAttempts(seed, Name), maxStreak: maxStreak, outcomes: lru.New(rememberedPods)}
}

// read returns the attempt that a cycle's state, or a copy of it, belongs to; nil if it was not begun.
func (a *attempts) read(state *framework.CycleState) *attempt {
	data, err := state.Read(attemptKey)
	if err != nil {
		return nil
	}
	found, _ := data.(*attempt)
	return found
}

// of returns the attempt that a cycle is, and begins it if this is the first call in the cycle. The state must not be a
// copy, as Filter may get it.
func (a *attempts) of(state *framework.CycleState, pod *v1.Pod) (current *attempt, begun bool) {
	if current := a.read(state); current != nil {
		return current, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if current := a.read(state); current != nil {
		return current, false
	}
	streak := int32(0)
	if latest, found := a.outcomes.Get(pod.UID); found {
		streak = latest.(*outcome).nextStreak()
	}
	counted := a.counted.Of(state, pod.UID)
	current = &attempt{
		keys:    newKeys(counted.Key),
		number:  counted.Number,
		outcome: &outcome{streak: streak, spared: streak >= a.maxStreak || hasRoomMade(pod)},
	}
	a.outcomes.Add(pod.UID, current.outcome)
	state.Write(attemptKey, current)
	return current, true
}

// hasRoomMade says whether pods were evicted from a node for this one. Their end must not have been in vain.
func hasRoomMade(pod *v1.Pod) bool {
	return pod.Status.NominatedNodeName != ""
}

// disturbed returns the attempt that a cycle is if Chaos may disturb it, else nil.
func (pl *Chaos) disturbed(state *framework.CycleState, pod *v1.Pod) *attempt {
	if !pl.isTarget(pod) {
		return nil
	}
	current, begun := pl.attempts.of(state, pod)
	if begun {
		pl.begin(pod, current)
	}
	if current.outcome.spared {
		return nil
	}
	return current
}
