// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/draw"
	"k8s.io/utils/lru"
)

const (
	attemptKey framework.StateKey = Name + "/attempt"
	// rememberedPods bounds the memory of the attempts, about 5 MiB when full.
	rememberedPods = 1 << 14
)

// attempt is what is known about one attempt to schedule a pod that may be disturbed. It lies in the cycle's state, and
// the next attempt of the pod looks at it.
//
// No lock is needed: only rejected is written while Filter is called in parallel, and it is atomic. All else is written
// when the attempt begins, or by NormalizeScore, Reserve and Permit, one after the other; then the binding cycle has it.
type attempt struct {
	keys
	// number counts the pod's attempts, from 1.
	number int64
	// spared says that Chaos leaves the attempt alone: after too many rejections in a row, or because room was made for
	// the pod on a node.
	spared bool
	// streak is how many attempts before this one ended in Chaos' rejections, since the pod got a node or was spared.
	streak int32
	// rejected is 1 after Chaos rejected a node. It is atomic.
	rejected uint32
	// scored says that the die scored the nodes.
	scored bool
	// drawn is the random node that the pod is to go to; "" if it goes to the best.
	drawn string
	// reserved says that the pod got a node.
	reserved bool
	// stopWaiting ends the goroutine that allows the pod after its delay; nil if there is none.
	stopWaiting context.CancelFunc
}

// Clone returns the attempt itself: a copy of the cycle's state belongs to the same attempt.
func (a *attempt) Clone() framework.StateData {
	return a
}

// nextStreak is the streak of the attempt after this one. An attempt that failed for another reason leaves it as it is:
// otherwise such failures in between would let Chaos keep a pod from its node for ever.
func (a *attempt) nextStreak() int32 {
	switch {
	case a.spared || a.reserved:
		return 0
	case atomic.LoadUint32(&a.rejected) == 1:
		return a.streak + 1
	}
	return a.streak
}

// attempts knows the latest attempts of all pods.
type attempts struct {
	seed      int64
	maxStreak int32

	// mu makes sure that an attempt is begun once, by the call that comes first.
	mu     sync.Mutex
	latest *lru.Cache // types.UID → *attempt
}

func newAttempts(seed int64, maxStreak int32) *attempts {
	return &attempts{seed: seed, maxStreak: maxStreak, latest: lru.New(rememberedPods)}
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
	current = &attempt{number: 1}
	if latest, found := a.latest.Get(pod.UID); found {
		current.number = latest.(*attempt).number + 1
		current.streak = latest.(*attempt).nextStreak()
	}
	// Pods were evicted for a pod with a nomination. Their end must not have been in vain.
	current.spared = current.streak >= a.maxStreak || pod.Status.NominatedNodeName != ""
	current.keys = newKeys(draw.Key(a.seed, string(pod.UID), strconv.FormatInt(current.number, 10)))
	a.latest.Add(pod.UID, current)
	state.Write(attemptKey, current)
	return current, true
}

// keys are the keys of an attempt's draws, each independent of the others. They hold the seed, the pod's UID and the
// attempt's number.
type keys struct {
	coins, dice, delay, redirect, target uint64
}

func newKeys(attempt uint64) keys {
	return keys{
		coins:    draw.Mix(attempt, "coins"),
		dice:     draw.Mix(attempt, "dice"),
		delay:    draw.Mix(attempt, "delay"),
		redirect: draw.Mix(attempt, "redirect"),
		target:   draw.Mix(attempt, "target"),
	}
}

// rejects flips the node's coin, which falls against it in percent of the cases.
func (k *keys) rejects(nodeName string, percent int32) bool {
	return happens(draw.Mix(k.coins, nodeName), percent)
}

// score throws the node's die: 0 to 100, each as likely.
func (k *keys) score(nodeName string) int64 {
	return int64(draw.Below(draw.Mix(k.dice, nodeName), uint64(framework.MaxNodeScore+1)))
}

// permitDelay draws a delay of more than 0 and at most max, uniformly. max is more than 0.
func (k *keys) permitDelay(max time.Duration) time.Duration {
	return 1 + time.Duration(draw.Below(k.delay, uint64(max)))
}

// redirects says whether the pod goes to a random node: so it is in percent of the cases.
func (k *keys) redirects(percent int32) bool {
	return happens(k.redirect, percent)
}

// drawNode draws one of the nodes, each as likely: the one with the lowest number, if each draws a number. So the order
// of the nodes does not matter, and of two lists that differ in few nodes mostly the same one is drawn (rendezvous
// hashing: D. Thaler and C. Ravishankar, IEEE/ACM Transactions on Networking 6(1), 1998). It is "" without nodes.
func (k *keys) drawNode(nodes framework.NodeScoreList) string {
	drawn, lowest := "", uint64(0)
	for i := range nodes {
		if number := draw.Mix(k.target, nodes[i].Name); drawn == "" || number < lowest {
			drawn, lowest = nodes[i].Name, number
		}
	}
	return drawn
}

func happens(key uint64, percent int32) bool {
	return draw.Below(key, 100) < uint64(percent)
}
