// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"math"
	"regexp"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// useAt returns a pod's use at a time after it began to run, or nil.
func (p *pod) useAt(after time.Duration) v1.ResourceList {
	if i := p.useIndex(after); i >= 0 {
		return p.workload.Use[i].Resources
	}
	return nil
}

// useIndex returns the index of a pod's use at a time after it began to run, or -1.
func (p *pod) useIndex(after time.Duration) int {
	use := p.workload.Use
	return sort.Search(len(use), func(i int) bool { return use[i].After > after }) - 1
}

// measureBase sets what nodes use apart from their pods: what was measured when the snapshot was taken, without the pods
// that were measured.
func (m *measurements) measureBase() {
	for name, n := range m.simulation.nodes {
		n.base = m.vector(m.simulation.options.Cluster.NodeUse[name])
		for _, p := range n.pods {
			for i, amount := range m.vector(p.useAt(0)) {
				n.base[i] = math.Max(0, n.base[i]-amount)
			}
		}
	}
}

// measureUse sums up what is used on each node.
func (m *measurements) measureUse(now time.Duration) {
	m.integrate()
	for i := range m.sums {
		m.sums[i].used, m.sums[i].usedShare, m.sums[i].usedSquare = 0, 0, 0
	}
	m.hot = 0
	for _, name := range namesOf(m.simulation.nodes) {
		n := m.simulation.nodes[name]
		for i := range n.used {
			n.used[i] = n.base[i]
		}
		ordinary, asked := n.base[0], 0.0
		for _, p := range m.simulation.podsOn(n) {
			asked += p.overcommits
			if p.running {
				use := m.vector(p.useAt(now - p.started))
				for i, amount := range use {
					n.used[i] += amount
				}
				if p.overcommits == 0 {
					ordinary += use[0]
				}
			}
		}
		m.measureOvercommit(n, now, ordinary, asked)
		hot := false
		for i := range m.sums {
			of := &m.sums[i]
			of.used += n.used[i]
			if n.capacity[i] > 0 {
				share := n.used[i] / n.capacity[i]
				of.usedShare += share
				of.usedSquare += share * share
				hot = hot || i < 2 && share > m.simulation.options.Hot
			}
		}
		if hot {
			m.hot++
		}
		for i := 0; i < len(n.history) && i < len(n.used); i++ {
			n.history[i] = n.history[i].add(now, n.used[i], 0, longestWindow)
		}
	}
	m.usable.last = now
	m.values = m.values[:0]
}

// longestWindow limits the windows of measurements.
const longestWindow = 15 * time.Minute

// mean returns the mean over a window that ends now, as far as it is known.
func (h history) mean(now, window time.Duration) float64 {
	from := now - window
	if from < h[0].at {
		from = h[0].at
	}
	if from == now {
		return h[0].value
	}
	return (h.integral(now) - h.integral(from)) / (now - from).Seconds()
}

// windowOf matches the window of an expression.
var windowOf = regexp.MustCompile(`\[(\d+(?:ms|s|m|h))`)

// windowIn returns the window of a query, or five minutes if it is unknown or too long.
func windowIn(query source.Query, longest time.Duration) time.Duration {
	if found := windowOf.FindStringSubmatch(query.Value); found != nil {
		if window, err := time.ParseDuration(found[1]); err == nil && window > 0 && window <= longest {
			return window
		}
	}
	return 5 * time.Minute
}

// Ask implements source.Source: NodeLoad and Overcommit ask the simulation instead of Prometheus for what it simulates,
// CPU and memory.
func (a *api) Ask(_ context.Context, queries []source.Query) (source.Result, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.simulation.answerLoad(queries), nil
}

// publish makes what its caller wrote visible to Ask, for Go's memory model: a timer alone does not.
func (a *api) publish() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
}

// Close implements source.Source.
func (a *api) Close() {}

// answerLoad answers the queries of NodeLoad and Overcommit.
func (s *Simulation) answerLoad(queries []source.Query) source.Result {
	m, now := s.measure, time.Now()
	seconds := float64(now.UnixNano()) / float64(time.Second)
	result := source.Result{Evaluated: seconds, Asked: now, Received: now, Endpoint: "simulation"}
	for number, query := range queries {
		switch query.Name {
		case source.OvercommitNodes, source.OvercommitNow, source.OvercommitPods:
			if m.knowsUse {
				result.Rows = append(result.Rows, s.answerOvercommit(number, query, seconds)...)
			}
			continue
		}
		resource := -1
		for i, name := range m.resources {
			if string(name) == query.Name && i < 2 {
				resource = i
			}
		}
		if resource < 0 || query.Pods || !m.knowsUse {
			continue
		}
		window := windowIn(query, longestWindow)
		for _, name := range namesOf(s.nodes) {
			n := s.nodes[name]
			if n.down || len(n.history[resource]) == 0 || n.capacity[resource] == 0 {
				continue
			}
			result.Rows = append(result.Rows,
				source.Row{Query: number, Kind: source.Value, Label: name, Value: n.history[resource].mean(s.now(), window) / n.capacity[resource]},
				source.Row{Query: number, Kind: source.Timestamp, Label: name, Value: seconds})
		}
	}
	return result
}
