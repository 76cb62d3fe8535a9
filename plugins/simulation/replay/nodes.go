// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"sort"
	"strconv"
	"time"

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
	base    []float64
	history []measured
	// ordinary is the use of its ordinary pods and its own, in cores.
	ordinary history
	totals
}

// AddNode adds a node, or replaces it.
func (s *Simulation) AddNode(of *v1.Node) error {
	n := &node{name: of.Name, zone: zoneOf(of), allocatable: of.Status.Allocatable, pods: map[string]*pod{}}
	if price, err := strconv.ParseFloat(of.Labels[s.options.PriceLabel], 64); err == nil && s.options.PriceLabel != "" {
		n.price = price
	}
	if known := s.nodes[of.Name]; known == nil {
		s.nodes[of.Name] = n
		s.measure.added(n)
	}
	return s.store.put(of)
}

func zoneOf(of *v1.Node) string {
	if zone := of.Labels[v1.LabelTopologyZone]; zone != "" {
		return zone
	}
	return of.Labels[v1.LabelFailureDomainBetaZone]
}

// nodeObject returns a copy of a node's object to change, or nil.
func (s *Simulation) nodeObject(name string) *v1.Node {
	object := s.tableOf(&v1.Node{}).get(name)
	if object == nil {
		return nil
	}
	return object.(*v1.Node).DeepCopy()
}

// Cordon makes a node unschedulable, or schedulable again.
func (s *Simulation) Cordon(name string, cordoned bool) error {
	object := s.nodeObject(name)
	if object == nil || object.Spec.Unschedulable == cordoned {
		return nil
	}
	object.Spec.Unschedulable = cordoned
	taint := v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}
	object.Spec.Taints = without(object.Spec.Taints, taint.Key)
	if cordoned {
		object.Spec.Taints = append(object.Spec.Taints, taint)
	}
	return s.store.put(object)
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
func (s *Simulation) Apply(of *input.Event) error {
	switch {
	case of.Pods != nil:
		return s.Create(of.Pods)
	case of.Delete != "":
		if object := s.current(of.Delete); object != nil {
			// Its owner wants one pod less.
			if p := s.pods[of.Delete]; p.node == nil {
				return s.end(p)
			}
			return s.delete(object, false)
		}
		return nil
	}
	return s.changeNode(of.Node, of.Change)
}

// changeNode makes what a trace says of a node happen.
func (s *Simulation) changeNode(name string, to input.NodeChange) error {
	switch to {
	case input.CordonNode:
		return s.Cordon(name, true)
	case input.DrainNode:
		if err := s.Cordon(name, true); err != nil {
			return err
		}
		if n := s.nodes[name]; n != nil {
			return s.drain(n, s.now()+drainTimeout)
		}
		return nil
	case input.FailNode:
		return s.fail(name)
	case input.RemoveNode:
		return s.removeNode(name)
	}
	for _, original := range s.options.Cluster.Nodes {
		if original.Name == name {
			added := original.DeepCopy()
			added.Spec.Unschedulable, added.Spec.Taints = false, without(added.Spec.Taints, v1.TaintNodeUnschedulable)
			if err := s.AddNode(added); err != nil {
				return err
			}
		}
	}
	// Its kubelet confirms the end of pods that were deleted meanwhile.
	if n := s.nodes[name]; n != nil && n.down {
		n.down = false
		for _, p := range s.podsOn(n) {
			if p.deleted {
				if err := s.finish(p, true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeNode deletes a node and its pods.
func (s *Simulation) removeNode(name string) error {
	n, object := s.nodes[name], s.nodeObject(name)
	if n == nil || object == nil {
		return nil
	}
	pods := s.podsOn(n)
	for _, p := range pods {
		if err := s.disrupt(p); err != nil {
			return err
		}
		if err := s.end(p); err != nil {
			return err
		}
	}
	delete(s.nodes, name)
	s.measure.gone(n)
	if err := s.store.remove(object); err != nil {
		return err
	}
	for _, p := range pods {
		if !p.deleted {
			p.deleted = true
			if err := s.replace(p, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// unreachable is how long pods stay on an unreachable node by default.
const unreachable = 300 * time.Second

// fail makes a node unreachable. Its pods are evicted when they no longer tolerate that.
func (s *Simulation) fail(name string) error {
	n, object := s.nodes[name], s.nodeObject(name)
	if n == nil || object == nil || n.down {
		return nil
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
		s.after(delay, func() error {
			if !n.down || n.failures != failure || p.ended || p.deleted {
				return nil
			}
			// The node does not confirm the end of a pod, and its owner does not wait for that.
			object := s.current(p.key)
			if object == nil {
				return nil
			}
			return s.terminate(object)
		})
	}
	return s.store.put(object)
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
