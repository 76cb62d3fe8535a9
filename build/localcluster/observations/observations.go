// SPDX-License-Identifier: Apache-2.0

// Package observations keeps what several goroutines see of things, for one that waits for it.
package observations

import "sync"

// Observations are what is known of things so far, by a key of each. All methods may be called at once.
type Observations[Key comparable, Value any] struct {
	mutex   sync.Mutex
	seen    map[Key]Value
	changed chan struct{}
}

// New makes observations of nothing yet.
func New[Key comparable, Value any]() *Observations[Key, Value] {
	return &Observations[Key, Value]{seen: map[Key]Value{}, changed: make(chan struct{}, 1)}
}

// Note changes what is known of a thing: of one that was not seen yet, the zero Value.
func (o *Observations[Key, Value]) Note(key Key, change func(*Value)) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	value := o.seen[key]
	change(&value)
	o.seen[key] = value
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// Of gives a copy of what is known of a thing.
func (o *Observations[Key, Value]) Of(key Key) Value {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.seen[key]
}

// Changed holds one token when something was noted since it was last taken.
func (o *Observations[Key, Value]) Changed() <-chan struct{} { return o.changed }
