// SPDX-License-Identifier: Apache-2.0

package records

import (
	"net/http"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/answers"
)

// itemsOfQueue limits the listed pods.
const itemsOfQueue = 5000

// permit returns the plugins that a pod waits for now.
func (r *Recorder) permit(p pod) []PermitWait {
	var waits []PermitWait
	r.Sources.Permit(func(_ string, waiting framework.WaitingPod) {
		if waiting.GetPod().UID != p.uid {
			return
		}
		for _, plugin := range waiting.GetPendingPlugins() {
			waits = append(waits, PermitWait{Plugin: plugin, Since: p.last().trail.permitted()})
		}
	})
	sort.Slice(waits, func(i, j int) bool { return waits[i].Plugin < waits[j].Plugin })
	return waits
}

// waitingPod has the fields of a pod that are copied while the scheduler's queue is locked.
type waitingPod struct {
	where               Where
	pod                 *v1.Pod
	profile             string
	since, first, until time.Time
	attempts            int
	plugins             sets.String
}

// queue returns the pending pods. It lists the queue in one goroutine at a time, and at most once per second.
func (r *Recorder) queue() (Queue, error) {
	if r.Sources.Queue == nil {
		return Queue{}, answers.Refuse(http.StatusNotImplemented, "this scheduler cannot list its queue", "GET "+PodsPath)
	}
	r.queueMutex.Lock()
	defer r.queueMutex.Unlock()
	if now := r.now(); r.queueMade.IsZero() || now.Sub(r.queueMade) >= time.Second {
		r.queueKept, r.queueMade = r.makeQueue(), now
	}
	return r.queueKept, nil
}

func (r *Recorder) makeQueue() Queue {
	queue := Queue{Lengths: r.Sources.Lengths(), Items: []QueuedPod{}}
	var waiting []waitingPod
	r.Sources.Queue(func(where Where, info *framework.QueuedPodInfo, until time.Time) {
		waiting = append(waiting, waitingPod{
			where: where, pod: info.Pod, profile: info.Pod.Spec.SchedulerName, since: info.Timestamp, first: info.InitialAttemptTimestamp,
			until: until, attempts: info.Attempts, plugins: info.UnschedulablePlugins,
		})
	})
	known := map[types.UID]pod{}
	for _, p := range r.copy(func(*pod) bool { return true }) {
		known[p.uid] = p
	}
	r.Sources.Permit(func(profile string, w framework.WaitingPod) {
		p := waitingPod{where: InPermit, pod: w.GetPod(), profile: profile, attempts: 1, plugins: sets.NewString(w.GetPendingPlugins()...)}
		if kept, found := known[p.pod.UID]; found {
			last := kept.last()
			p.since, p.first, p.attempts = last.trail.permitted(), last.first, last.number
		}
		waiting = append(waiting, p)
		queue.Lengths.Permit++
	})
	order := map[Where]int{InActive: 0, InBackoff: 1, InUnschedulable: 2, InPermit: 3}
	sort.SliceStable(waiting, func(i, j int) bool {
		a, b := &waiting[i], &waiting[j]
		return order[a.where] < order[b.where] || a.where == b.where && a.since.Before(b.since)
	})
	if len(waiting) > itemsOfQueue {
		waiting = waiting[:itemsOfQueue]
	}
	for _, p := range waiting {
		item := QueuedPod{
			Namespace: p.pod.Namespace, Name: p.pod.Name, UID: string(p.pod.UID), Profile: p.profile, Priority: corev1helpers.PodPriority(p.pod),
			Where: p.where, Since: p.since, First: p.first, Attempts: p.attempts, WaitsFor: p.plugins.List(),
			NominatedNode: p.pod.Status.NominatedNodeName,
		}
		if until := p.until; !until.IsZero() {
			item.Until = &until
		}
		if kept, found := known[p.pod.UID]; found {
			item.Summary = kept.last().summary()
		}
		queue.Items = append(queue.Items, item)
	}
	return queue
}
