// SPDX-License-Identifier: Apache-2.0

package loadtrace

import "time"

// talk is the share of the traffic within jobs that is between nodes, and between zones.
type talk struct {
	acrossNodes, acrossZones float64
}

// says returns the traffic between two pods of a job.
func says(a, b job) float64 {
	switch {
	case a.component == taskManager && b.component == taskManager:
		return 10
	case a.component != b.component:
		return 1
	}
	return 0
}

// talk returns the shares for a duration from the beginning of the trace.
// The traffic of each pair of a job's running pods is the same in each step.
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
