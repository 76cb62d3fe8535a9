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
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// retryEviction is the period in which `kubectl drain` retries an eviction that a disruption budget refuses.
const retryEviction = 5 * time.Second

// retryPeriod returns the period. In questions no time passes that matters: pods of the snapshot stay in their backoff.
func (s *Simulation) retryPeriod() time.Duration {
	if s.options.Question {
		return time.Millisecond
	}
	return retryEviction
}

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
		// Its controller writes 0 when several pods must become healthy before one may be disrupted.
		if lacking := object.Status.CurrentHealthy - object.Status.DesiredHealthy; lacking < 0 {
			object = object.DeepCopy()
			object.Status.DisruptionsAllowed = lacking
			s.store.put(object)
		}
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
		b.Status.CurrentHealthy += by
		s.store.put(b)
	}
}

// refused returns why the eviction API of Kubernetes 1.23 does not evict a pod, or nil if it does. It asks no budgets for
// a pod that does not run.
func (s *Simulation) refused(p *pod, of *v1.Pod) *result.Blocked {
	var names []string
	var last *policyv1.PodDisruptionBudget
	for _, b := range s.budgetsOf(of) {
		// Unlike the controller, it takes an empty selector for one that selects no pods.
		if selector := b.Spec.Selector; len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
			names, last = append(names, b.Namespace+"/"+b.Name), b
		}
	}
	blocked := &result.Blocked{Pod: p.key, Budget: strings.Join(names, ", ")}
	switch {
	case len(names) == 0 || !p.running:
		return nil
	case len(names) > 1:
		blocked.Several = true
	case last.Status.DisruptionsAllowed > 0:
		return nil
	case p.owes && last.Status.CurrentHealthy >= last.Status.DesiredHealthy && last.Status.DesiredHealthy > 0:
		return nil // It is not healthy, and the others are enough.
	case p.owes && s.options.Cluster.EvictUnhealthy[names[0]]:
		return nil
	}
	return blocked
}

// moves reports whether a drain evicts a pod: those of DaemonSets and of the node itself stay.
func (p *pod) moves() bool {
	return !p.deleted && !strings.HasPrefix(p.workload.Owner, "DaemonSet/") && !strings.HasPrefix(p.workload.Owner, "Node/")
}

// drainTimeout is how long a drain retries evictions, from the last one that succeeded.
const drainTimeout = time.Hour

// drain evicts the pods of a node, and retries those that the eviction API refuses, until a time or until the node is
// schedulable again.
func (s *Simulation) drain(n *node, until time.Duration) {
	if object := s.nodeObject(n.name); object == nil || !object.Spec.Unschedulable {
		return
	}
	again := false
	for _, p := range s.podsOn(n) {
		switch object := s.current(p.key); {
		case object == nil || !p.moves() || p.ended:
		case s.refused(p, object) != nil:
			again = true
		default:
			s.terminate(object)
			until = s.now() + drainTimeout
		}
	}
	if again && s.now() < until {
		s.retries++
		s.after(s.retryPeriod(), func() { s.retries--; s.drain(n, until) })
	} else if again {
		s.notes[fmt.Sprintf("drain of %s did not end within %v, because of PodDisruptionBudgets", n.name, drainTimeout)]++
	}
}
