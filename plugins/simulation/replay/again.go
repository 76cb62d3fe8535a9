// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// Again splits the pods of a snapshot into those that their controllers would make again, those that wait, both in the
// order of their creation, and those that stay, which it counts by reason. For a Check, all that a scheduler placed come
// again, in the order in which they were scheduled.
func Again(pods []*v1.Pod, check bool) (again, waiting, stay []*v1.Pod, reasons map[string]int) {
	reasons = map[string]int{}
	for _, of := range pods {
		reason, owner := "", metav1.GetControllerOf(of)
		switch {
		case of.Spec.NodeName == "":
			waiting = append(waiting, of)
			continue
		case of.DeletionTimestamp != nil:
			reason = "being deleted"
		case owner == nil && !check:
			reason = "without a controller"
		case owner != nil && owner.Kind == "DaemonSet":
			reason = "of DaemonSets"
		case owner != nil && owner.Kind == "Node":
			reason = "static"
		default:
			again = append(again, of)
			continue
		}
		stay = append(stay, of)
		reasons[reason]++
	}
	at := func(of *v1.Pod) *metav1.Time { return &of.CreationTimestamp }
	if check {
		at = scheduledAt
	}
	for _, pods := range [][]*v1.Pod{again, waiting} {
		// Times have whole seconds. Pods without one come last.
		sort.SliceStable(pods, func(i, j int) bool {
			a, b := at(pods[i]), at(pods[j])
			if a.IsZero() != b.IsZero() {
				return b.IsZero()
			}
			return a.Before(b) || a.Equal(b) && written(pods[i]) < written(pods[j])
		})
	}
	return again, waiting, stay, reasons
}

// Time passes so often while pods are placed again, and for so long, that plugins see measured use: NodeLoad's window.
const useSteps, useStep = 100, 5 * time.Minute

// PlaceAgain schedules pods that do not stay, each when the one before has settled, or those of a gang together, and then
// adds the pods that wait. The workloads come later. Outcome is about the end then. It ends early after Interrupt.
func (s *Simulation) PlaceAgain(again, waiting []*v1.Pod, workloads []input.Workload, progress Progress) {
	gangs, expected := map[string][]*v1.Pod{}, []*input.Workload(nil)
	for i := range workloads {
		expected = append(expected, &workloads[i])
	}
	for _, of := range append(append([]*v1.Pod(nil), again...), waiting...) {
		expected = append(expected, s.workloadOf(of))
	}
	s.Expect(expected, 0)
	for _, of := range again {
		s.takeUse(of)
		gangs[gangOf(of)] = append(gangs[gangOf(of)], of)
	}
	s.calm(progress) // Pods that are being deleted go.
	for i, of := range again {
		come := []*v1.Pod{of}
		if gang := gangOf(of); gang != "" {
			come, gangs[gang] = gangs[gang], nil
		}
		for _, of := range come {
			// Budgets allow one disruption less until it runs.
			if healthy(of) {
				s.allow(of, -1)
			}
			s.pend(of.DeepCopy(), s.workloadOf(of), 0).owes = true
		}
		s.calm(progress)
		if every := (len(again) + useSteps - 1) / useSteps; s.measure.knowsUse && (i+1)%every == 0 {
			_ = s.Advance(s.now()+useStep, 0, progress)
		}
		if progress(s.now(), s.cycles); atomic.LoadInt32(&interrupted) != 0 {
			return
		}
	}
	for _, of := range waiting {
		s.pause()
		s.adopt(of)
	}
}

// takeUse takes the use of a pod away from its node's.
func (s *Simulation) takeUse(of *v1.Pod) {
	use, known := s.options.Cluster.PodUse[of.Namespace+"/"+of.Name]
	if _, measured := s.options.Cluster.NodeUse[of.Spec.NodeName]; measured && !known {
		s.notes["pods have no measured use: what they use is still counted on the nodes where they were"]++
	}
	if n := s.nodes[of.Spec.NodeName]; n != nil {
		for i, amount := range s.measure.vector(use) {
			n.base[i] = math.Max(0, n.base[i]-amount)
		}
	}
}

// calm schedules what is ready. While there are evictions, or pods in backoff because something helps them, time passes.
func (s *Simulation) calm(progress Progress) {
	s.settle()
	for until := s.now() + time.Minute; s.now() < until && (len(s.agenda) > 0 || gauge(s.backoff) > 0); {
		if s.Advance(s.now()+tick, 0, progress) != nil {
			return
		}
	}
}

// endFigures returns the figures of the end.
func (s *Simulation) endFigures(workloads []result.Workload) (figures []result.Figure) {
	add := func(name string, value float64) {
		figure := figureOf(name)
		figure.Value = round(value)
		figures = append(figures, figure)
	}
	m, placed, used, price, inOneZone := s.measure, 0, 0.0, 0.0, 0
	capacity, allocated := make([]float64, len(m.resources)), make([]float64, len(m.resources))
	for _, name := range namesOf(s.nodes) {
		n, moving := s.nodes[name], 0
		for _, p := range n.pods {
			if p.moves() {
				moving++
			}
		}
		if moving == 0 {
			continue
		}
		used, price = used+1, price+n.price
		for i := range m.resources {
			capacity[i], allocated[i] = capacity[i]+n.capacity[i], allocated[i]+n.allocated[i]
		}
	}
	for _, p := range s.all {
		if p.node != nil && !p.ended {
			placed++
		}
	}
	add("pods_placed", float64(placed))
	add("pods_pending", float64(len(waitingPods(s.all))))
	add("preemptions", float64(len(s.preemptions)))
	add("nodes_used", used)
	for i, name := range m.resources {
		add(labelled("used_nodes_allocation_percent", name), percent(allocated[i], capacity[i]))
	}
	if m.knowsUse {
		m.measureUse(s.now())
	}
	for i, value := range m.current() {
		switch strings.SplitN(m.names[i], "{", 2)[0] {
		case cost:
			add(cost, price)
		case fragmentation, spread, usedSpread, skew, hotNodes:
			add(m.names[i], value)
		}
	}
	for _, w := range workloads {
		for zone, pods := range w.Zones {
			if zone != result.NoNode && pods > 1 && pods == w.Pods-w.Zones[result.NoNode] {
				inOneZone++
			}
		}
	}
	if m.zoned {
		add("workloads_in_one_zone", float64(inOneZone))
	}
	return figures
}

// workloads returns the controllers of several pods with their pods' zones, if there are several zones.
func (s *Simulation) workloads() (workloads []result.Workload) {
	known := map[string]*result.Workload{}
	for _, p := range s.all {
		if p.ended || p.workload.Owner == "" || !s.measure.zoned {
			continue
		}
		name, zone := p.workload.Pod.Namespace+"/"+p.workload.Owner, result.NoNode
		if known[name] == nil {
			known[name] = &result.Workload{Name: name, Zones: map[string]int{}}
		}
		if p.node != nil {
			zone = p.node.zone
		}
		known[name].Pods++
		known[name].Zones[zone]++
	}
	for _, name := range namesOf(known) {
		if known[name].Pods > 1 {
			workloads = append(workloads, *known[name])
		}
	}
	return workloads
}
