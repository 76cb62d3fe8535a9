// SPDX-License-Identifier: Apache-2.0

package pseudorandom

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/lru"
)

// rememberedPods bounds the memory of an Attempts, about 4 MiB when full. The count of a pod restarts if more other
// pods than that are tried while it waits.
const rememberedPods = 1 << 14

// Attempt is one attempt to schedule a pod. The next one begins when the pod is taken from the queue again.
type Attempt struct {
	// Number counts the pod's attempts for which Of was called, from 1.
	Number int64
	// Key is Key(seed, the pod's UID, Number in decimal).
	Key uint64
}

// Clone returns the attempt itself: it is immutable, and a copy of the cycle's state belongs to the same attempt.
func (a *Attempt) Clone() framework.StateData {
	return a
}

// Attempts counts the attempts to schedule each pod, because neither the cycle's state nor the pod has their number.
// The counts are in memory and restart with the scheduler. All methods may be called in parallel.
type Attempts struct {
	seed     int64
	stateKey framework.StateKey

	// mu ensures that an attempt is counted once, even if all workers call Of at the same time.
	mu      sync.Mutex
	numbers *lru.Cache // types.UID → int64
}

// NewAttempts returns the counts of one plugin, whose name is the key in the cycle's state.
func NewAttempts(seed int64, plugin string) *Attempts {
	return &Attempts{seed: seed, stateKey: framework.StateKey(plugin + "/attempt"), numbers: lru.New(rememberedPods)}
}

// Of returns the attempt of a cycle. The first call in a cycle counts the attempt and stores it in the cycle's state.
// That call needs the state itself and not a copy, as Filter may get, because later calls would not find the attempt.
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
