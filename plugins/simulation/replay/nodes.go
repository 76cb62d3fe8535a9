// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
)

// node is a node with its allocation.
type node struct {
	name, zone  string
	allocatable v1.ResourceList
	pods        map[string]*pod
	price       float64
	// down is whether it is unreachable, for the failures-th time.
	down     bool
	failures int
	// base is the use that is not its pods'.
	base []float64
	// history is the use of CPU and of memory.
	history [2]history
	// ordinary is the use of its ordinary pods and its own, in cores.
	ordinary history
	totals
}

// AddNode adds a node, or replaces it.
func (s *Simulation) AddNode(of *v1.Node) {
	n := &node{name: of.Name, zone: zoneOf(of), allocatable: of.Status.Allocatable, pods: map[string]*pod{}}
	if price, err := strconv.ParseFloat(of.Labels[s.options.PriceLabel], 64); err == nil && s.options.PriceLabel != "" {
		n.price = price
	}
	if known := s.nodes[of.Name]; known == nil {
		s.nodes[of.Name] = n
		s.measure.added(n)
	} else {
		s.measure.move(known, n)
	}
	existed := s.nodeObject(of.Name) != nil
	s.store.put(of)
	if s.store.synced && !existed && !s.options.History {
		s.addDaemons(of)
	}
}

// addDaemons adds the pods of DaemonSets to a new node.
func (s *Simulation) addDaemons(to *v1.Node) {
	for _, object := range s.store.of(&appsv1.DaemonSet{}).indexer.List() {
		if made := input.DaemonPod(object.(*appsv1.DaemonSet), to); made != nil {
			s.admit(made)
			s.adopt(made)
		}
	}
	lacking := map[string]bool{}
	for _, p := range s.pods {
		if name := strings.TrimPrefix(p.workload.Owner, "DaemonSet/"); name != p.workload.Owner {
			key := p.workload.Pod.Namespace + "/" + name
			if s.store.of(&appsv1.DaemonSet{}).get(key) == nil {
				lacking[key] = true
			}
		}
	}
	for key := range lacking {
		s.notes[fmt.Sprintf("new nodes have no pods of DaemonSet %s, which the snapshot lacks", key)]++
	}
}

func zoneOf(of *v1.Node) string {
	if zone := of.Labels[v1.LabelTopologyZone]; zone != "" {
		return zone
	}
	return of.Labels[v1.LabelFailureDomainBetaZone]
}

// nodeObject returns a copy of a node's object to change, or nil.
func (s *Simulation) nodeObject(name string) *v1.Node {
	object := s.store.of(&v1.Node{}).get(name)
	if object == nil {
		return nil
	}
	return object.(*v1.Node).DeepCopy()
}

// Cordon makes a node unschedulable, or schedulable again.
func (s *Simulation) Cordon(name string, cordoned bool) {
	object := s.nodeObject(name)
	if object == nil || object.Spec.Unschedulable == cordoned {
		return
	}
	object.Spec.Unschedulable = cordoned
	taint := v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}
	object.Spec.Taints = without(object.Spec.Taints, taint.Key)
	if cordoned {
		object.Spec.Taints = append(object.Spec.Taints, taint)
	}
	s.store.put(object)
}

func without(taints []v1.Taint, key string) []v1.Taint {
	var left []v1.Taint
	for _, taint := range taints {
		if taint.Key != key {
			left = append(left, taint)
		}
	}
	return left
}

// podsOn returns a node's pods, sorted by name.
func (s *Simulation) podsOn(n *node) []*pod {
	var pods []*pod
	for _, p := range n.pods {
		pods = append(pods, p)
	}
	sort.Slice(pods, func(i, j int) bool { return pods[i].key < pods[j].key })
	return pods
}

