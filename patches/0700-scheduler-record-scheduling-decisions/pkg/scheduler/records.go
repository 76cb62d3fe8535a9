// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-base/version"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
)

// keepRecords makes a recorder record the scheduling attempts of all pods.
func (sched *Scheduler) keepRecords(recorder *records.Recorder, pods corelisters.PodLister) {
	if recorder == nil {
		return
	}
	sched.Records = recorder
	recorder.Sources = records.Sources{Pods: pods, Explainers: map[string][]records.Explainer{}, Version: version.Get().String()}
	for name := range sched.Profiles {
		recorder.Sources.Profiles = append(recorder.Sources.Profiles, name)
	}
	sort.Strings(recorder.Sources.Profiles)
	sched.Plugins.Each(func(profile string, plugin framework.Plugin) {
		if explainer, ok := plugin.(records.Explainer); ok {
			recorder.Sources.Explainers[profile] = append(recorder.Sources.Explainers[profile], explainer)
		}
	})
	for name, fwk := range sched.Profiles {
		if full, ok := fwk.(fullFramework); ok {
			sched.Profiles[name] = &recordedFramework{full, recorder}
		}
	}
	for i := range sched.Extenders {
		sched.Extenders[i] = recorder.Extender(sched.Extenders[i])
	}
	recorder.Sources.Permit = func(visit func(string, framework.WaitingPod)) {
		for name, fwk := range sched.Profiles {
			fwk.IterateOverWaitingPods(func(waiting framework.WaitingPod) { visit(name, waiting) })
		}
	}
	if queue, ok := sched.SchedulingQueue.(*internalqueue.PriorityQueue); ok {
		recorder.Sources.Queue, recorder.Sources.Lengths = queue.Visit, queue.Lengths
	}
	if algorithm, ok := sched.Algorithm.(*genericScheduler); ok {
		algorithm.records = recorder
	}
	next, fail := sched.NextPod, sched.Error
	sched.NextPod = func() *framework.QueuedPodInfo {
		podInfo := next()
		if podInfo != nil {
			recorder.Next(podInfo, podInfo.WokenBy)
		}
		return podInfo
	}
	sched.Error = func(podInfo *framework.QueuedPodInfo, err error) {
		recorder.Failed(podInfo.Pod, err)
		fail(podInfo, err)
	}
}

// fullFramework is upstream's framework.Framework with the methods that patches add.
type fullFramework interface {
	framework.Framework
	totaler
	CompareCache(nodes map[string]*framework.NodeInfo) []string
}

// recordedFramework records the extension points that run after a node was chosen.
type recordedFramework struct {
	fullFramework
	recorder *records.Recorder
}

func (f *recordedFramework) RunReservePluginsReserve(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	began := time.Now()
	status := f.fullFramework.RunReservePluginsReserve(ctx, state, pod, node)
	records.Of(state).Step("Reserve", status, began)
	return status
}

func (f *recordedFramework) RunPermitPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	began := time.Now()
	status := f.fullFramework.RunPermitPlugins(ctx, state, pod, node)
	records.Of(state).Step("Permit", status, began)
	return status
}

func (f *recordedFramework) WaitOnPermit(ctx context.Context, pod *v1.Pod) *framework.Status {
	if f.GetWaitingPod(pod.UID) == nil {
		return f.fullFramework.WaitOnPermit(ctx, pod)
	}
	began := time.Now()
	status := f.fullFramework.WaitOnPermit(ctx, pod)
	f.recorder.StepOf(pod, "WaitOnPermit", status, began)
	return status
}

func (f *recordedFramework) RunPreBindPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	began := time.Now()
	status := f.fullFramework.RunPreBindPlugins(ctx, state, pod, node)
	records.Of(state).Step("PreBind", status, began)
	return status
}

func (f *recordedFramework) RunBindPlugins(ctx context.Context, state *framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	began := time.Now()
	status := f.fullFramework.RunBindPlugins(ctx, state, pod, node)
	records.Of(state).Step("Bind", status, began)
	return status
}
