// SPDX-License-Identifier: Apache-2.0

// Package myscoreplugin is the tutorial plugin: it keeps pods off nodes that lack a label, and prefers nodes by the
// value of that label. Read it from top to bottom to see what a Filter and Score plugin is made of.
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
	// reason is why a node is rejected: made once, because Filter may reject thousands of nodes for each pod.
	reason string
}

var (
	_ framework.FilterPlugin      = &MyScorePlugin{}
	_ framework.ScorePlugin       = &MyScorePlugin{}
	_ framework.ScoreExtensions   = &MyScorePlugin{}
	_ framework.EnqueueExtensions = &MyScorePlugin{}
)

// New makes the plugin for one profile. It is called when the scheduler starts; an error from it stops the scheduler.
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
		reason: fmt.Sprintf("node(s) didn't have the label %q", args.NodeLabel),
	}, nil
}

// Name returns the name of the plugin.
func (pl *MyScorePlugin) Name() string {
	return Name
}

// EventsToRegister says what can make a pod fit that this plugin rejected: a new node, or a node that gets a label. A
// node that still has a taint against the pod, or no room for it, wakes no pod, whatever the event; as a rule it comes
// so. Then the event that counts is the one that ends this: of its taints, or of its resources.
func (pl *MyScorePlugin) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{
		{
			Resource: framework.Node,
			ActionType: framework.Add | framework.UpdateNodeLabel |
				framework.UpdateNodeTaint | framework.UpdateNodeAllocatable,
		},
	}
}

// Filter rejects a node without the label. Preempting pods would not give it one, so the rejection is unresolvable.
func (pl *MyScorePlugin) Filter(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	if _, found := node.Labels[pl.args.NodeLabel]; !found {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, pl.reason)
	}
	return nil
}

// Score rates a node by the place of its label's value among the preferred ones. It is called for many nodes at once,
// so it only reads. What it returns need not be within 0 and 100: that is NormalizeScore's business.
func (pl *MyScorePlugin) Score(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return 0, framework.AsStatus(fmt.Errorf("getting node %q from snapshot: %w", nodeName, err))
	}
	return place(nodeInfo.Node().Labels[pl.args.NodeLabel], pl.args.PreferredValues), nil
}

// ScoreExtensions returns the plugin itself: it normalises its scores.
func (pl *MyScorePlugin) ScoreExtensions() framework.ScoreExtensions {
	return pl
}

// NormalizeScore brings the scores of all nodes of the cycle to 0 to 100: the best of them gets 100, and the others
// their share of it, rounded down. So the plugin's weight counts in full whenever it can tell nodes apart, also when
// the most preferred value is on no node that fits the pod. If all score 0, nothing is preferred, and they stay at 0.
func (pl *MyScorePlugin) NormalizeScore(ctx context.Context, state *framework.CycleState, pod *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	return helper.DefaultNormalizeScore(framework.MaxNodeScore, false, scores)
}
