// SPDX-License-Identifier: Apache-2.0

// Package myscoreplugin is the tutorial plugin: it rejects nodes without a label, and prefers nodes by the value of
// that label. Read it from top to bottom to see the parts of a Filter and Score plugin.
package myscoreplugin

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "MyScorePlugin"

// MyScorePlugin filters out nodes without the label args.NodeLabel, and scores the others by the label's value.
type MyScorePlugin struct {
	handle framework.Handle
	args   config.MyScorePluginArgs
	// reason is the reason of a rejection. It is built once, because Filter may reject thousands of nodes for each pod.
	reason string
}

var (
	_ framework.FilterPlugin      = &MyScorePlugin{}
	_ framework.ScorePlugin       = &MyScorePlugin{}
	_ framework.ScoreExtensions   = &MyScorePlugin{}
	_ framework.EnqueueExtensions = &MyScorePlugin{}
)

// New creates the plugin for one profile. It is called when the scheduler starts, and its error stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.MyScorePluginArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type MyScorePluginArgs, got %T", Name, obj)
	}
	if err := validation.ValidateMyScorePluginArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	return &MyScorePlugin{
		handle: handle,
		args:   *args.DeepCopy(),
		reason: fmt.Sprintf("node(s) didn't have the label %q", *args.NodeLabel),
	}, nil
}

// Name returns the name of the plugin.
func (pl *MyScorePlugin) Name() string {
	return Name
}

// EventsToRegister returns the events after which a rejected pod may fit: a new node, or a changed label of a node. The
// scheduler retries a pod after the event of a node only if the node has room for it and no taint that it does not
// tolerate. Most nodes are added without that, so the updates of taints and resources are needed too.
func (pl *MyScorePlugin) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{
		{
			Resource: framework.Node,
			ActionType: framework.Add | framework.UpdateNodeLabel |
				framework.UpdateNodeTaint | framework.UpdateNodeAllocatable,
		},
	}
}

// Filter rejects a node without the label. Preemption cannot help, so the rejection is unresolvable.
func (pl *MyScorePlugin) Filter(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	if _, found := node.Labels[*pl.args.NodeLabel]; !found {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, pl.reason)
	}
	return nil
}

// Score scores a node by the place of its label's value among the preferred ones. It is called in parallel, so it only
// reads. Its result need not be within 0 and 100, because NormalizeScore scales it.
func (pl *MyScorePlugin) Score(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return 0, framework.AsStatus(fmt.Errorf("getting node %q from snapshot: %w", nodeName, err))
	}
	return place(nodeInfo.Node().Labels[*pl.args.NodeLabel], pl.args.PreferredValues), nil
}

// ScoreExtensions returns the plugin itself, for NormalizeScore.
func (pl *MyScorePlugin) ScoreExtensions() framework.ScoreExtensions {
	return pl
}

// NormalizeScore scales the scores of the cycle's nodes to 0 to 100: the best node gets 100, and the others their share
// of it, rounded down. So the plugin's weight has its full effect even if no feasible node has the most preferred
// value. If all score 0, they stay at 0.
func (pl *MyScorePlugin) NormalizeScore(ctx context.Context, state *framework.CycleState, pod *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	return helper.DefaultNormalizeScore(framework.MaxNodeScore, false, scores)
}
