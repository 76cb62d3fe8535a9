// SPDX-License-Identifier: Apache-2.0

// Package extensionpointlogger logs each call at each extension point, with the pod, the node and the time, so that the
// order of calls is visible. It never changes a result.
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

// ExtensionPointLogger implements all extension points without effect, except QueueSort, for which a profile can have
// only one plugin: see sorter.
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

// New creates the plugin for one profile. With args.QueueSort it is a queue sort plugin too.
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

// EventsToRegister returns no events, because the plugin rejects no pod.
func (pl *ExtensionPointLogger) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// PreFilter begins the cycle.
func (pl *ExtensionPointLogger) PreFilter(ctx context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	pl.log.write("PreFilter", pl.log.begin(state, pod), pod, "")
	return nil
}

// PreFilterExtensions returns the plugin itself, whose calls are logged too.
func (pl *ExtensionPointLogger) PreFilterExtensions() framework.PreFilterExtensions {
	return pl
}

// AddPod is called for a simulation with another pod on the node: one that is nominated to it, or one that preemption
// may not need to evict.
func (pl *ExtensionPointLogger) AddPod(ctx context.Context, state *framework.CycleState, pod *v1.Pod, added *framework.PodInfo, nodeInfo *framework.NodeInfo) *framework.Status {
	pl.log.writeOther("AddPod", pl.log.find(state, pod), pod, added.Pod, nodeName(nodeInfo))
	return nil
}

// RemovePod is called for a simulation in which another pod is preempted.
func (pl *ExtensionPointLogger) RemovePod(ctx context.Context, state *framework.CycleState, pod *v1.Pod, removed *framework.PodInfo, nodeInfo *framework.NodeInfo) *framework.Status {
	pl.log.writeOther("RemovePod", pl.log.find(state, pod), pod, removed.Pod, nodeName(nodeInfo))
	return nil
}

// Filter passes every node.
func (pl *ExtensionPointLogger) Filter(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	pl.log.write("Filter", pl.log.find(state, pod), pod, nodeName(nodeInfo))
	return nil
}

// PostFilter is called when no node fits. It returns Unschedulable without a reason, so that the next plugin is called
// and the message does not change.
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

// Score returns the same for all nodes.
func (pl *ExtensionPointLogger) Score(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	pl.log.write("Score", pl.log.begin(state, pod), pod, nodeName)
	return framework.MinNodeScore, nil
}

// ScoreExtensions returns the plugin itself, whose calls are logged too.
func (pl *ExtensionPointLogger) ScoreExtensions() framework.ScoreExtensions {
	return pl
}

// NormalizeScore does not change the scores.
func (pl *ExtensionPointLogger) NormalizeScore(ctx context.Context, state *framework.CycleState, pod *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	pl.log.write("NormalizeScore", pl.log.begin(state, pod), pod, "", "nodes", len(scores))
	return nil
}

// Reserve accepts the node.
func (pl *ExtensionPointLogger) Reserve(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) *framework.Status {
	pl.log.write("Reserve", pl.log.begin(state, pod), pod, nodeName)
	return nil
}

// Unreserve is called if the pod is not bound to the reserved node.
func (pl *ExtensionPointLogger) Unreserve(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) {
	pl.log.write("Unreserve", pl.log.begin(state, pod), pod, nodeName)
}

// Permit allows the pod at once.
func (pl *ExtensionPointLogger) Permit(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (*framework.Status, time.Duration) {
	pl.log.write("Permit", pl.log.begin(state, pod), pod, nodeName)
	return nil, 0
}

// PreBind does nothing.
func (pl *ExtensionPointLogger) PreBind(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) *framework.Status {
	pl.log.write("PreBind", pl.log.begin(state, pod), pod, nodeName)
	return nil
}

// Bind skips to the next plugin. It is called only if no earlier plugin has bound the pod.
func (pl *ExtensionPointLogger) Bind(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) *framework.Status {
	status := framework.NewStatus(framework.Skip)
	pl.log.write("Bind", pl.log.begin(state, pod), pod, nodeName, "status", status.Code().String())
	return status
}

// PostBind is called after the pod is bound.
func (pl *ExtensionPointLogger) PostBind(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) {
	pl.log.write("PostBind", pl.log.begin(state, pod), pod, nodeName)
}

func nodeName(nodeInfo *framework.NodeInfo) string {
	if node := nodeInfo.Node(); node != nil {
		return node.Name
	}
	return ""
}
