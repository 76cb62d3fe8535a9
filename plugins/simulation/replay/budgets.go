// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// retryEviction is the period in which `kubectl drain` retries an eviction that a disruption budget refuses.
const retryEviction = 5 * time.Second

// budget is the key of a PodDisruptionBudget, with its selector.
type budget struct {
	key      string
	selector labels.Selector
}

func (s *Simulation) loadBudgets() error {
	t := s.store.of(&policyv1.PodDisruptionBudget{})
	for _, key := range sorted(t.indexer.ListKeys()) {
		object := t.get(key).(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
		if err != nil {
			return fmt.Errorf("the selector of PodDisruptionBudget %s: %v", key, err)
		}
		s.budgets = append(s.budgets, &budget{key, selector})
	}
	return nil
}

// budgetsOf returns the current budgets of a pod.
func (s *Simulation) budgetsOf(of *v1.Pod) []*policyv1.PodDisruptionBudget {
	var budgets []*policyv1.PodDisruptionBudget
	for _, b := range s.budgets {
		if strings.HasPrefix(b.key, of.Namespace+"/") && b.selector.Matches(labels.Set(of.Labels)) {
			if object := s.store.of(&policyv1.PodDisruptionBudget{}).get(b.key); object != nil {
				budgets = append(budgets, object.(*policyv1.PodDisruptionBudget))
			}
		}
	}
	return budgets
}

// allow changes how many disruptions the budgets of a pod allow, as their controller does.
func (s *Simulation) allow(of *v1.Pod, by int32) {
	for _, b := range s.budgetsOf(of) {
		b = b.DeepCopy()
		b.Status.DisruptionsAllowed += by
		s.store.put(b)
	}
}

// refusing returns the name of a budget that does not allow the eviction of a pod, or "".
func (s *Simulation) refusing(of *v1.Pod) string {
	for _, b := range s.budgetsOf(of) {
		if b.Status.DisruptionsAllowed <= 0 {
			return b.Namespace + "/" + b.Name
		}
	}
	return ""
}

// evict terminates a pod if its budgets allow that, and returns the name of the one that does not.
func (s *Simulation) evict(p *pod) string {
	object := s.current(p.key)
	if object == nil || p.deleted || p.ended {
		return ""
	}
	by := s.refusing(object)
	if by == "" {
		s.terminate(object)
	}
	return by
}

// moves reports whether a drain evicts a pod: those of DaemonSets and of the node itself stay.
func (p *pod) moves() bool {
	return !p.deleted && !strings.HasPrefix(p.workload.Owner, "DaemonSet/") && !strings.HasPrefix(p.workload.Owner, "Node/")
}

// drainTimeout is how long a drain retries evictions.
const drainTimeout = time.Hour

// drain evicts the pods of a node, and retries those whose budgets do not allow that yet, until a time or until the node
// is schedulable again.
func (s *Simulation) drain(n *node, until time.Duration) {
	if object := s.nodeObject(n.name); object == nil || !object.Spec.Unschedulable {
		return
	}
	again := false
	for _, p := range s.podsOn(n) {
		if p.moves() && s.evict(p) != "" {
			again = true
		}
	}
	if again && s.now() < until {
		s.after(retryEviction, func() { s.drain(n, until) })
	} else if again {
		s.notes[fmt.Sprintf("drain of %s did not end within %v, because of PodDisruptionBudgets", n.name, drainTimeout)]++
	}
}
