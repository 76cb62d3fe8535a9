// SPDX-License-Identifier: Apache-2.0

package defaultpreemption

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// WouldPreempt simulates PostFilter and returns the result.
func (pl *DefaultPreemption) WouldPreempt(ctx context.Context, state *framework.CycleState, pod *v1.Pod, statuses framework.NodeToStatusMap) (*records.PreemptionRecord, error) {
	evaluator := preemption.Evaluator{Handler: pl.fh, PdbLister: pl.pdbLister, State: state}
	return evaluator.WouldPreempt(ctx, pl, pod, statuses)
}
