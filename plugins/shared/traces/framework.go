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

func (f *Framework) RunPostFilterPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, statuses framework.NodeToStatusMap) (_ *framework.PostFilterResult, status *framework.Status) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "PostFilter")
	defer func() { step.End(status) }()
	return f.Framework.RunPostFilterPlugins(ctx, state, pod, statuses)
}

func (f *Framework) RunPreScorePlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (status *framework.Status) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "PreScore")
	defer func() { step.End(status) }()
	return f.Framework.RunPreScorePlugins(ctx, state, pod, nodes)
}

func (f *Framework) RunScorePlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (_ framework.PluginToNodeScores, status *framework.Status) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Score")
	defer func() { step.End(status) }()
	return f.Framework.RunScorePlugins(ctx, state, pod, nodes)
}

func (f *Framework) RunReservePluginsReserve(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) (status *framework.Status) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Reserve")
	defer func() { step.End(status) }()
	return f.Framework.RunReservePluginsReserve(ctx, state, pod, node)
}

func (f *Framework) RunReservePluginsUnreserve(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Unreserve")
	f.Framework.RunReservePluginsUnreserve(ctx, state, pod, node)
	step.fail(false)
}

func (f *Framework) RunPermitPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) (status *framework.Status) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Permit")
	defer func() { step.End(status) }()
	return f.Framework.RunPermitPlugins(ctx, state, pod, node)
}

func (f *Framework) WaitOnPermit(ctx context.Context, pod *v1.Pod) (status *framework.Status) {
	if f.GetWaitingPod(pod.UID) == nil {
		return f.Framework.WaitOnPermit(ctx, pod)
	}
	ctx, step := f.Tracer.Step(ctx, pod.UID, "WaitOnPermit")
	defer func() { step.End(status) }()
	return f.Framework.WaitOnPermit(ctx, pod)
}

func (f *Framework) RunPreBindPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) (status *framework.Status) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "PreBind")
	defer func() { step.End(status) }()
	return f.Framework.RunPreBindPlugins(ctx, state, pod, node)
}

func (f *Framework) RunBindPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) (status *framework.Status) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Bind")
	defer func() { step.End(status) }()
	return f.Framework.RunBindPlugins(ctx, state, pod, node)
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

func (e *tracedExtender) Filter(pod *v1.Pod, nodes []*v1.Node) (_ []*v1.Node, _, _ extenderv1.FailedNodesMap, err error) {
	step := e.step(pod.UID, "filter")
	defer func() { step.fail(err != nil) }()
	return e.Extender.Filter(pod, nodes)
}

func (e *tracedExtender) Prioritize(pod *v1.Pod, nodes []*v1.Node) (_ *extenderv1.HostPriorityList, _ int64, err error) {
	step := e.step(pod.UID, "prioritize")
	defer func() { step.fail(err != nil) }()
	return e.Extender.Prioritize(pod, nodes)
}

func (e *tracedExtender) ProcessPreemption(pod *v1.Pod, victims map[string]*extenderv1.Victims, nodes framework.NodeInfoLister) (_ map[string]*extenderv1.Victims, err error) {
	step := e.step(pod.UID, "preempt")
	defer func() { step.fail(err != nil) }()
	return e.Extender.ProcessPreemption(pod, victims, nodes)
}

func (e *tracedExtender) Bind(binding *v1.Binding) (err error) {
	step := e.step(binding.UID, "bind")
	defer func() { step.fail(err != nil) }()
	return e.Extender.Bind(binding)
}
