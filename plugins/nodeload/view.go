// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/pointer"
)

// leastMeasured is the least share of a window for which a pod must have run before its use is taken as measured.
const leastMeasured = 0.2

// A view predicts the loads of nodes. It is made when a snapshot arrives, and all cycles read it until the next one
// arrives.
//
// Three parts change, atomically, because several workers filter and score in parallel: the predictions, the ended
// pods, and the rejections.
type view struct {
	*measurements
	scales   *ownerScales
	ended    *endedPods
	rejected *rejectedNodes
	// predictions has the last computed *prediction of each node.
	predictions []atomic.Value
}

// prediction has the loads of a node with pods in flight. They are valid until the node's pods change: each change gives
// a NodeInfo a new, unique generation, also in the copies that preemption makes. The end of a pod makes them invalid.
type prediction struct {
	generation int64
	loads      []load
	// ended is what the measurements contain of ended pods, as negative loads, by resource; nil if there are none.
	ended []float64
	// lower is what would be taken off if all pods of a priority left, as far as their use is measured.
	lower map[priority]float64
}

// priority is a priority of pods, and the index of a resource.
type priority struct {
	priority int32
	resource int
}

func newView(m *measurements, ended *endedPods) *view {
	v := &view{
		measurements: m, scales: &ownerScales{}, ended: ended, rejected: newRejectedNodes(len(m.nodes), len(m.resources)),
		predictions: make([]atomic.Value, len(m.nodes)),
	}
	for node := range v.predictions {
		v.predictions[node].Store(&prediction{})
	}
	return v
}

// inherit copies the rejections of the previous view, and reports whether pods were rejected on nodes that were not in
// it.
func (v *view) inherit(before *view) (others bool) {
	for node := range before.nodes {
		for r := range before.resources {
			if below, noted := before.rejected.below(node, r); noted {
				if now := v.find(before.nodes[node].Name); now >= 0 {
					v.rejected.note(now, r, below)
				}
			}
		}
	}
	return before.rejected.onOthers()
}

// loads returns the loads of a node with pods in flight. They must not be changed.
func (v *view) loads(nodeInfo *framework.NodeInfo) []load { return v.predict(nodeInfo).loads }

// predict returns the prediction for a node, computed if its pods have changed.
func (v *view) predict(nodeInfo *framework.NodeInfo) *prediction {
	of := nodeInfo.Node()
	node, before := v.find(of.Name), (*prediction)(nil)
	if node >= 0 {
		if before = v.predictions[node].Load().(*prediction); before.generation == nodeInfo.Generation {
			return before
		}
	}
	p := v.withoutPods(node, of)
	p.generation = nodeInfo.Generation
	for _, podInfo := range nodeInfo.Pods {
		v.add(p, podInfo.Pod, podInfo.Pod.DeletionTimestamp != nil)
	}
	if node >= 0 {
		// Not if a pod has ended meanwhile.
		v.predictions[node].CompareAndSwap(before, p)
	}
	return p
}

// withoutPods returns the loads of a node without its pods, and without what is left of ended pods. A node with the
// index -1 is not measured.
func (v *view) withoutPods(node int, of *v1.Node) *prediction {
	p := &prediction{loads: make([]load, len(v.resources))}
	if node >= 0 {
		copy(p.loads, v.measured[node])
		p.ended = v.predictions[node].Load().(*prediction).ended
		for r := range p.ended {
			// Not more than was measured, which would hide pods in flight.
			p.loads[r].inFlight = math.Max(p.ended[r], -p.loads[r].measured)
		}
		return p
	}
	for r := range p.loads {
		l := &p.loads[r]
		*l = load{at: notMeasured, variation: math.NaN()}
		if capacity, known := v.resources[r].capacity.Of(of); known {
			l.perUnit = 1 / capacity
		}
		v.account(r, l)
	}
	return p
}

