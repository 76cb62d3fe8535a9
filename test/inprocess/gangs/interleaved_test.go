// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
)

const (
	// pairs is the number of pairs of gangs, and patience the time in which the first of a pair runs: that of a few
	// attempts.
	pairs, patience = 1000, 30 * time.Second
	// room is the number of members that fit, on nodes of two.
	room = 8
)

// interleaved creates the members of two gangs in a random order, with pauses between them or without. Both gangs fit,
// but not at once; in each third pair they need the room of pods of a lower priority.
func interleaved(o order, r *report) error {
	sizes := func(seed int) (random *rand.Rand, size map[string]int) {
		random = rand.New(rand.NewSource(int64(seed)))
		red := 2 + random.Intn(room-1)
		return random, map[string]int{"red": red, "blue": room + 1 - red + random.Intn(red)}
	}
	var groups []*unstructured.Unstructured
	for seed := o.First; seed < o.First+o.Count; seed++ {
		_, size := sizes(seed)
		for _, color := range []string{"red", "blue"} {
			groups = append(groups, newGroup(fmt.Sprintf("%s-%d", color, seed), size[color], nil))
		}
	}
	w, err := newWorld(groups)
	for seed := o.First; seed < o.First+o.Count && err == nil; seed++ {
		random, size := sizes(seed)
		if err = w.interleave(seed, size, random, r); err == nil {
			err = w.clear()
		}
	}
	return err
}

func (w *world) interleave(seed int, size map[string]int, random *rand.Rand, r *report) error {
	for i := range room / 2 {
		w.add(newNode(fmt.Sprintf("node-%d-%d", seed, i), 2).Obj())
	}
	others := 0
	if seed%3 == 0 {
		others = 1 + random.Intn(room)
	}
	for i := range others {
		w.create(newPod(fmt.Sprintf("other-%d-%d", seed, i), "", 1, low))
	}
	if err := w.advance(time.Second); err != nil {
		return err
	}
	var members []*input.Workload
	for color, count := range size {
		for i := range count {
			members = append(members, newPod(fmt.Sprintf("%s-%d-%02d", color, seed, i), fmt.Sprintf("%s-%d", color, seed), 1, normal))
		}
	}
	sortByName(members)
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	for _, member := range members {
		w.create(member)
		// Without a pause, the scheduler sees all of them at once.
		if pause := random.Intn(3); pause > 0 {
			if err := w.advance(time.Duration(pause*random.Intn(1000)) * time.Millisecond); err != nil {
				return err
			}
		}
	}
	if err := w.advance(patience); err != nil {
		return err
	}
	runs := w.only(seed, size, r)
	if evicted := others - w.count("other", seed); runs == "" || evicted > 0 && others+size[runs]-evicted > room {
		r.fail("pair %d of %v: %q runs, and %d of %d other pods were evicted", seed, size, runs, evicted, others)
		return nil
	}
	// The other gang runs as soon as this one ends.
	for name := range w.placed() {
		if !strings.HasPrefix(name, "other") {
			w.At(w.passed, func() { w.Apply(&input.Event{Delete: "default/" + name}) })
		}
	}
	if err := w.advance(patience); err != nil {
		return err
	}
	if next := w.only(seed, size, r); next == "" || next == runs {
		r.fail("pair %d of %v: %q runs after the end of %q, want the other one", seed, size, next, runs)
	}
	r.Counts["first "+runs]++
	return nil
}

// count returns the number of pods on nodes whose name begins so.
func (w *world) count(prefix string, seed int) (count int) {
	for name := range w.placed() {
		if strings.HasPrefix(name, fmt.Sprintf("%s-%d-", prefix, seed)) {
			count++
		}
	}
	return count
}

// only returns the gang that runs. A gang of which some members run is a failure.
func (w *world) only(seed int, size map[string]int, r *report) (runs string) {
	for _, color := range []string{"red", "blue"} {
		switch count := w.count(color, seed); count {
		case 0:
		case size[color]:
			runs = color
		default:
			r.fail("pair %d: %d of %d members of %s run", seed, count, size[color], color)
		}
	}
	return runs
}

func TestOfTwoInterleavedGangsOneRuns(t *testing.T) {
	counts := runCases(t, "interleaved", pairs)
	t.Logf("the gang that ran first: %v", counts)
}
