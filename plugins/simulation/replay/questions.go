// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// placement is a pod of a question with the event that ended its last attempt.
func (p *pod) placement() result.Placement {
	of := result.Placement{Pod: p.key}
	if p.node != nil {
		of.Node = p.node.name
	} else {
		of.Reason = p.reason
	}
	return of
}

// withdraw removes a pod as if it had never been.
func (s *Simulation) withdraw(p *pod) {
	p.deleted = true
	if n := len(s.all); n > 0 && s.all[n-1] == p {
		s.all = s.all[:n-1]
	}
	s.end(p)
}

// Fit returns how many pods of each workload fit in addition, each workload alone, at most limit.
func (s *Simulation) Fit(workloads []input.Workload, limit int) []result.Fit {
	s.Settle()
	var fits []result.Fit
	for i := range workloads {
		w := workloads[i]
		fit := result.Fit{Workload: w.Pod.Namespace + "/" + w.Pod.Name, On: map[string]int{}}
		var made []*pod
		for len(made) < limit {
			p := s.create(&w, fmt.Sprintf("%s-fit-%d", w.Pod.Name, len(made)), 0)
			s.Settle()
			made = append(made, p)
			if p.node == nil {
				fit.Reason = p.reason
				break
			}
			fit.Count++
			fit.On[p.node.name]++
		}
		for n := len(made) - 1; n >= 0; n-- {
			s.withdraw(made[n])
		}
		s.Settle()
		fits = append(fits, fit)
	}
	return fits
}

// undo restores what a question changed, in reverse order.
type undo []func()

func (u *undo) add(do func()) { *u = append(*u, do) }

func (u undo) do() {
	for i := len(u) - 1; i >= 0; i-- {
		u[i]()
	}
}

// known returns names of nodes without duplicates, or an error if a node does not exist.
func (s *Simulation) known(names []string) ([]string, error) {
	var unique []string
	seen := map[string]bool{}
	for _, name := range names {
		if s.nodes[name] == nil {
			return nil, fmt.Errorf("the snapshot has no node %q; next: choose one of its nodes", name)
		}
		if !seen[name] {
			seen[name] = true
			unique = append(unique, name)
		}
	}
	return unique, nil
}

// clear makes nodes unschedulable, and moves their pods elsewhere, one after the other. A pod without an owner would be
// lost, and one whose budgets allow no disruption is blocked; both stay.
func (s *Simulation) clear(names []string) (drain result.Drain, back undo) {
	drain.Nodes = names
	for _, name := range names {
		name, object := name, s.nodeObject(name)
		if object.Spec.Unschedulable {
			continue
		}
		s.Cordon(name, true)
		back.add(func() { s.Cordon(name, false) })
	}
	for _, name := range names {
		for _, p := range s.podsOn(s.nodes[name]) {
			p, object := p, s.current(p.key)
			switch {
			case object == nil || !p.moves():
				drain.Stay++
				continue
			case p.workload.Owner == "":
				drain.Lost = append(drain.Lost, p.key)
				continue
			}
			if by := s.refusing(object); by != "" {
				drain.Blocked = append(drain.Blocked, result.Blocked{Pod: p.key, Budget: by})
				continue
			}
			placement := s.move(p, object, &back).placement()
			placement.Pod = p.key
			if placement.Node == "" {
				drain.Wait = append(drain.Wait, placement)
			} else {
				drain.Moved = append(drain.Moved, placement)
			}
		}
	}
	return drain, back
}

// move removes a pod, and schedules the one with which its owner replaces it.
func (s *Simulation) move(p *pod, object *v1.Pod, back *undo) *pod {
	var budgets []*policyv1.PodDisruptionBudget
	for _, b := range s.budgetsOf(object) {
		budgets = append(budgets, b.DeepCopy())
	}
	on := p.node
	s.end(p)
	s.allow(object, -1)
	moved := s.create(p.workload, strings.SplitN(p.key, "/", 2)[1], p.generation+1)
	back.add(func() {
		s.withdraw(moved)
		for _, b := range budgets {
			s.store.put(b)
		}
		p.ended = false
		s.pods[p.key] = p
		s.place(p, on)
		s.store.put(object)
	})
	s.Settle()
	return moved
}

// Drain returns where the pods of nodes would go. It changes nothing.
func (s *Simulation) Drain(names []string) (result.Drain, error) {
	names, err := s.known(names)
	if err != nil {
		return result.Drain{}, err
	}
	s.Settle()
	drain, back := s.clear(names)
	back.do()
	s.Settle()
	return drain, nil
}