// add adds to the loads of a node what its measurements lack of a pod. The pod counts for at most the node's capacity.
// If it leaves, its measured use is taken off instead. A pod that has ended does not count.
func (v *view) add(p *prediction, pod *v1.Pod, leaves bool) {
	start, looked, scales := StartOf(pod, v.window, v.made), false, (*scales)(nil)
	for r := range p.loads {
		resource, l := &v.resources[r], &p.loads[r]
		if l.since == notMeasured {
			continue
		}
		// Most pods are in all measurements.
		lack := Lacking(start, Running, l.since, resource.window)
		if lack == 0 && v.usedByPods[r] == nil {
			continue
		}
		if !looked {
			if ended, found := v.ended.last(nameOf(pod)); found && ended == pod.UID {
				return
			}
			scales, looked = v.scales.byOwner[ownerOf(pod)], true
		}
		add := lack * l.share(resource.estimator.estimate(pod, scales.of(r)))
		if used := v.used(pod, start, r); used >= 0 && l.since == l.at {
			gone := (lack - 1) * l.share(used)
			if leaves || resource.estimator.yields(pod) {
				add = gone
			} else {
				if p.lower == nil {
					p.lower = map[priority]float64{}
				}
				p.lower[priority{pointer.Int32Deref(pod.Spec.Priority, 0), r}] += gone - add
			}
		}
		l.inFlight += add
	}
}

// without returns the loads without the measured use of pods of a lower priority.
func (p *prediction) without(below int32) []load {
	loads := append([]load(nil), p.loads...)
	for of, less := range p.lower {
		if of.priority < below {
			loads[of.resource].inFlight += less
		}
	}
	return loads
}

// addAll adds pods to the loads of some nodes, by their indices.
func (v *view) addAll(pods []*v1.Pod, to map[int]*prediction) {
	for _, pod := range pods {
		if p := to[v.find(pod.Spec.NodeName)]; p != nil {
			v.add(p, pod, pod.DeletionTimestamp != nil)
		}
	}
}

func nameOf(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

// runOf returns the run of a pod with an end. An estimated use is taken off as far as the scale of its owner is known:
// if it is too high, the node seems cooler than it is. Nothing is learned of an annotation. A pod that crashes uses
// nothing, unless it is measured.
func (v *view) runOf(pod *v1.Pod, end int64) run {
	of := run{pod.Spec.NodeName, nameOf(pod), pod.UID, ownerOf(pod), StartOf(pod, v.window, v.made), end, make([]use, len(v.resources))}
	scales, crashes := v.scales.byOwner[of.owner], waits(pod)
	for r := range of.uses {
		u := &of.uses[r]
		if !crashes {
			*u = v.resources[r].estimator.use(pod, scales.of(r))
		}
		if used := v.used(pod, of.start, r); used >= 0 {
			u.amount, u.known = used, 1
		} else if u.plain > 0 {
			u.known = scales.certainty(r)
		}
	}
	return of
}

// used returns the measured use of a resource by a pod that started at a time; negative if it is unknown, for example
// because a measurement contains an ended pod with the same name, such as a StatefulSet's.
func (v *view) used(pod *v1.Pod, start int64, r int) float64 {
	if v.usedByPods[r] == nil {
		return -1
	}
	name := nameOf(pod)
	sample, found := v.usedByPods[r][name]
	share := 1 - Lacking(start, Running, sample.At, v.resources[r].window)
	if !found || sample.At < v.oldest || share < leastMeasured {
		return -1
	}
	if ended, found := v.ended.last(name); found && ended != pod.UID && share < 1 {
		return -1
	}
	return sample.Value / share
}

// takeOff takes off what the measurements of a node contain of an ended pod.
func (v *view) takeOff(of *run) {
	for node := v.findAt(of.node, of.start); node >= 0; {
		before := v.predictions[node].Load().(*prediction)
		ended := make([]float64, len(v.resources))
		copy(ended, before.ended)
		for r := range ended {
			if l := &v.measured[node][r]; l.at != notMeasured && l.since == l.at {
				u := &of.uses[r]
				ended[r] += Lacking(of.start, of.end, l.at, v.resources[r].window) * l.share(u.amount*u.known)
			}
		}
		if v.predictions[node].CompareAndSwap(before, &prediction{ended: ended}) {
			return
		}
	}
}
