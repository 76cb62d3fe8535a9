// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/extendernodes"
)

// Framework makes the spans of a profile's extension points.
type Framework struct {
	framework.Framework
	Tracer *Tracer
}

func (f *Framework) RunPreFilterPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	stepCtx, step := f.Tracer.Step(ctx, pod.UID, "PreFilter")
	status := f.Framework.RunPreFilterPlugins(stepCtx, state, pod)
	step.End(status)
	if status.IsSuccess() {
		f.Tracer.filter(ctx, pod.UID)
	}
	return status
}

func (f *Framework) RunPostFilterPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, statuses framework.NodeToStatusMap) (*framework.PostFilterResult, *framework.Status) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "PostFilter")
	result, status := f.Framework.RunPostFilterPlugins(ctx, state, pod, statuses)
	step.End(status)
	return result, status
}

func (f *Framework) RunPreScorePlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) *framework.Status {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "PreScore")
	status := f.Framework.RunPreScorePlugins(ctx, state, pod, nodes)
	step.End(status)
	return status
}

func (f *Framework) RunScorePlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (framework.PluginToNodeScores, *framework.Status) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Score")
	scores, status := f.Framework.RunScorePlugins(ctx, state, pod, nodes)
	step.End(status)
	return scores, status
}

func (f *Framework) RunReservePluginsReserve(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Reserve")
	status := f.Framework.RunReservePluginsReserve(ctx, state, pod, node)
	step.End(status)
	return status
}

func (f *Framework) RunReservePluginsUnreserve(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Unreserve")
	f.Framework.RunReservePluginsUnreserve(ctx, state, pod, node)
	step.fail(false)
}

func (f *Framework) RunPermitPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Permit")
	status := f.Framework.RunPermitPlugins(ctx, state, pod, node)
	step.End(status)
	return status
}

func (f *Framework) WaitOnPermit(ctx context.Context, pod *v1.Pod) *framework.Status {
	if f.GetWaitingPod(pod.UID) == nil {
		return f.Framework.WaitOnPermit(ctx, pod)
	}
	ctx, step := f.Tracer.Step(ctx, pod.UID, "WaitOnPermit")
	status := f.Framework.WaitOnPermit(ctx, pod)
	step.End(status)
	return status
}

func (f *Framework) RunPreBindPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "PreBind")
	status := f.Framework.RunPreBindPlugins(ctx, state, pod, node)
	step.End(status)
	return status
}

func (f *Framework) RunBindPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Bind")
	status := f.Framework.RunBindPlugins(ctx, state, pod, node)
	step.End(status)
	return status
}

// RunPostBindPlugins is called where a pod is bound only: it is the end of the attempt.
func (f *Framework) RunPostBindPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "PostBind")
	f.Framework.RunPostBindPlugins(ctx, state, pod, node)
	step.fail(false)
	f.Tracer.bound(pod)
}

// Extender makes the spans of requests to an extender.
func (t *Tracer) Extender(extender framework.Extender) framework.Extender {
	name := extendernodes.WithoutCredentials(extender.Name())
	return &tracedExtender{extender, t, trace.WithAttributes(attribute.String("scheduler.extender", name))}
}

type tracedExtender struct {
	framework.Extender
	tracer *Tracer
	url    trace.SpanOption
}

func (e *tracedExtender) step(pod types.UID, verb string) Step {
	_, step := e.tracer.Step(context.Background(), pod, "Extender "+verb, e.url, trace.WithSpanKind(trace.SpanKindClient))
	return step
}

func (e *tracedExtender) Filter(pod *v1.Pod, nodes []*v1.Node) ([]*v1.Node, extenderv1.FailedNodesMap, extenderv1.FailedNodesMap, error) {
	step := e.step(pod.UID, "filter")
	left, failed, unresolvable, err := e.Extender.Filter(pod, nodes)
	step.fail(err != nil)
	return left, failed, unresolvable, err
}

func (e *tracedExtender) Prioritize(pod *v1.Pod, nodes []*v1.Node) (*extenderv1.HostPriorityList, int64, error) {
	step := e.step(pod.UID, "prioritize")
	scores, weight, err := e.Extender.Prioritize(pod, nodes)
	step.fail(err != nil)
	return scores, weight, err
}

func (e *tracedExtender) ProcessPreemption(pod *v1.Pod, victims map[string]*extenderv1.Victims, nodes framework.NodeInfoLister) (map[string]*extenderv1.Victims, error) {
	step := e.step(pod.UID, "preempt")
	left, err := e.Extender.ProcessPreemption(pod, victims, nodes)
	step.fail(err != nil)
	return left, err
}

func (e *tracedExtender) Bind(binding *v1.Binding) error {
	step := e.step(binding.UID, "bind")
	err := e.Extender.Bind(binding)
	step.fail(err != nil)
	return err
}
