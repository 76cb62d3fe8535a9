// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// The statuses of nodes that are not candidates because of the switches.
const (
	overBudget  = "preemption on the node would violate a PodDisruptionBudget"
	needsStuck  = "preemption on the node would need the end of a pod that terminates for too long"
	noCandidate = "Evicting pods of lower priority would not make room on any node."
	noBudget    = "Evicting pods of lower priority would make room, but would violate a PodDisruptionBudget on each such node."
)

// whyNot returns why there is no candidate.
func (ev *Evaluator) whyNot() string {
	for _, status := range ev.search.evaluated {
		if status.Message() == overBudget {
			return noBudget
		}
	}
	return noCandidate
}

// respectsBudgets reports whether a pod may preempt only what budgets allow.
func (ev *Evaluator) respectsBudgets(preemptor *v1.Pod) bool {
	return framework.SwitchesOf(ev.Handler).RespectBudgets && corev1helpers.PodPriority(preemptor) < scheduling.SystemCriticalPriority
}

// stuck reports whether a pod terminates for too long.
func (ev *Evaluator) stuck(pod *v1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	// The timestamp is the end of the grace period.
	timeout := framework.SwitchesOf(ev.Handler).NominationTimeout
	return timeout > 0 && time.Since(pod.DeletionTimestamp.Time) > timeout
}

// waitsForStuck reports whether all pods that terminate on the pod's nominated node are stuck, and that there are some.
func (ev *Evaluator) waitsForStuck(pod *v1.Pod) (waits bool) {
	if framework.SwitchesOf(ev.Handler).NominationTimeout == 0 || pod.Status.NominatedNodeName == "" {
		return false
	}
	node, err := ev.Handler.SnapshotSharedLister().NodeInfos().Get(pod.Status.NominatedNodeName)
	if err != nil {
		return false
	}
	for _, on := range node.Pods {
		if stuck := ev.stuck(on.Pod); on.Pod.DeletionTimestamp != nil && !stuck {
			return false
		} else if stuck {
			waits = true
		}
	}
	return waits
}

// eligible is PodEligibleToPreemptOthers, also for a pod whose victims are stuck.
func (ev *Evaluator) eligible(pod *v1.Pod, nominated *framework.Status) bool {
	if ev.PodEligibleToPreemptOthers(pod, nominated) {
		return true
	}
	free := *pod
	free.Status.NominatedNodeName = ""
	return ev.waitsForStuck(pod) && ev.PodEligibleToPreemptOthers(&free, nil)
}

// keptNomination returns the node for which a pod without candidates stays nominated, so that no pod of a lower priority
// takes the room that other victims have left: the one where victims are stuck.
func (ev *Evaluator) keptNomination(pod *v1.Pod, m framework.NodeToStatusMap) string {
	node := pod.Status.NominatedNodeName
	if ev.waitsForStuck(pod) && ev.statusOf(m, node).Code() != framework.UnschedulableAndUnresolvable {
		return node
	}
	return ""
}

// selectVictims is SelectVictimsOnNode within the switches.
func (ev *Evaluator) selectVictims(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo, budgets []*policy.PodDisruptionBudget) ([]*v1.Pod, int, *framework.Status) {
	for i, on := range nodeInfo.Pods {
		if ev.stuck(on.Pod) {
			// It stays where it is, like a pod of a higher priority.
			highest, kept, pod := int32(math.MaxInt32), *on, *on.Pod
			pod.Spec.Priority, kept.Pod = &highest, &pod
			nodeInfo.Pods[i] = &kept
		}
	}
	victims, violations, status := ev.SelectVictimsOnNode(ctx, state, pod, nodeInfo, budgets)
	if !status.IsSuccess() {
		return victims, violations, status
	}
	for _, victim := range victims {
		if ev.stuck(victim) { // CapacityScheduling evicts across priorities.
			return nil, 0, framework.NewStatus(framework.Unschedulable, needsStuck)
		}
	}
	switch {
	case !ev.respectsBudgets(pod):
		return victims, violations, nil
	case within(budgets, victims):
		return victims, 0, nil // The plugins count pods that could violate a budget together with others which stay.
	}
	return nil, 0, framework.NewStatus(framework.Unschedulable, overBudget)
}

// asksNoBudget reports whether the eviction API deletes a pod without regard to budgets.
func asksNoBudget(pod *v1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == v1.PodPending || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// within reports whether the eviction API would evict all victims.
func within(budgets []*policy.PodDisruptionBudget, victims []*v1.Pod) bool {
	ofBudget := map[*v1.Pod]bool{}
	for _, budget := range budgets {
		uses, left := usesUp(budget), budget.Status.DisruptionsAllowed
		for _, victim := range victims {
			if asksNoBudget(victim) || !uses(victim) {
				continue
			}
			// It refuses pods with two budgets. Unlike the controller, it takes an empty selector for one that selects no pods.
			if selector := budget.Spec.Selector; len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
				if ofBudget[victim] {
					return false
				}
				ofBudget[victim] = true
			}
			if status := &budget.Status; !podutil.IsPodReady(victim) && status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0 {
				continue // The pod is not healthy, and the others are enough.
			}
			// It refuses while the controller has not seen the budget's last change.
			if left--; left < 0 || budget.Status.ObservedGeneration < budget.Generation {
				return false
			}
		}
	}
	return true
}

// evict deletes a victim. The eviction API retries a conflict about the UID, so the informer is asked first for a pod that
// is gone.
func (ev *Evaluator) evict(victim, preemptor *v1.Pod) error {
	if !ev.respectsBudgets(preemptor) {
		return util.DeletePod(ev.Handler.ClientSet(), victim)
	}
	if current, err := ev.PodLister.Pods(victim.Namespace).Get(victim.Name); err != nil || current.UID != victim.UID {
		return apierrors.NewNotFound(v1.Resource("pods"), victim.Name)
	}
	return util.EvictPod(ev.Handler.ClientSet(), victim)
}