// Shrink returns the nodes that can go one after the other, those with the least CPU allocated first, so that every pod
// still has a place. For each other node it returns why it cannot.
func (s *Simulation) Shrink() (shrink result.Shrink) {
	s.Settle()
	names := namesOf(s.nodes)
	sort.SliceStable(names, func(i, j int) bool { return s.nodes[names[i]].allocated[0] < s.nodes[names[j]].allocated[0] })
	waiting := pending()
	for _, name := range names {
		drain, back := s.clear([]string{name})
		if drain.Free() && pending() <= waiting {
			shrink.Remove = append(shrink.Remove, drain)
			s.removeNode(name)
			continue
		}
		back.do()
		shrink.Keep = append(shrink.Keep, drain)
	}
	s.Settle()
	return shrink
}

// retry schedules all pods that wait, without waiting for their backoff.
func (s *Simulation) retry() {
	waiting := map[string]*v1.Pod{}
	for _, of := range s.SchedulingQueue.PendingPods() {
		waiting[of.Namespace+"/"+of.Name] = of
	}
	s.SchedulingQueue.Activate(waiting)
	s.Settle()
}

// waiting returns the pods without a node, sorted by name.
func (s *Simulation) waiting() []result.Placement {
	var placements []result.Placement
	for _, key := range namesOf(s.pods) {
		if p := s.pods[key]; p.node == nil {
			placements = append(placements, p.placement())
		}
	}
	return placements
}

// Grow adds nodes like the template until every pod that waits has a place, or another node helps none. Limit is the
// largest number of nodes.
func (s *Simulation) Grow(template *v1.Node, workloads []input.Workload, limit int) (grow result.Grow) {
	for i := range workloads {
		s.Create(&workloads[i])
	}
	s.Settle()
	grow.Before = len(s.waiting())
	var fruitless []string
	for grow.Nodes < limit {
		left := len(s.waiting())
		if left == 0 {
			break
		}
		name := fmt.Sprintf("%s-new-%d", template.Name, grow.Nodes)
		added := template.DeepCopy()
		added.Name, added.UID = name, types.UID(name)
		added.Labels = map[string]string{}
		for key, value := range template.Labels {
			added.Labels[key] = value
		}
		added.Labels[v1.LabelHostname] = name
		s.AddNode(added)
		s.retry()
		grow.Nodes++
		fruitless = append(fruitless, name)
		if len(s.waiting()) < left {
			fruitless = nil
		} else if len(fruitless) >= s.largestGang() {
			break
		}
	}
	// The last ones help none: what waits does not fit on nodes of this kind.
	for _, name := range fruitless {
		s.removeNode(name)
	}
	grow.Nodes -= len(fruitless)
	grow.Wait = s.waiting()
	return grow
}

// largestGang returns the number of waiting pods of the largest gang, or 1 without gangs: a gang needs several nodes.
func (s *Simulation) largestGang() int {
	largest, count := 1, map[string]int{}
	for _, p := range s.pods {
		if p.node == nil && p.gang != "" {
			if count[p.gang]++; count[p.gang] > largest {
				largest = count[p.gang]
			}
		}
	}
	return largest
}

// Lose removes nodes at once, with their pods, which their owners make again, and returns which pods wait then.
func (s *Simulation) Lose(names []string) (result.Lose, error) {
	names, err := s.known(names)
	lose := result.Lose{Nodes: len(names)}
	if err != nil {
		return lose, err
	}
	s.Settle()
	lose.Before = len(s.waiting())
	before := len(s.all)
	for _, name := range names {
		for _, p := range s.podsOn(s.nodes[name]) {
			lose.Pods++
			if p.workload.Owner == "" {
				lose.Gone = append(lose.Gone, p.key)
			}
		}
		s.removeNode(name)
	}
	s.Settle()
	for _, p := range s.all[before:] {
		if p.node != nil {
			lose.Placed++
		}
	}
	lose.Wait = s.waiting()
	return lose, nil
}

// NodesOfZone returns the names of a zone's nodes.
func (s *Simulation) NodesOfZone(zone string) []string {
	var names []string
	for _, name := range namesOf(s.nodes) {
		if s.nodes[name].zone == zone {
			names = append(names, name)
		}
	}
	return names
}
