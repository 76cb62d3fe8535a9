// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/lru"
)

// rememberedPods bounds the memory of an Attempts, about 4 MiB when full. A pod that waits while more others than that
// are tried begins at its first attempt again.
const rememberedPods = 1 << 14

// Attempt is one attempt to schedule a pod: what happens between two times that the pod is taken from the queue.
type Attempt struct {
	// Number counts the pod's attempts that were asked about, from 1.
	Number int64
	// Key is Key(seed, the pod's UID, Number in decimal).
	Key uint64
}

// Clone returns the attempt itself: it never changes, and a copy of the cycle's state belongs to the same attempt.
func (a *Attempt) Clone() framework.StateData {
	return a
}

// Attempts counts the attempts to schedule each pod, because neither the cycle's state nor the pod carries their
// number. The count is in memory: it begins again when the scheduler does. All methods may be called in parallel.
type Attempts struct {
	seed     int64
	stateKey framework.StateKey

	// mu makes sure that an attempt is counted once, even when all workers ask first at the same time.
	mu      sync.Mutex
	numbers *lru.Cache // types.UID → int64
}

// NewAttempts counts for one plugin, whose name is the key in the cycle's state.
func NewAttempts(seed int64, plugin string) *Attempts {
	return &Attempts{seed: seed, stateKey: framework.StateKey(plugin + "/attempt"), numbers: lru.New(rememberedPods)}
}

// Of returns the attempt that a cycle is. The first call in a cycle counts it and keeps it in the cycle's state; it
// must not be a call with a copy of the state, as Filter may get, since the others would not see it.
func (a *Attempts) Of(state *framework.CycleState, uid types.UID) *Attempt {
	if attempt := a.read(state); attempt != nil {
		return attempt
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if attempt := a.read(state); attempt != nil {
		return attempt
	}
	number := int64(1)
	if previous, found := a.numbers.Get(uid); found {
		number += previous.(int64)
	}
	a.numbers.Add(uid, number)
	attempt := &Attempt{Number: number, Key: Key(a.seed, string(uid), strconv.FormatInt(number, 10))}
	state.Write(a.stateKey, attempt)
	return attempt
}

func (a *Attempts) read(state *framework.CycleState) *Attempt {
	data, err := state.Read(a.stateKey)
	if err != nil {
		return nil
	}
	attempt, _ := data.(*Attempt)
	return attempt
}
