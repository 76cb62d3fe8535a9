// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// A mean over a window still contains pods that have ended. The plugin remembers their use while a measurement may
// contain it, and takes off what it contains, just as it adds what it lacks of new pods. Pods that ended before the
// scheduler started are unknown.

// mostEnded is the maximum number of ended pods that are remembered; the newest count.
const mostEnded = 100000

// run is a pod that used a node from start to end, in nanoseconds since 1970.
type run struct {
	node       string
	name       string
	pod        types.UID
	owner      owner
	start, end int64
	uses       []use // by resource
}

// endedPods are the pods that ended and that a measurement may contain.
type endedPods struct {
	runs []run // oldest first
	// uids has the UIDs by name, each name's last: a NodeInfo may still contain the pod. Unlike the runs, all cycles read
	// it.
	uids sync.Map
}

func (e *endedPods) add(of run) {
	e.runs = append(e.runs, of)
	e.uids.Store(of.name, of.pod)
}

// forget forgets the pods that ended before a time, and the oldest of too many.
func (e *endedPods) forget(oldest int64) {
	for len(e.runs) > 0 && (e.runs[0].end < oldest || len(e.runs) > mostEnded) {
		e.uids.CompareAndDelete(e.runs[0].name, e.runs[0].pod)
		e.runs[0] = run{}
		e.runs = e.runs[1:]
	}
}

// last returns the UID of the last pod with a name that ended.
func (e *endedPods) last(name string) (uid types.UID, found bool) {
	value, found := e.uids.Load(name)
	if found {
		uid = value.(types.UID)
	}
	return uid, found
}
