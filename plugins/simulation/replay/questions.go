// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
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
		of.Reason = p.why()
	}
	return of
}

// why returns why a pod has no node.
func (p *pod) why() string {
	if p.reason == "" {
		return "a plugin lets it wait for other pods, such as those of its gang, which this question does not create"
	}
	return p.reason
}

// Fit returns how many pods of each workload fit in addition, each workload alone, at most limit.
func (s *Simulation) Fit(workloads []input.Workload, limit int) []result.Fit {
	s.Settle()
	var fits []result.Fit
	for i := range workloads {
		w := workloads[i]
		fit := result.Fit{Workload: w.Pod.Namespace + "/" + w.Named(), On: map[string]int{}}
		restore := s.checkpoint(waitingPods(s.all))
		for n := 0; n < limit; n++ {
			p := s.create(&w, fmt.Sprintf("%s-fit-%d", w.Named(), n), 0)
			s.settle()
			if p.node == nil {
				fit.Reason = p.why()
				break
			}
			fit.Count++
			fit.On[p.node.name]++
		}
		restore()
		fits = append(fits, fit)
	}
	return fits
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

// clear drains nodes as an event of a trace does, and returns the result when nothing is left to do, and a function that
// puts everything back.
func (s *Simulation) clear(names []string) (drain result.Drain, restore func()) {
	drain.Nodes = names
	var pods, moving []*pod
	for _, name := range names {
		pods = append(pods, s.podsOn(s.nodes[name])...)
	}
	for _, p := range pods {
		if p.moves() {
			moving = append(moving, p)
		}
	}
	drain.Stay = len(pods) - len(moving)
	made := len(s.all)
	restore = s.checkpoint(append(pods, waitingPods(s.all)...))
	for _, name := range names {
		s.changeNode(name, input.DrainNode)
	}
	s.settleDrains(made)
	for _, p := range moving {
		if p.workload.Owner == "" {
			drain.Lost = append(drain.Lost, p.key)
			continue
		}
		if object := s.current(p.key); !p.deleted && object != nil {
			if by := s.refused(p, object); by != nil {
				drain.Blocked = append(drain.Blocked, *by)
			}
			continue
		}
		last := p
		for last.next != nil {
			last = last.next
		}
		placement := last.placement()
		placement.Pod = p.key
		if placement.Node == "" {
			drain.Wait = append(drain.Wait, placement)
		} else {
			drain.Moved = append(drain.Moved, placement)
		}
	}
	return drain, restore
}

// noteDrains notes what answers about drains leave out, for the state before the first one.
func (s *Simulation) noteDrains() {
	if len(s.budgets) == 0 {
		s.notes["the snapshot has no PodDisruptionBudgets"]++
	}
	if aside := len(waitingPods(s.all)); aside > 0 {
		s.notes[fmt.Sprintf("pending pods of the snapshot take no place that a drain frees, unlike in a trace: %d", aside)]++
	}
}

// settleDrains goes on until drains can only retry evictions without success. Pods from a number on wait for no backoff.
func (s *Simulation) settleDrains(from int) {
	for before := -1; before != s.moves || len(s.agenda) > s.retries; {
		before = s.moves
		if s.Advance(s.now()+s.retryPeriod(), 0, func(time.Duration, int64) {}) != nil {
			return
		}
		s.retry(waitingPods(s.all[from:]))
	}
}

// Drain returns where the pods of nodes would go. It changes nothing.
func (s *Simulation) Drain(names []string) (result.Drain, error) {
	names, err := s.known(names)
	if err != nil {
		return result.Drain{}, err
	}
	s.Settle()
	s.drainNotes.Do(s.noteDrains)
	drain, restore := s.clear(names)
	restore()
	return drain, nil
}

// Shrink returns the nodes that can go one after the other, those with the least CPU allocated first, so that every pod
// still has a place. For each other node it returns why it cannot. The control plane's nodes stay.
func (s *Simulation) Shrink() (shrink result.Shrink) {
	s.Settle()
	s.drainNotes.Do(s.noteDrains)
	names := namesOf(s.nodes)
	sort.SliceStable(names, func(i, j int) bool { return s.nodes[names[i]].allocated[0] < s.nodes[names[j]].allocated[0] })
	waiting := s.pending()
	for _, name := range names {
		if label := controlPlane(s.nodeObject(name)); label != "" {
			shrink.Keep = append(shrink.Keep, result.Drain{Nodes: []string{name}, Kept: "it is a node of the control plane: " + label})
			continue
		}
		drain, restore := s.clear([]string{name})
		if drain.Free() && s.pending() <= waiting {
			shrink.Remove = append(shrink.Remove, drain)
			s.removeNode(name)
			continue
		}
		restore()
		shrink.Keep = append(shrink.Keep, drain)
	}
	s.Settle()
	return shrink
}

// controlPlane returns the label by which a node is one of the control plane, or "".
func controlPlane(node *v1.Node) string {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, labelled := node.Labels[label]; labelled {
			return label
		}
	}
	return ""
}

// retry schedules pods that wait, without waiting for their backoff.
func (s *Simulation) retry(pods []*pod) {
	waiting := map[string]*v1.Pod{}
	for _, p := range pods {
		if object := s.current(p.key); object != nil {
			waiting[p.key] = object
		}
	}
	s.SchedulingQueue.Activate(waiting)
	s.settle()
}

// waitingPods returns those of some pods that have no node.
func waitingPods(of []*pod) []*pod {
	var waiting []*pod
	for _, p := range of {
		if p.node == nil && !p.ended {
			waiting = append(waiting, p)
		}
	}
	return waiting
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
	s.settle()
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
		s.retry(waitingPods(s.all))
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
	s.settle()
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
