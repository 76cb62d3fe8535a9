// SPDX-License-Identifier: Apache-2.0

package records

import (
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	// itemsOfQueue are listed of the pods that wait.
	itemsOfQueue = 5000
	// SampleInterval is how often the length of the queue is noted, and samplesOfQueue how many are kept: an hour.
	SampleInterval = 10 * time.Second
	samplesOfQueue = 360
)

// Sample notes how long the queue is.
func (r *Recorder) Sample() {
	lengths := r.lengths()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.history) == samplesOfQueue {
		r.history = append(r.history[:0], r.history[1:]...)
	}
	r.history = append(r.history, lengths)
}

func (r *Recorder) lengths() QueueLengths {
	lengths := r.Sources.Lengths()
	lengths.Time = r.now()
	r.Sources.Permit(func(string, framework.WaitingPod) { lengths.Permit++ })
	return lengths
}

// permit are the plugins that a pod waits for now.
func (r *Recorder) permit(p pod) []PermitWait {
	var waits []PermitWait
	r.Sources.Permit(func(_ string, waiting framework.WaitingPod) {
		if waiting.GetPod().UID != p.uid {
			return
		}
		for _, plugin := range waiting.GetPendingPlugins() {
			waits = append(waits, PermitWait{Plugin: plugin, Since: p.attempts[len(p.attempts)-1].trail.permitted()})
		}
	})
	sort.Slice(waits, func(i, j int) bool { return waits[i].Plugin < waits[j].Plugin })
	return waits
}

// queue is what waits now.
func (r *Recorder) queue() Queue {
	queue := Queue{Lengths: r.lengths(), Items: []QueuedPod{}}
	known := map[string]pod{}
	for _, p := range r.copy(func(*pod) bool { return true }) {
		known[string(p.uid)] = p
	}
	add := func(item QueuedPod, plugins []string) {
		item.WaitsFor = append([]string(nil), plugins...)
		sort.Strings(item.WaitsFor)
		if p, found := known[item.UID]; found {
			item.Summary = p.attempts[len(p.attempts)-1].summary()
		}
		queue.Items = append(queue.Items, item)
	}
	r.Sources.Queue(func(where Where, info *framework.QueuedPodInfo, until time.Time) {
		item := QueuedPod{
			Namespace: info.Pod.Namespace, Name: info.Pod.Name, UID: string(info.Pod.UID), Profile: info.Pod.Spec.SchedulerName,
			Priority: priority(info.Pod), Where: where, Since: info.Timestamp, First: info.InitialAttemptTimestamp,
			Attempts: info.Attempts, NominatedNode: info.Pod.Status.NominatedNodeName,
		}
		if !until.IsZero() {
			item.Until = &until
		}
		add(item, info.UnschedulablePlugins.UnsortedList())
	})
	r.Sources.Permit(func(profile string, waiting framework.WaitingPod) {
		p := waiting.GetPod()
		item := QueuedPod{
			Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Profile: profile, Priority: priority(p),
			Where: InPermit, Attempts: 1,
		}
		if p, found := known[item.UID]; found {
			last := p.attempts[len(p.attempts)-1]
			item.Since, item.First, item.Attempts = last.trail.permitted(), last.first, last.number
		}
		add(item, waiting.GetPendingPlugins())
	})
	order := map[Where]int{InActive: 0, InBackoff: 1, InUnschedulable: 2, InPermit: 3}
	sort.SliceStable(queue.Items, func(i, j int) bool {
		a, b := &queue.Items[i], &queue.Items[j]
		return order[a.Where] < order[b.Where] || a.Where == b.Where && a.Since.Before(b.Since)
	})
	if len(queue.Items) > itemsOfQueue {
		queue.Items = queue.Items[:itemsOfQueue]
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	queue.History = append([]QueueLengths{}, r.history...)
	return queue
}

func priority(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}
