// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
)

// Two events change what is predicted: a snapshot arrives, and a pod ends.

// endedDelay is how long a pod that ended waits for others, before pending pods are moved for all of them.
const endedDelay = time.Second

// swapped makes a snapshot the current one, and wakes the pods that may fit now.
func (pl *NodeLoad) swapped(snapshot *collector.Snapshot) {
	nodes, err := pl.nodes.List(labels.Everything())
	if err != nil {
		klog.ErrorS(err, "Measurements were not used because listing the nodes failed; next: wait for the next refresh",
			"plugin", Name, "profile", pl.profile)
		return
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	old := pl.current()
	v := newView(newMeasurements(snapshot, pl.resources, nodes, pl.clock.Now(), pl.maxSampleAge), pl.ended)
	pl.forgetEnded()
	for i := range pl.ended.runs {
		v.takeOff(&pl.ended.runs[i])
	}
	pods, inFlight := pl.allPods(), 0
	v.scales, inFlight = learn(old.measurements, v.measurements, old.scales, pods, pl.ended.runs)
	pl.counters.inFlight.Set(float64(inFlight))
	pl.viewed.Store(v)
	pl.wake(v, pods, v.inherit(old))
	// Pods are woken again when all these measurements have become too old and no others have come: the filter opens.
	if pl.outage != nil {
		pl.outage.Stop()
	}
	pl.outage = pl.wakeAfter(pl.maxSampleAge + time.Millisecond)
}

// watch remembers the pods that end from now on.
func (pl *NodeLoad) watch(pods cache.SharedInformer) {
	pods.AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: func(obj interface{}) bool {
			pod, is := obj.(*v1.Pod)
			return is && pod.Spec.NodeName != "" && pod.Status.Phase == v1.PodRunning
		},
		Handler: cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj interface{}) { pl.podEnded(obj.(*v1.Pod)) }},
	})
}

// podEnded remembers a pod that ran until now. In the mode Preemptible, a preemptor may wait for this.
func (pl *NodeLoad) podEnded(pod *v1.Pod) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	v := pl.current()
	of := v.runOf(pod, pl.clock.Now().UnixNano())
	pl.ended.add(of)
	v.takeOff(&of)
	pl.forgetEnded()
	if pl.PreFilterExtensions() != nil && !pl.wakesSoon && v.rejected.on(v.find(of.node)) {
		pl.wakesSoon = true
		pl.wakeAfter(endedDelay)
	}
}

// forgetEnded forgets the ended pods that no measurement contains that may be used. pl.mu is held.
func (pl *NodeLoad) forgetEnded() {
	pl.ended.forget(pl.clock.Now().Add(-pl.endedAge).UnixNano())
}
