// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// A mean over a window still contains pods that have ended. The plugin remembers them until the windows have passed,
// and takes off what the mean still contains of them, just as it adds what the mean lacks of new pods. Pods that ended
// before the scheduler started are unknown.

const (
	// running is the end of a pod that has not ended, and leaving of one that is being deleted, or might be.
	running int64 = math.MaxInt64
	leaving       = running - 1
	// leastMeasured is the least share of a window for which a pod must have run before its use is taken as measured.
	leastMeasured = 0.2
	// mostEnded is the maximum number of ended pods of a node, also while nothing is measured; the newest count.
	mostEnded = 1000
)

// run is a pod with its end, in nanoseconds since 1970.
type run struct {
	pod *v1.Pod
	end int64
	// used is the measured use by resource, negative if it is unknown; nil if the pod runs.
	used []float64
}

// runOf returns the run of a pod that is on a node. What is known of the use of a deleted pod counts as gone at once.
func (v *view) runOf(pod *v1.Pod) run {
	if pod.DeletionTimestamp != nil {
		return v.until(pod, leaving)
	}
	return run{pod: pod, end: running}
}

// until returns the run of a pod with an end.
func (v *view) until(pod *v1.Pod, end int64) run {
	of := run{pod, end, make([]float64, len(v.resources))}
	for r := range of.used {
		of.used[r] = -1
		if v.snapshot == nil || !v.resources[r].askedOfPods.Pods {
			continue
		}
		window := v.resources[r].window
		sample, found := v.snapshot.Pods(v.resources[r].askedOfPods)[pod.Namespace+"/"+pod.Name]
		share := 1 - lacking(startOf(pod, window, v.made), running, sample.At, window)
		if found && sample.At >= v.oldest && share >= leastMeasured {
			of.used[r] = sample.Value / share
		}
	}
	return of
}

// measured reports whether the use of any resource is known.
func (of *run) measured() bool {
	for _, used := range of.used {
		if used >= 0 {
			return true
		}
	}
	return false
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
	v, node := pl.current(), pod.Spec.NodeName
	of := v.until(pod, pl.clock.Now().UnixNano())
	if ownerOf(pod) == (owner{}) && !of.measured() {
		return
	}
	known := pl.gone[node]
	if len(known) >= mostEnded {
		known = known[1:]
	}
	pl.gone[node] = append(known[:len(known):len(known)], of)
	v.setGone(node, pl.gone[node])
	if pl.PreFilterExtensions() != nil && pl.move != nil && v.noted(v.find(node)) {
		pl.move(moved)
	}
}

// setGone sets the ended pods of a node.
func (v *view) setGone(node string, runs []run) {
	if number := v.find(node); number >= 0 {
		v.gone[number].Store(runs)
		atomic.AddUint32(&v.goings[number], 1)
	}
}

// inheritGone sets the ended pods of a view, and forgets those that neither it nor the previous one measured. pl.mu is
// held.
func (pl *NodeLoad) inheritGone(v, before *view) {
	for node, known := range pl.gone {
		for len(known) > 0 && known[0].end < v.settledAt && known[0].end < before.settledAt {
			known = known[1:]
		}
		if pl.gone[node] = known; len(known) == 0 {
			delete(pl.gone, node)
		}
		v.setGone(node, known)
	}
}
