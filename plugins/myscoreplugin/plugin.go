// Package myscoreplugin is the tutorial plugin: it keeps pods off nodes that lack a label, and prefers nodes by the value
// of that label. Read it from top to bottom to see what a Filter and Score plugin is made of.
package myscoreplugin

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "MyScorePlugin"

// MyScorePlugin filters out nodes without the label args.NodeLabel, and scores the others by the label's value.
type MyScorePlugin struct {
	handle framework.Handle
	args   config.MyScorePluginArgs
}

var (
	_ framework.FilterPlugin      = &MyScorePlugin{}
	_ framework.ScorePlugin       = &MyScorePlugin{}
	_ framework.EnqueueExtensions = &MyScorePlugin{}
)

// New makes the plugin for one profile. It is called when the scheduler starts; an error from it stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.MyScorePluginArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type MyScorePluginArgs, got %T", Name, obj)
	}
	if err := validation.ValidateMyScorePluginArgs(field.NewPath("pluginConfig").Key(Name).Child("args"), args); err != nil {
		return nil, err
	}
	return &MyScorePlugin{handle: handle, args: *args.DeepCopy()}, nil
}

// Name returns the name of the plugin.
func (pl *MyScorePlugin) Name() string {
	return Name
}

// EventsToRegister says what can make a pod fit that this plugin rejected: a new node, or a node that gets a label.
func (pl *MyScorePlugin) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{
		{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel},
	}
}

// Filter rejects a node without the label. Preempting pods would not give it one, so the rejection is unresolvable.
func (pl *MyScorePlugin) Filter(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	if _, found := node.Labels[pl.args.NodeLabel]; !found {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't have the label %q", pl.args.NodeLabel))
	}
	return nil
}

// Score rates a node by its value of the label: 0 to 100.
func (pl *MyScorePlugin) Score(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return 0, framework.AsStatus(fmt.Errorf("getting node %q from snapshot: %w", nodeName, err))
	}
	return score(nodeInfo.Node().Labels[pl.args.NodeLabel], pl.args.PreferredValues), nil
}

// ScoreExtensions returns nil: the scores are between 0 and 100 as they are.
func (pl *MyScorePlugin) ScoreExtensions() framework.ScoreExtensions {
	return nil
}
