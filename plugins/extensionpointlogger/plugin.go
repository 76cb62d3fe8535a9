// SPDX-License-Identifier: Apache-2.0

// Package extensionpointlogger writes a line to the scheduler's log for each call at each extension point, so that one
// sees what the scheduler calls, in what order, for which pod and node, and when. It never changes a result.
package extensionpointlogger

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/utils/clock"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "ExtensionPointLogger"

// ExtensionPointLogger is every kind of plugin but one, and agrees to everything. The one is QueueSort, of which a
// profile can have a single plugin: see sorter.
type ExtensionPointLogger struct {
	log *callLog
}

var (
	_ framework.PreFilterPlugin     = &ExtensionPointLogger{}
	_ framework.PreFilterExtensions = &ExtensionPointLogger{}
	_ framework.FilterPlugin        = &ExtensionPointLogger{}
	_ framework.PostFilterPlugin    = &ExtensionPointLogger{}
	_ framework.PreScorePlugin      = &ExtensionPointLogger{}
	_ framework.ScorePlugin         = &ExtensionPointLogger{}
	_ framework.ScoreExtensions     = &ExtensionPointLogger{}
	_ framework.ReservePlugin       = &ExtensionPointLogger{}
	_ framework.PermitPlugin        = &ExtensionPointLogger{}
	_ framework.PreBindPlugin       = &ExtensionPointLogger{}
	_ framework.BindPlugin          = &ExtensionPointLogger{}
	_ framework.PostBindPlugin      = &ExtensionPointLogger{}
	_ framework.EnqueueExtensions   = &ExtensionPointLogger{}
)

// New makes the plugin for one profile. With args.QueueSort it is a queue sort plugin too.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.ExtensionPointLoggerArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type ExtensionPointLoggerArgs, got %T", Name, obj)
	}
	if err := validation.ValidateExtensionPointLoggerArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	log, err := newCallLog(args, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	return newPlugin(args, log), nil
}

func newPlugin(args *config.ExtensionPointLoggerArgs, log *callLog) framework.Plugin {
	pl := &ExtensionPointLogger{log: log}
	if args.QueueSort {
		return &sorter{ExtensionPointLogger: pl}
	}
	return pl
}

// Name returns the name of the plugin.
func (pl *ExtensionPointLogger) Name() string {
	return Name
}

// EventsToRegister returns nothing: the plugin rejects no pod, so no event can make one fit.
func (pl *ExtensionPointLogger) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// PreFilter begins the cycle.
func (pl *ExtensionPointLogger) PreFilter(ctx context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	pl.log.write("PreFilter", pl.log.begin(state, pod), pod, "")
	return nil
}

// PreFilterExtensions returns the plugin itself: their calls are logged too.
func (pl *ExtensionPointLogger) PreFilterExtensions() framework.PreFilterExtensions {
	return pl
}

// AddPod is called when the scheduler asks what would be if another pod were on the node: one that is nominated to it,
// or one that preemption would like to spare.
func (pl *ExtensionPointLogger) AddPod(ctx context.Context, state *framework.CycleState, pod *v1.Pod, added *framework.PodInfo, nodeInfo *framework.NodeInfo) *framework.Status {
	pl.log.writeOther("AddPod", pl.log.find(state, pod), pod, added.Pod, nodeName(nodeInfo))
	return nil
}

// RemovePod is called when the scheduler asks what would be if another pod were preempted.
func (pl *ExtensionPointLogger) RemovePod(ctx context.Context, state *framework.CycleState, pod *v1.Pod, removed *framework.PodInfo, nodeInfo *framework.NodeInfo) *framework.Status {
	pl.log.writeOther("RemovePod", pl.log.find(state, pod), pod, removed.Pod, nodeName(nodeInfo))
	return nil
}

// Filter lets every node pass.
func (pl *ExtensionPointLogger) Filter(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	pl.log.write("Filter", pl.log.find(state, pod), pod, nodeName(nodeInfo))
	return nil
}

// PostFilter is called when no node fits. It has no remedy and gives no reason, so that the next plugin is asked and no
// message changes.
func (pl *ExtensionPointLogger) PostFilter(ctx context.Context, state *framework.CycleState, pod *v1.Pod, statuses framework.NodeToStatusMap) (*framework.PostFilterResult, *framework.Status) {
	status := framework.NewStatus(framework.Unschedulable)
	pl.log.write("PostFilter", pl.log.begin(state, pod), pod, "", "nodes", len(statuses), "status", status.Code().String())
	return nil, status
}

// PreScore is called when more than one node fits.
func (pl *ExtensionPointLogger) PreScore(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) *framework.Status {
	pl.log.write("PreScore", pl.log.begin(state, pod), pod, "", "nodes", len(nodes))
	return nil
}

// Score gives all nodes the same.
func (pl *ExtensionPointLogger) Score(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	pl.log.write("Score", pl.log.begin(state, pod), pod, nodeName)
	return framework.MinNodeScore, nil
}

// ScoreExtensions returns the plugin itself: their call is logged too.
func (pl *ExtensionPointLogger) ScoreExtensions() framework.ScoreExtensions {
	return pl
}

// NormalizeScore leaves the scores as they are.
func (pl *ExtensionPointLogger) NormalizeScore(ctx context.Context, state *framework.CycleState, pod *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	pl.log.write("NormalizeScore", pl.log.begin(state, pod), pod, "", "nodes", len(scores))
	return nil
}

// Reserve agrees to the node.
func (pl *ExtensionPointLogger) Reserve(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) *framework.Status {
	pl.log.write("Reserve", pl.log.begin(state, pod), pod, nodeName)
	return nil
}

// Unreserve is called when the pod does not go to the node after all.
func (pl *ExtensionPointLogger) Unreserve(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) {
	pl.log.write("Unreserve", pl.log.begin(state, pod), pod, nodeName)
}

// Permit agrees at once.
func (pl *ExtensionPointLogger) Permit(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (*framework.Status, time.Duration) {
	pl.log.write("Permit", pl.log.begin(state, pod), pod, nodeName)
	return nil, 0
}

// PreBind has nothing to prepare.
func (pl *ExtensionPointLogger) PreBind(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) *framework.Status {
	pl.log.write("PreBind", pl.log.begin(state, pod), pod, nodeName)
	return nil
}

// Bind leaves it to the next plugin. It is called only if none before it has bound the pod.
func (pl *ExtensionPointLogger) Bind(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) *framework.Status {
	status := framework.NewStatus(framework.Skip)
	pl.log.write("Bind", pl.log.begin(state, pod), pod, nodeName, "status", status.Code().String())
	return status
}

// PostBind is called when the pod is bound.
func (pl *ExtensionPointLogger) PostBind(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) {
	pl.log.write("PostBind", pl.log.begin(state, pod), pod, nodeName)
}

func nodeName(nodeInfo *framework.NodeInfo) string {
	if node := nodeInfo.Node(); node != nil {
		return node.Name
	}
	return ""
}
