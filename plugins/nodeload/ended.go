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
	name       string
	pod        types.UID
	owner      owner
	start, end int64
	uses       []use // by resource
}

func nameOf(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

// runOf returns the run of a pod with an end. An estimated use is taken off as far as the scale of its owner is known:
// if it is too high, the node seems cooler than it is. Nothing is learned of an annotation. A pod that crashes uses
// nothing, unless it is measured.
func (v *view) runOf(pod *v1.Pod, end int64) run {
	of := run{pod.Spec.NodeName, nameOf(pod), pod.UID, ownerOf(pod), StartOf(pod, v.window, v.made), end, make([]use, len(v.resources))}
	scales, crashes := v.scales[of.owner], waits(pod)
	for r := range of.uses {
		u := &of.uses[r]
		if !crashes {
			*u = v.resources[r].estimator.use(pod, scales.of(r))
		}
		if used := v.used(pod, of.start, r); used >= 0 {
			u.amount, u.known = used, 1
		} else if u.plain > 0 {
			u.known = scales.known(r)
		}
	}
	return of
}

// used returns the measured use of a resource by a pod that started at a time; negative if it is unknown, for example
// because a measurement contains an ended pod with the same name, such as a StatefulSet's.
func (v *view) used(pod *v1.Pod, start int64, r int) float64 {
	if v.usedByPods[r] == nil {
		return -1
	}
	name := nameOf(pod)
	sample, found := v.usedByPods[r][name]
	share := 1 - Lacking(start, Running, sample.At, v.resources[r].window)
	if !found || sample.At < v.oldest || share < leastMeasured {
		return -1
	}
	if ended, found := v.over.Load(name); found && ended != pod.UID && share < 1 {
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

// ended remembers a pod that ran until now. In the mode Preemptible, a preemptor may wait for this.
func (pl *NodeLoad) ended(pod *v1.Pod) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	v := pl.current()
	of := v.runOf(pod, pl.clock.Now().UnixNano())
	pl.gone = append(pl.gone, of)
	v.over.Store(of.name, of.pod)
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
		pl.current().over.CompareAndDelete(pl.gone[0].name, pl.gone[0].pod)
		pl.gone[0] = run{}
		pl.gone = pl.gone[1:]
	}
}

// takeOff takes off what the measurements of a node contain of an ended pod.
func (v *view) takeOff(of *run) {
	for number := v.findRun(of); number >= 0; {
		before := v.kept[number].Load().(*kept)
		gone := make([]float64, len(v.resources))
		copy(gone, before.gone)
		for r := range gone {
			if l := &v.measured[number][r]; l.at != notMeasured && l.since == l.at {
				u := &of.uses[r]
				gone[r] += Lacking(of.start, of.end, l.at, v.resources[r].window) * l.share(u.amount*u.known)
			}
		}
		if v.kept[number].CompareAndSwap(before, &kept{gone: gone}) {
			return
		}
	}
}
