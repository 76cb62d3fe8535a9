// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"sort"
)

// A query that takes too long must not blind the others, and a server that hangs must not be asked again and again. So:
//
//  1. A refresh lets one request of an endpoint run out of time: then it asks that endpoint for nothing else.
//  2. If that was the request for everything at once, the next refreshes ask for one resource after another.
//  3. What runs out of time or is refused by itself is kept away from the others, until it is answered: these are asked
//     for at once again, and it by itself after them. Of several, the one that has waited longest comes first.
//  4. When all are kept away and the one whose turn it is runs out of time, nothing has been learnt about them but that
//     the server is too slow: it all begins again.
//
// A server that hangs costs the time of one request in each refresh: for everything, then for each resource, then it
// begins again.

// apartFor is for how many refreshes every resource is asked for by itself because all at once took too long, although
// none of them did: 5 minutes by default.
const apartFor = 10

// turns is what an endpoint's requests for single resources have come to.
type turns struct {
	// apart is how many refreshes are still to ask for everything by itself, and found says that they have found
	// something that takes too long; then they go on until every resource has had its turn.
	apart int
	found bool
	// last is the number of the last turn, and of has each resource's own last one.
	last int
	of   map[Query]turn
}

// turn is a request for a single resource that was given all the time that it may take.
type turn struct {
	number int
	// failure is why it failed; nil if it was answered.
	failure error
}

// keep forgets what is not asked for any more.
func (t *turns) keep(queries []Query, slots []int) {
	kept := make(map[Query]turn, len(slots))
	for _, slot := range slots {
		if turn, found := t.of[queries[slot]]; found {
			kept[queries[slot]] = turn
		}
	}
	t.of = kept
}

// took notes how a resource's turn ended.
func (t *turns) took(query Query, failure error) {
	t.last++
	t.of[query] = turn{number: t.last, failure: failure}
}

// divide says what to ask for at once, and what by itself.
func (t *turns) divide(queries []Query, slots []int) (together, alone []int) {
	for _, slot := range slots {
		if t.apart > 0 || t.of[queries[slot]].failure != nil {
			alone = append(alone, slot)
		} else {
			together = append(together, slot)
		}
	}
	return together, alone
}

// failed says whether all slots are kept away.
func (t *turns) failed(queries []Query, slots []int) bool {
	for _, slot := range slots {
		if t.of[queries[slot]].failure == nil {
			return false
		}
	}
	return true
}

// order returns slots in the order in which to ask for them by themselves: first those that did not fail.
func (t *turns) order(queries []Query, slots []int) []int {
	slots = append([]int{}, slots...)
	sort.SliceStable(slots, func(i, j int) bool {
		a, b := t.of[queries[slots[i]]], t.of[queries[slots[j]]]
		if (a.failure == nil) != (b.failure == nil) {
			return a.failure == nil
		}
		return a.number < b.number
	})
	return slots
}

// errNoTime is of a resource that has not failed itself.
var errNoTime = errors.New("there was no time left to ask for it; next: see which of the other queries takes so long")

// why is why there is nothing about a resource that was not asked for this time: its last failure, if there is one.
func (t *turns) why(query Query) error {
	if failure := t.of[query].failure; failure != nil {
		return failure
	}
	return errNoTime
}
