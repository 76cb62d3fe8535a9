// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/traces"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// WithTracer sets the tracer of scheduling attempts; nil disables tracing.
func WithTracer(tracer *traces.Tracer) Option {
	return func(o *schedulerOptions) {
		o.tracer = tracer
	}
}

// trace wraps the scheduler so that a tracer creates spans of all attempts. It is called last, to be the outer wrapper.
func (sched *Scheduler) trace(tracer *traces.Tracer) {
	if tracer == nil {
		return
	}
	sched.Tracer = tracer
	// The recorder may read the old map at any time, so this is a copy.
	profiles := make(profile.Map, len(sched.Profiles))
	for name, fwk := range sched.Profiles {
		profiles[name] = fwk
		if full, ok := fwk.(fullFramework); ok {
			profiles[name] = &tracedFramework{&traces.Framework{Framework: full, Tracer: tracer}, full}
		}
	}
	sched.Profiles = profiles
	for i := range sched.Extenders {
		sched.Extenders[i] = tracer.Extender(sched.Extenders[i])
	}
	sched.Algorithm = &tracedAlgorithm{sched.Algorithm, tracer}
	next, fail := sched.NextPod, sched.Error
	sched.NextPod = func() *framework.QueuedPodInfo {
		podInfo := next()
		tracer.Next(podInfo)
		return podInfo
	}
	sched.Error = func(podInfo *framework.QueuedPodInfo, err error) {
		_, unfit := err.(*framework.FitError)
		tracer.Failed(podInfo.Pod, unfit || err == ErrNoNodesAvailable)
		fail(podInfo, err)
	}
	go func() {
		<-sched.StopEverything
		tracer.Flush()
	}()
}

// tracedAlgorithm begins the span of an attempt.
type tracedAlgorithm struct {
	ScheduleAlgorithm
	tracer *traces.Tracer
}

func (a *tracedAlgorithm) Schedule(ctx context.Context, extenders []framework.Extender, fwk framework.Framework, state *framework.CycleState, pod *v1.Pod) (ScheduleResult, error) {
	result, err := a.ScheduleAlgorithm.Schedule(a.tracer.Begin(ctx, pod, fwk.ProfileName()), extenders, fwk, state, pod)
	a.tracer.Searched(pod, result.SuggestedHost, result.EvaluatedNodes, result.FeasibleNodes)
	return result, err
}

// tracedFramework is a traces.Framework with the methods that patches add.
type tracedFramework struct {
	*traces.Framework
	addedFramework
}

// addedFramework has the methods that patches add to upstream's framework.Framework.
type addedFramework interface {
	totaler
	whatIfFramework
	CompareCache(nodes map[string]*framework.NodeInfo) []string
}

func (f *tracedFramework) ScoreTotals(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (framework.NodeScoreList, *framework.Status) {
	ctx, step := f.Tracer.Step(ctx, pod.UID, "Score")
	totals, status := f.addedFramework.ScoreTotals(ctx, state, pod, nodes)
	step.End(status)
	return totals, status
}
