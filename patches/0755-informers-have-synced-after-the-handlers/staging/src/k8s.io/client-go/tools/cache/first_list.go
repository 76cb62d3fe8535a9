// SPDX-License-Identifier: Apache-2.0

package cache

import "sync/atomic"

// progress counts the notifications that a listener got, and those that its handler has handled.
type progress struct{ added, handled uint64 }

// firstList follows the handlers of an informer until they have handled the objects of its first list.
type firstList struct {
	noted bool
	// behind has the listeners that have not handled it yet, and the number of notifications with which they have.
	behind map[*processorListener]uint64
}

// handledBy reports whether all handlers that were added before the first call have handled the first list. It must not
// be called before the informer has given them the whole list, nor twice at the same time.
func (f *firstList) handledBy(processor *sharedProcessor) bool {
	if !f.noted {
		f.noted, f.behind = true, map[*processorListener]uint64{}
		processor.listenersLock.RLock()
		for _, listener := range processor.listeners {
			f.behind[listener] = atomic.LoadUint64(&listener.added)
		}
		processor.listenersLock.RUnlock()
	}
	for listener, added := range f.behind {
		if atomic.LoadUint64(&listener.handled) >= added {
			delete(f.behind, listener)
		}
	}
	return len(f.behind) == 0
}
