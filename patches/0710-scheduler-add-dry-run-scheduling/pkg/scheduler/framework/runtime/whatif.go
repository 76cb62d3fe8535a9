// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
)

// The functions in this file run plugins for dry runs. They do not change the metrics.

// PreFilterForDryRun runs the PreFilter plugins, and returns the status of the first one that rejects the pod.
func (f *frameworkImpl) PreFilterForDryRun(ctx context.Context, state *framework.CycleState, pod *v1.Pod) (*framework.Status, error) {
	for _, pl := range f.preFilterPlugins {
		status := pl.PreFilter(ctx, state, pod)
		switch {
		case status.IsSuccess():
		case status.IsUnschedulable():
			return status.Copy().WithFailedPlugin(pl.Name()), nil
		default:
			return nil, fmt.Errorf("running PreFilter plugin %q: %w", pl.Name(), status.AsError())
		}
	}
	return nil, nil
}

// FilterAll returns the statuses of all Filter plugins that reject a node, in their order. As in an attempt, it filters
// with the pods that are nominated for the node, and then without.
func (f *frameworkImpl) FilterAll(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) ([]*framework.Status, error) {
	added, stateToUse, nodeInfoToUse, err := addNominatedPods(ctx, f, pod, state, nodeInfo.WithOwnClaims())
	if err != nil {
		return nil, err
	}
	rejections, err := f.filterAll(ctx, stateToUse, pod, nodeInfoToUse)
	if err == nil && added && len(rejections) == 0 {
		rejections, err = f.filterAll(ctx, state, pod, nodeInfo)
	}
	return rejections, err
}

func (f *frameworkImpl) filterAll(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) ([]*framework.Status, error) {
	var rejections []*framework.Status
	for _, pl := range f.filterPlugins {
		status := pl.Filter(ctx, state, pod, nodeInfo)
		switch {
		case status.IsSuccess():
		case status.IsUnschedulable():
			// The plugin may return the same status for several nodes.
			rejections = append(rejections, status.Copy().WithFailedPlugin(pl.Name()))
		default:
			return nil, fmt.Errorf("running %q filter plugin: %w", pl.Name(), status.AsError())
		}
	}
	return rejections, nil
}

// ScoreAll runs the PreScore and Score plugins, and records their scores in the attempt of the state.
func (f *frameworkImpl) ScoreAll(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (framework.NodeScoreList, error) {
	for _, pl := range f.preScorePlugins {
		if status := pl.PreScore(ctx, state, pod, nodes); !status.IsSuccess() {
			return nil, fmt.Errorf("running PreScore plugin %q: %w", pl.Name(), status.AsError())
		}
	}
	totals, status := f.totals(ctx, state, pod, nodes, new(scoreBuffer), make(framework.NodeScoreList, len(nodes)))
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	return totals, nil
}

// preempter is a PostFilter plugin that supports dry runs.
type preempter interface {
	WouldPreempt(ctx context.Context, state *framework.CycleState, pod *v1.Pod, statuses framework.NodeToStatusMap) (*records.PreemptionRecord, error)
}

// WouldPreempt simulates the PostFilter plugins, except those without dry runs. It returns nil if there are no plugins.
func (f *frameworkImpl) WouldPreempt(ctx context.Context, state *framework.CycleState, pod *v1.Pod, statuses framework.NodeToStatusMap) (*records.PreemptionRecord, error) {
	var found *records.PreemptionRecord
	for _, pl := range f.postFilterPlugins {
		preempter, ok := pl.(preempter)
		if !ok {
			found = &records.PreemptionRecord{WhyNot: fmt.Sprintf("The result of %s is unknown, because the plugin does not support dry runs.", pl.Name())}
			continue
		}
		return preempter.WouldPreempt(ctx, state, pod, statuses)
	}
	return found, nil
}
