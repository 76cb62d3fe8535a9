// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// dryRuns has the results of dry runs on nodes for pods of one shape. The pods of a gang ask the same of each node that did
// not change since: a NodeInfo that changes gets a Generation that no other one had.
type dryRuns struct {
	shape   string
	budgets map[types.UID]budgetVersion

	mutex        sync.RWMutex
	byGeneration map[int64]dryRun
}

// dryRun is what SelectVictimsOnNode has returned.
type dryRun struct {
	victims    []*v1.Pod
	violations int
	status     *framework.Status
}

type budgetVersion struct {
	resource string
	allowed  int32
}

// Shape sets the shape of the pods of the next preemptions: of all that filters read of them, and their priority.
func (d *Deferred) Shape(shape string) {
	if d.runs == nil || d.runs.shape != shape {
		d.runs = &dryRuns{shape: shape}
	}
}

// knownRuns returns the results that hold for this search; nil if filters read more than the pod and the node, or if nodes
// have nominated pods.
func (ev *Evaluator) knownRuns(state *framework.CycleState, budgets []*policy.PodDisruptionBudget) *dryRuns {
	d := ev.deferred()
	if d == nil || d.runs == nil || !state.RejectionsHold() {
		return nil
	}
	runs, now := d.runs, make(map[types.UID]budgetVersion, len(budgets))
	same := len(budgets) == len(runs.budgets)
	for _, budget := range budgets {
		now[budget.UID] = budgetVersion{budget.ResourceVersion, budget.Status.DisruptionsAllowed}
		same = same && runs.budgets[budget.UID] == now[budget.UID]
	}
	if runs.budgets = now; !same || runs.byGeneration == nil {
		runs.byGeneration = map[int64]dryRun{}
	}
	return runs
}

// reusing is an Interface that dry-runs a node again only if it has changed.
type reusing struct {
	Interface
	*Evaluator
	once  sync.Once
	known *dryRuns
}

// reuseDryRuns makes the preemptions for a gang reuse dry runs.
func (ev *Evaluator) reuseDryRuns() {
	if d := ev.deferred(); d != nil && d.runs != nil {
		ev.Interface = &reusing{Interface: ev.Interface, Evaluator: ev}
	}
}

// SelectVictimsOnNode implements Interface.
func (r *reusing) SelectVictimsOnNode(ctx context.Context, state *framework.CycleState, pod *v1.Pod,
	nodeInfo *framework.NodeInfo, budgets []*policy.PodDisruptionBudget) ([]*v1.Pod, int, *framework.Status) {
	r.once.Do(func() { r.known = r.knownRuns(state, budgets) })
	if r.known == nil {
		return r.Interface.SelectVictimsOnNode(ctx, state, pod, nodeInfo, budgets)
	}
	// The dry run changes the NodeInfo.
	generation, terminating := nodeInfo.Generation, terminates(nodeInfo)
	r.known.mutex.RLock()
	run, found := r.known.byGeneration[generation]
	r.known.mutex.RUnlock()
	if !found {
		run.victims, run.violations, run.status = r.Interface.SelectVictimsOnNode(ctx, state, pod, nodeInfo, budgets)
		if run.status.Code() != framework.Error && !terminating {
			r.known.mutex.Lock()
			defer r.known.mutex.Unlock()
			r.known.byGeneration[generation] = run
		}
	}
	return run.victims, run.violations, run.status
}

// terminates reports whether a pod of a node terminates: it may be stuck by the next dry run.
func terminates(node *framework.NodeInfo) bool {
	for _, on := range node.Pods {
		if on.Pod.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}
