// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"strconv"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pseudorandom"
	"k8s.io/utils/lru"
)

const (
	attemptKey framework.StateKey = Name + "/attempt"
	// rememberedPods bounds the memory of the attempts, about 5 MiB when full.
	rememberedPods = 1 << 14
)

// attempt is one attempt to schedule a pod that may be disturbed. It is stored in the cycle's state, and the next
// attempt of the pod reads it.
//
// It needs no lock: only rejected is written while Filter is called in parallel, and it is atomic. The other fields are
// written when the attempt begins, or by NormalizeScore and Reserve, one after the other.
type attempt struct {
	keys
	// number counts the pod's attempts, from 1.
	number int64
	// spared is set if Chaos does not disturb the attempt: after too many rejections in a row, or because pods were
	// preempted for the pod.
	spared bool
	// streak is the number of earlier attempts that failed with rejections of Chaos, since the pod got a node or was
	// spared.
	streak int32
	// rejected is 1 after Chaos rejected a node. It is atomic.
	rejected uint32
	// scored is set if the nodes have random scores.
	scored bool
	// drawn is the random node for the pod, or "" if the pod goes to the best one.
	drawn string
	// reserved is set when the pod got a node.
	reserved bool
}

// Clone returns the attempt itself: a copy of the cycle's state belongs to the same attempt.
func (a *attempt) Clone() framework.StateData {
	return a
}

// nextStreak returns the streak of the next attempt. An attempt that failed for another reason does not reset it,
// because then Chaos could keep a pod pending for ever if other failures occur in between.
func (a *attempt) nextStreak() int32 {
	switch {
	case a.spared || a.reserved:
		return 0
	case atomic.LoadUint32(&a.rejected) == 1:
		return a.streak + 1
	}
	return a.streak
}

// attempts holds the latest attempt of each pod.
type attempts struct {
	seed      int64
	maxStreak int32

	// mu ensures that only the first call in a cycle begins an attempt.
	mu     sync.Mutex
	latest *lru.Cache // types.UID → *attempt
}

func newAttempts(seed int64, maxStreak int32) *attempts {
	return &attempts{seed: seed, maxStreak: maxStreak, latest: lru.New(rememberedPods)}
}

// read returns the attempt of a cycle's state, or of a copy of it. It returns nil if the attempt has not begun.
func (a *attempts) read(state *framework.CycleState) *attempt {
	data, err := state.Read(attemptKey)
	if err != nil {
		return nil
	}
	found, _ := data.(*attempt)
	return found
}

// of returns the attempt of a cycle. The first call in the cycle begins it. The state must not be a copy, as Filter may
// get it.
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
	// Pods were preempted for a pod with a nomination, so it must get their place.
	current.spared = current.streak >= a.maxStreak || pod.Status.NominatedNodeName != ""
	current.keys = newKeys(pseudorandom.Key(a.seed, string(pod.UID), strconv.FormatInt(current.number, 10)))
	a.latest.Add(pod.UID, current)
	state.Write(attemptKey, current)
	return current, true
}

// keys are the keys of an attempt's pseudorandom numbers, each independent of the others. They depend on the seed, the
// pod's UID and the attempt's number.
type keys struct {
	coins, dice, redirect, target uint64
}

func newKeys(attempt uint64) keys {
	return keys{
		coins:    pseudorandom.Mix(attempt, "coins"),
		dice:     pseudorandom.Mix(attempt, "dice"),
		redirect: pseudorandom.Mix(attempt, "redirect"),
		target:   pseudorandom.Mix(attempt, "target"),
	}
}

// rejects reports whether a node is rejected, with a chance of percent.
func (k *keys) rejects(nodeName string, percent int32) bool {
	return happens(pseudorandom.Mix(k.coins, nodeName), percent)
}

// score returns a random score for a node, uniform from 0 to 100.
func (k *keys) score(nodeName string) int64 {
	return int64(pseudorandom.Below(pseudorandom.Mix(k.dice, nodeName), uint64(framework.MaxNodeScore+1)))
}

// redirects reports whether the pod goes to a random node, with a chance of percent.
func (k *keys) redirects(percent int32) bool {
	return happens(k.redirect, percent)
}

// drawNode returns a random node, uniform, or "" without nodes. It is the node with the lowest pseudorandom number, so
// it does not depend on the order of the nodes, and is mostly the same for two lists that differ in few nodes
// (rendezvous hashing: D. Thaler and C. Ravishankar, IEEE/ACM Transactions on Networking 6(1), 1998).
func (k *keys) drawNode(nodes framework.NodeScoreList) string {
	drawn, lowest := "", uint64(0)
	for i := range nodes {
		if number := pseudorandom.Mix(k.target, nodes[i].Name); drawn == "" || number < lowest {
			drawn, lowest = nodes[i].Name, number
		}
	}
	return drawn
}

func happens(key uint64, percent int32) bool {
	return pseudorandom.Below(key, 100) < uint64(percent)
}
