// SPDX-License-Identifier: Apache-2.0

package loadtrace

import (
	"math"
	"testing"
	"time"
)

// talk is how much of what the pods of jobs send to each other goes from one node, and from one zone, to another.
type talk struct {
	acrossNodes, acrossZones float64
}

// says is how much two pods of a job have to say to each other.
func says(a, b job) float64 {
	switch {
	case a.component == taskManager && b.component == taskManager:
		return 10
	case a.component != b.component:
		return 1
	}
	return 0
}

// talk sums up a time from the trace's beginning. Each pair of a job's running pods says as much in each step.
func (r *reality) talk(length time.Duration) talk {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	jobs := make(map[string][]placement)
	for _, placements := range r.on {
		for _, p := range placements {
			if p.component != "" {
				jobs[p.owner] = append(jobs[p.owner], p)
			}
		}
	}
	var all, nodes, zones float64
	for _, pods := range jobs {
		for i, a := range pods {
			for _, b := range pods[:i] {
				together := min(a.to, b.to, length) - max(a.from, b.from)
				if together <= 0 {
					continue
				}
				said := says(a.job, b.job) * together.Seconds()
				all += said
				if a.node != b.node {
					nodes += said
				}
				if r.nodes[a.node].zone != r.nodes[b.node].zone {
					zones += said
				}
			}
		}
	}
	if all == 0 {
		return talk{}
	}
	return talk{acrossNodes: nodes / all, acrossZones: zones / all}
}

func TestTalk(t *testing.T) {
	r := newReality([]machine{{name: "a1", zone: "a"}, {name: "a2", zone: "a"}, {name: "b1", zone: "b"}}, time.Now())
	place := func(owner, component string, node int, lives time.Duration) {
		r.place(job{owner: owner, component: component, lives: lives}, node, time.Now())
	}
	if got := r.talk(time.Minute); got != (talk{}) {
		t.Errorf("without pods: %+v", got)
	}
	place("job", taskManager, 0, 10*time.Second)
	place("job", taskManager, 0, 10*time.Second)
	place("job", taskManager, 2, 5*time.Second)
	place("job", jobManager, 1, 20*time.Second)
	place("other", taskManager, 2, 20*time.Second)
	// Between the two on a1: 10 × 10 s. From each of them to the one on b1: 10 × 5 s. From the job manager to the three:
	// 1 × 10 s twice, 1 × 5 s. Of these 225, all but 100 leave their node, and 105 their zone.
	got := r.talk(time.Minute)
	if math.Abs(got.acrossNodes-125.0/225) > 1e-9 || math.Abs(got.acrossZones-105.0/225) > 1e-9 {
		t.Errorf("got %+v", got)
	}
}
