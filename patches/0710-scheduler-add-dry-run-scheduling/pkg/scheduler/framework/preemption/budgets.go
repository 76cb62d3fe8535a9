// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// usesUp returns a function that reports whether the eviction of a pod uses up one of the disruptions that a budget
// allows. It does not if the API server has evicted the pod, and counted that.
func usesUp(budget *policy.PodDisruptionBudget) func(*v1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return func(pod *v1.Pod) bool {
		_, counted := budget.Status.DisruptedPods[pod.Name]
		return err == nil && pod.Namespace == budget.Namespace && !counted && selector.Matches(labels.Set(pod.Labels))
	}
}
