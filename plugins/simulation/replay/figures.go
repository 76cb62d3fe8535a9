// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	podresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

func requestsOf(of *v1.Pod) v1.ResourceList {
	requests, _ := podresource.PodRequestsAndLimits(of)
	return requests
}

// namesOf returns the keys of a map, sorted.
func namesOf(of interface{}) []string {
	var names []string
	for _, key := range reflect.ValueOf(of).MapKeys() {
		names = append(names, key.String())
	}
	return sorted(names)
}

func formatted(amount float64) string { return strconv.FormatFloat(amount, 'g', -1, 64) }

// nodeStates returns the state of all nodes.
func (s *Simulation) nodeStates() []result.Node {
	states := []result.Node{}
	for _, name := range namesOf(s.nodes) {
		n := s.nodes[name]
		state := result.Node{Name: name, Zone: n.zone, Pods: len(n.pods), Allocated: map[string]float64{}}
		for i, resource := range s.measure.resources {
			if n.capacity[i] > 0 {
				state.Allocated[string(resource)] = round(n.allocated[i] / n.capacity[i])
				if s.measure.knowsUse && i < 2 {
					if state.Used == nil {
						state.Used = map[string]float64{}
					}
					state.Used[string(resource)] = round(n.used[i] / n.capacity[i])
				}
			}
		}
		states = append(states, state)
	}
	return states
}

// Outcome returns the result so far.
func (s *Simulation) Outcome() result.Run {
	m := s.measure
	m.integrate()
	if m.moment != nil && m.moment.nodes == nil {
		m.moment.nodes = s.nodeStates()
	}
	run := result.Run{Seed: s.options.Seed}
	if s.options.Again {
		run.Workloads, run.Nodes = s.workloads(), s.nodeStates()
		run.Figures = s.endFigures(run.Workloads)
	} else {
		run.Seconds, run.Figures, run.Samples, run.Nodes = round(s.now().Seconds()), s.figures(), m.samples, m.moment.nodes
		run.Gangs = m.gangTimes
	}
	run.Pods = make([]result.Pod, 0, len(s.all))
	for _, p := range s.all {
		of := result.Pod{Name: p.key, Created: round(p.created.Seconds()), Attempts: p.attempts}
		if p.node != nil {
			of.Node, of.Bound = p.node.name, round(p.bound.Seconds())
		} else {
			of.Reason = p.reason
			s.keepRecord(p)
		}
		if of.Record = p.record; s.options.Again {
			of.Created, of.Bound = 0, 0
		}
		run.Pods = append(run.Pods, of)
	}
	sort.SliceStable(run.Pods, func(i, j int) bool { return run.Pods[i].Name < run.Pods[j].Name })
	sort.SliceStable(s.preemptions, func(i, j int) bool {
		a, b := s.preemptions[i], s.preemptions[j]
		return a.at < b.at || a.at == b.at && a.victim < b.victim
	})
	for _, of := range s.preemptions {
		run.Preemptions = append(run.Preemptions, result.Preemption{Seconds: round(of.at.Seconds()), Victim: of.victim, Preemptor: of.by, Node: of.node})
	}
	for _, note := range namesOf(s.notes) {
		run.Notes = append(run.Notes, fmt.Sprintf("%d %s", s.notes[note], note))
	}
	run.Notes = append(run.Notes, s.extenderNotes()...)
	return run
}

// Notes returns what is not simulated as the input says, without the numbers of pods: a question may try one repeatedly.
func (s *Simulation) Notes() []string { return append(namesOf(s.notes), s.extenderNotes()...) }

// titles are the titles, units and directions of figures that are means over time, or about the end.
var titles = map[string]result.Figure{
	allocation:    {Title: "allocated", Unit: "%", Better: result.Higher},
	utilization:   {Title: "used", Unit: "%", Better: result.Higher},
	fragmentation: {Title: "fragmented", Unit: "%", Better: result.Lower},
	spread:        {Title: "deviation of allocation between nodes", Unit: "%"},
	usedSpread:    {Title: "deviation of use between nodes", Unit: "%", Better: result.Lower},
	skew:          {Title: "difference of allocation between zones", Unit: "%"},
	emptyNodes:    {Title: "nodes without pods", Unit: "nodes"},
	hotNodes:      {Title: "hot nodes", Unit: "nodes", Better: result.Lower},
	cost:          {Title: "price of the nodes with pods", Unit: "per hour", Better: result.Lower},

	"pods_placed":                   {Title: "pods placed", Unit: "pods", Better: result.Higher},
	"pods_pending":                  {Title: "pods that would wait", Unit: "pods", Better: result.Lower},
	"preemptions":                   {Title: "pods evicted by preemption", Unit: "pods", Better: result.Lower},
	"nodes_used":                    {Title: "nodes used", Unit: "nodes"},
	"used_nodes_allocation_percent": {Title: "allocated on used nodes", Unit: "%"},
	"workloads_in_one_zone":         {Title: "workloads with several pods in one zone only", Unit: "workloads", Better: result.Lower},
}

