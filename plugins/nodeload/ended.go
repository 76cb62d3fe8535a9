// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// A mean over a window still contains pods that have ended. The plugin remembers their use while a measurement may
// contain it, and takes off what it contains, just as it adds what it lacks of new pods. Pods that ended before the
// scheduler started are unknown.

const (
	// leastMeasured is the least share of a window for which a pod must have run before its use is taken as measured.
	leastMeasured = 0.2
	// mostEnded is the maximum number of ended pods that are remembered; the newest count.
	mostEnded = 100000
	// endedDelay is how long a pod that ended waits for others, before pending pods are moved for all of them.
	endedDelay = time.Second
)

// run is a pod that used a node from start to end, in nanoseconds since 1970.
type run struct {
	node       string
	pod        types.UID
	owner      owner
	start, end int64
	uses       []use // by resource
}

// runOf returns the run of a pod with an end. It is not sure if nothing corrects the estimate of its use.
func (v *view) runOf(pod *v1.Pod, end int64) (of run, sure bool) {
	of = run{pod.Spec.NodeName, pod.UID, ownerOf(pod), startOf(pod, v.window, v.made), end, make([]use, len(v.resources))}
	sure = of.owner != (owner{})
	scales := v.scales[of.owner]
	for r := range of.uses {
		of.uses[r] = v.resources[r].estimator.use(pod, scales.of(r))
		if used := v.used(pod, of.start, r); used >= 0 {
			of.uses[r].amount, sure = used, true
		}
	}
	return of, sure
}

// used returns the measured use of a resource by a pod that started at a time; negative if it is unknown.
func (v *view) used(pod *v1.Pod, start int64, r int) float64 {
	if v.usedByPods[r] == nil {
		return -1
	}
	sample, found := v.usedByPods[r][pod.Namespace+"/"+pod.Name]
	share := 1 - lacking(start, running, sample.At, v.resources[r].window)
	if !found || sample.At < v.oldest || share < leastMeasured {
		return -1
	}
	return sample.Value / share
}

// watch remembers the pods that end from now on.
func (pl *NodeLoad) watch(pods cache.SharedInformer) {
	pods.AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: func(obj interface{}) bool {
			pod, is := obj.(*v1.Pod)
			return is && pod.Spec.NodeName != "" && pod.Status.Phase == v1.PodRunning
		},
		Handler: cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj interface{}) { pl.ended(obj.(*v1.Pod)) }},
	})
}

// ended remembers a pod that ran until now, unless nothing corrects the estimate of its use: if that is too high, nodes
// would seem cooler than they are. In the mode Preemptible, a preemptor may wait for this.
func (pl *NodeLoad) ended(pod *v1.Pod) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	v := pl.current()
	of, sure := v.runOf(pod, pl.clock.Now().UnixNano())
	if !sure {
		return
	}
	pl.gone = append(pl.gone, of)
	v.over.Store(of.pod, nil)
	v.takeOff(&of)
	pl.forget()
	if pl.PreFilterExtensions() != nil && !pl.soon && v.noted(v.find(of.node)) {
		pl.soon = true
		pl.wakeAfter(endedDelay)
	}
}

// forget forgets the ended pods that no measurement contains that may be used, and the oldest of too many. pl.mu is
// held.
func (pl *NodeLoad) forget() {
	oldest := pl.clock.Now().Add(-pl.endedAge).UnixNano()
	for len(pl.gone) > 0 && (pl.gone[0].end < oldest || len(pl.gone) > mostEnded) {
		pl.current().over.Delete(pl.gone[0].pod)
		pl.gone[0] = run{}
		pl.gone = pl.gone[1:]
	}
}

// takeOff takes off what the measurements of a node contain of an ended pod.
func (v *view) takeOff(of *run) {
	for number := v.find(of.node); number >= 0; {
		before := v.kept[number].Load().(*kept)
		gone := make([]float64, len(v.resources))
		copy(gone, before.gone)
		for r := range gone {
			if l := &v.measured[number][r]; l.at != notMeasured && l.since == l.at {
				gone[r] += lacking(of.start, of.end, l.at, v.resources[r].window) * l.share(of.uses[r].amount)
			}
		}
		if v.kept[number].CompareAndSwap(before, &kept{gone: gone}) {
			return
		}
	}
}
