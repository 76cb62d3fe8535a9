// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"sync"
	"sync/atomic"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// results are what came of nodes for kinds of pods: their scores, and whether they pass the filter. Pods mostly come in
// lots of equal ones, and then a node costs one look at one line of the processor's cache, where all that the result is
// made of takes several.
//
// A result is found by its key: a NodeInfo's generation, which says the node, its pods and its status, and the kind of
// the pod. Where the key's hash points to is a line of two results. Who keeps a third one drops one of them, so it may
// be forgotten at any time.
//
// 16 workers read and write at once, word by word and atomically: a writer takes a result by writing busy for its key,
// then writes the words, then the key, and who finds it taken goes without. A reader that finds the same key before and
// after has read what belongs to it. Results of one key differ only from one cycle to another, by what has become too
// old meanwhile, and a profile never has two cycles at once.
type results struct {
	words []uint64
	shift uint

	mu    sync.Mutex
	kinds map[podKind]uint64
}

const (
	lineWords   = 8 // of 64 bytes
	resultWords = 4
	// linesPerNode is so many that results of few kinds, and those of generations that are gone, rarely drop each
	// other.
	linesPerNode = 4

	kindBits = 12
	// notKept is the kind of a pod whose results are not kept: the first of its kind, and any after too many kinds.
	notKept uint64 = 0
)

// newResults makes room for the results of some nodes.
func newResults(nodes int) *results {
	shift := uint(64 - 4)
	for 1<<(64-shift) < linesPerNode*nodes {
		shift--
	}
	return &results{words: make([]uint64, lineWords<<(64-shift)), shift: shift, kinds: map[podKind]uint64{}}
}

// kind returns the number of a kind of pods; notKept for the first pod of a kind, which may be the last.
func (s *results) kind(of *podKind) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number, found := s.kinds[*of]; found {
		return number
	}
	if number := uint64(len(s.kinds) + 1); number < 1<<kindBits {
		s.kinds[*of] = number
	}
	return notKept
}

// line returns the words of the two results that may have the key.
func (s *results) line(key uint64) []uint64 {
	// The golden ratio of 2^64 spreads keys that follow each other: Knuth, The Art of Computer Programming, volume 3,
	// section 6.4.
	at := (key * 0x9E3779B97F4A7C15) >> s.shift * lineWords
	return s.words[at : at+lineWords : at+lineWords]
}

// key returns the key of a NodeInfo's result; unknown if there is none.
func (c *cycle) key(nodeInfo *framework.NodeInfo) uint64 {
	if c.kind == notKept || nodeInfo.Generation <= 0 || nodeInfo.Generation >= 1<<(63-kindBits) {
		return unknown
	}
	return uint64(nodeInfo.Generation)<<kindBits | c.kind
}

// result returns the score that was kept for a NodeInfo, and whether it is known to pass the filter.
func (c *cycle) result(nodeInfo *framework.NodeInfo) (score int64, passes, found bool) {
	key := c.key(nodeInfo)
	if key == unknown {
		return 0, false, false
	}
	line := c.view.results.line(key)
	for ; len(line) >= resultWords; line = line[resultWords:] {
		if atomic.LoadUint64(&line[0]) != key {
			continue
		}
		after, until, bits := int64(atomic.LoadUint64(&line[1])), int64(atomic.LoadUint64(&line[2])), atomic.LoadUint64(&line[3])
		if after < c.oldest && c.oldest <= until && atomic.LoadUint64(&line[0]) == key {
			return int64(bits >> 1), bits&1 != 0, true
		}
	}
	return 0, false, false
}

// keep keeps a score that is not negative, and whether the NodeInfo is known to pass the filter.
func (c *cycle) keep(nodeInfo *framework.NodeInfo, score int64, passes bool, loads *[maxResources]load) {
	key := c.key(nodeInfo)
	if key == unknown {
		return
	}
	// It holds until the next of the measurements that are in it becomes too old, and, because clocks are set back,
	// after those that are too old have become so.
	after, until := notMeasured, int64(math.MaxInt64)
	for r := range c.view.resources {
		switch at := loads[r].at; {
		case !c.filtered[r] && !c.scored[r]:
		case at < c.oldest && at > after:
			after = at
		case at >= c.oldest && at < until:
			until = at
		}
	}
	bits := uint64(score) << 1
	if passes {
		bits |= 1
	}
	line := c.view.results.line(key)
	into := line[:resultWords]
	// The second one if the key is there, or if it is free and the first is not, or else by a bit of the key.
	first, second := atomic.LoadUint64(&line[0]), atomic.LoadUint64(&line[resultWords])
	if first != key && (second == key || first != unknown && (second == unknown || key>>kindBits&1 != 0)) {
		into = line[resultWords:]
	}
	before := atomic.LoadUint64(&into[0])
	if before == busy || !atomic.CompareAndSwapUint64(&into[0], before, busy) {
		return
	}
	atomic.StoreUint64(&into[1], uint64(after))
	atomic.StoreUint64(&into[2], uint64(until))
	atomic.StoreUint64(&into[3], bits)
	atomic.StoreUint64(&into[0], key)
}