// figureOf returns the figure of a curve, without its value.
func figureOf(name string) result.Figure {
	parts := strings.SplitN(name, "{", 2)
	figure := titles[parts[0]]
	if figure.Name = name; len(parts) == 2 {
		figure.Title = strings.Split(parts[1], `"`)[1] + " " + figure.Title
	}
	return figure
}

// figures returns the figures.
func (s *Simulation) figures() []result.Figure {
	m, now := s.measure, s.now()
	var figures []result.Figure
	add := func(name, title, unit, better string, value float64) {
		figures = append(figures, result.Figure{Name: name, Title: title, Unit: unit, Better: better, Value: round(value)})
	}
	waits := map[string][]float64{}
	placed, attempts := 0, 0
	for _, p := range s.all {
		wait := now - p.created
		if p.node != nil {
			placed++
			wait = p.bound - p.created
		} else if p.ended {
			continue
		}
		attempts += p.attempts
		// Attempts follow each other by a microsecond: see spacing.
		wait = wait.Round(time.Millisecond)
		waits[""] = append(waits[""], wait.Seconds())
		if p.class != "" {
			waits[fmt.Sprintf("{priority_class=%q}", p.class)] = append(waits[fmt.Sprintf("{priority_class=%q}", p.class)], wait.Seconds())
		}
		if p.gang != "" {
			waits[`{gang="any"}`] = append(waits[`{gang="any"}`], wait.Seconds())
		}
	}
	add("pods_created", "pods created", "pods", "", float64(len(s.all)))
	add("pods_placed", "pods placed", "pods", result.Higher, float64(placed))
	add("pods_pending", "pods pending at the end", "pods", result.Lower, s.pending())
	for _, label := range namesOf(waits) {
		sort.Float64s(waits[label])
		about := strings.NewReplacer("{priority_class=", ", class ", "{gang=\"any\"}", ", pods of gangs", "}", "", `"`, "").Replace(label)
		add("waiting_p50_seconds"+label, "waiting, p50"+about, "s", result.Lower, quantile(waits[label], 0.5))
		if label == "" {
			add("waiting_p90_seconds", "waiting, p90", "s", result.Lower, quantile(waits[label], 0.9))
		}
		add("waiting_p99_seconds"+label, "waiting, p99"+about, "s", result.Lower, quantile(waits[label], 0.99))
		add("waiting_longest_seconds"+label, "waiting, longest"+about, "s", result.Lower, quantile(waits[label], 1))
	}
	add("attempts", "scheduling attempts", "", result.Lower, float64(attempts))
	if now > 0 && m.integrals != nil {
		for i, name := range m.names {
			if name == hotNodes {
				add("hot_node_seconds", fmt.Sprintf("node-seconds above %.0f %% of CPU or memory", 100*s.options.Hot), "s", result.Lower, m.integrals[i])
				continue
			}
			figure := figureOf(name)
			add(name, figure.Title, figure.Unit, figure.Better, m.integrals[i]/now.Seconds())
		}
	}
	m.usable.figures(add)
	add("preemptions", "pods evicted by preemption", "pods", result.Lower, float64(len(s.preemptions)))
	for _, resource := range m.resources {
		lost, unit := m.lost[resource], ""
		switch resource {
		case v1.ResourceCPU:
			lost, unit = lost/1000, "core-seconds"
		case v1.ResourceMemory:
			lost, unit = lost/(1<<30), "GiB-seconds"
		}
		add(labelled("evicted_resource_seconds", resource), fmt.Sprintf("%s × time of evicted pods", resource), unit, result.Lower, lost)
	}
	m.gangFigures(add)
	return figures
}

// gangFigures adds the figures of gangs, if there are any.
func (m *measurements) gangFigures(add func(name, title, unit, better string, value float64)) {
	if len(m.gangs) == 0 {
		return
	}
	now, complete, sum, unfinished := m.simulation.now(), []float64{}, int64(0), 0
	m.gangTimes = nil
	for _, name := range namesOf(m.gangs) {
		g := m.gangs[name]
		sum += g.held
		until := g.complete
		if until < 0 {
			until = now
			unfinished++
			for _, member := range g.bound {
				sum += held(member, now-member.bound)
			}
		}
		complete = append(complete, (until - g.first).Seconds())
		m.gangTimes = append(m.gangTimes, result.Gang{Name: name, Seconds: round((until - g.first).Seconds()), Complete: g.complete >= 0})
	}
	sort.Float64s(complete)
	add("gangs_incomplete", "gangs incomplete at the end", "gangs", result.Lower, float64(unfinished))
	add("gang_complete_p50_seconds", "time until a gang is complete, p50", "s", result.Lower, quantile(complete, 0.5))
	add("gang_complete_p99_seconds", "time until a gang is complete, p99", "s", result.Lower, quantile(complete, 0.99))
	add("gang_held_core_seconds", "CPU held by incomplete gangs", "core-seconds", result.Lower, float64(sum)/1000)
}

// quantile returns a quantile of sorted values by the nearest rank, or 0 without values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	rank := int(q*float64(len(values))+0.999999) - 1
	if rank < 0 {
		rank = 0
	}
	return values[rank]
}