// Apply makes an event of a trace happen.
func (s *Simulation) Apply(of *input.Event) {
	switch {
	case of.Pods != nil:
		s.Create(of.Pods)
	case of.NodeObject != nil:
		s.AddNode(of.NodeObject.DeepCopy())
	case of.Delete == "":
		s.changeNode(of.Node, of.Change)
	case s.options.History:
		s.deleteNamed(of)
	default:
		// Its owner wants one pod less.
		if object := s.current(of.Delete); object == nil {
			return
		} else if p := s.pods[of.Delete]; p.node == nil {
			s.end(p)
		} else {
			s.delete(object, false, s.grace(object))
		}
	}
}

// changeNode makes what a trace says of a node happen.
func (s *Simulation) changeNode(name string, to input.NodeChange) {
	switch to {
	case input.CordonNode:
		s.Cordon(name, true)
	case input.DrainNode:
		s.Cordon(name, true)
		if n := s.nodes[name]; n != nil {
			s.drain(n, s.now()+drainTimeout)
		}
	case input.FailNode:
		s.fail(name)
	case input.RemoveNode:
		s.removeNode(name)
	default:
		s.restore(name)
	}
}

// restore adds a node as it was in the snapshot, or makes it reachable and schedulable again.
func (s *Simulation) restore(name string) {
	for _, original := range s.options.Cluster.Nodes {
		if original.Name == name {
			added := original.DeepCopy()
			added.Spec.Unschedulable, added.Spec.Taints = false, without(added.Spec.Taints, v1.TaintNodeUnschedulable)
			s.AddNode(added)
		}
	}
	// Its kubelet confirms the end of pods that were deleted meanwhile.
	if n := s.nodes[name]; n != nil && n.down {
		n.down = false
		for _, p := range s.podsOn(n) {
			if p.deleted {
				s.finish(p, true)
			}
		}
	}
}

// removeNode deletes a node and its pods.
func (s *Simulation) removeNode(name string) {
	n, object := s.nodes[name], s.nodeObject(name)
	if n == nil || object == nil {
		return
	}
	pods := s.podsOn(n)
	for _, p := range pods {
		s.disrupt(p)
		s.end(p)
	}
	delete(s.nodes, name)
	s.measure.gone(n)
	s.store.remove(object)
	for _, p := range pods {
		if !p.deleted {
			p.deleted = true
			// A history has the pods that really came instead of this node's.
			if real := p.workload.Real; real == nil || real.Node != name {
				s.replace(p, true)
			}
		}
	}
}

// unreachable is how long pods stay on an unreachable node by default.
const unreachable = 300 * time.Second

// fail makes a node unreachable. Its pods are evicted when they no longer tolerate that.
func (s *Simulation) fail(name string) {
	n, object := s.nodes[name], s.nodeObject(name)
	if n == nil || object == nil || n.down {
		return
	}
	n.down = true
	n.failures++
	failure := n.failures
	now := metav1.Now()
	for _, effect := range []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute} {
		object.Spec.Taints = append(object.Spec.Taints, v1.Taint{Key: v1.TaintNodeUnreachable, Effect: effect, TimeAdded: &now})
	}
	for _, p := range s.podsOn(n) {
		p := p
		delay, ever := tolerates(p.workload.Pod)
		if ever {
			continue
		}
		s.after(delay, func() {
			object := s.current(p.key)
			if n.down && n.failures == failure && !p.ended && !p.deleted && object != nil {
				// The node does not confirm the end of a pod, and its owner does not wait for that.
				s.terminate(object)
			}
		})
	}
	s.store.put(object)
}

// tolerates returns how long a pod stays on an unreachable node, or true if for ever.
func tolerates(of *v1.Pod) (time.Duration, bool) {
	for i := range of.Spec.Tolerations {
		t := &of.Spec.Tolerations[i]
		if (t.Key == v1.TaintNodeUnreachable || t.Key == "" && t.Operator == v1.TolerationOpExists) &&
			(t.Effect == v1.TaintEffectNoExecute || t.Effect == "") {
			if t.TolerationSeconds == nil {
				return 0, true
			}
			return time.Duration(*t.TolerationSeconds) * time.Second, false
		}
	}
	return unreachable, false
}
