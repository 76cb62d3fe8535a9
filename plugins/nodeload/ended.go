// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// A mean over a window still contains pods that have ended. The plugin remembers them until the windows have passed,
// and takes off what the mean still contains of them, just as it adds what the mean lacks of new pods. Pods that ended
// before the scheduler started are unknown.

const (
	// running is the end of a pod that has not ended.
	running int64 = math.MaxInt64
	// mostEnded is the maximum number of ended pods of a node; the newest count.
	mostEnded = 1000
)

// run is a pod with its end, in nanoseconds since 1970.
type run struct {
	pod *v1.Pod
	end int64
}

// watch remembers the pods that end from now on.
func (pl *NodeLoad) watch(pods cache.SharedInformer) {
	pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after interface{}) {
			if after.(*v1.Pod).Status.Phase != v1.PodRunning {
				pl.ended(before)
			}
		},
		DeleteFunc: func(obj interface{}) {
			if unknown, is := obj.(cache.DeletedFinalStateUnknown); is {
				obj = unknown.Obj
			}
			pl.ended(obj)
		},
	})
}

// ended remembers a pod that ran until now.
func (pl *NodeLoad) ended(obj interface{}) {
	pod, is := obj.(*v1.Pod)
	if !is || pod.Status.Phase != v1.PodRunning || pod.Spec.NodeName == "" {
		return
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	known, node := pl.gone[pod.Spec.NodeName], pod.Spec.NodeName
	if len(known) >= mostEnded {
		known = known[1:]
	}
	pl.gone[node] = append(known[:len(known):len(known)], run{pod, pl.clock.Now().UnixNano()})
	pl.current().setGone(node, pl.gone[node])
}

// setGone sets the ended pods of a node. Each change gives another pointer.
func (v *view) setGone(node string, runs []run) {
	if number := v.find(node); number >= 0 {
		v.gone[number].Store(&runs)
	}
}

// inheritGone sets the ended pods that a view needs, and forgets those that no measurement contains. pl.mu is held.
func (pl *NodeLoad) inheritGone(v *view) {
	for node, known := range pl.gone {
		for len(known) > 0 && known[0].end < v.made-int64(pl.maxSampleAge)-2*pl.longest {
			known = known[1:]
		}
		if pl.gone[node] = known; len(known) == 0 {
			delete(pl.gone, node)
		}
		v.setGone(node, known)
	}
}

func (v *view) goneFrom(number int) *[]run { return v.gone[number].Load().(*[]run) }
