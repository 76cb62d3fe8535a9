// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Phases of a PodGroup that the scheduler sets.
const (
	scheduling = "Scheduling"
	scheduled  = "Scheduled"
)

// Reserve remembers that a pod has a node, so that its gang is not half while its pods are being bound.
func (pl *Coscheduling) Reserve(_ context.Context, _ *framework.CycleState, pod *v1.Pod, _ string) *framework.Status {
	pl.groups.mark(pod, reserved)
	return nil
}

// Unreserve forgets it.
func (pl *Coscheduling) Unreserve(_ context.Context, _ *framework.CycleState, pod *v1.Pod, _ string) {
	pl.groups.mark(pod, waiting)
}

// PostBind sets the phase of the pod's PodGroup: Scheduling after its first pod was bound, and Scheduled after
// minMember were.
func (pl *Coscheduling) PostBind(ctx context.Context, _ *framework.CycleState, pod *v1.Pod, _ string) {
	g := pl.groups.mark(pod, placed)
	if g == nil {
		return
	}
	pl.groups.mutex.Lock()
	defer pl.groups.mutex.Unlock()
	if g.patching {
		return // The goroutine that does looks again afterwards.
	}
	g.patching = true
	failed := ""
	for phase := g.phase(); phase != "" && phase != failed; phase = g.phase() {
		status := map[string]interface{}{"phase": phase, "scheduled": g.counts[placed]}
		if phase == scheduling && !g.object.started {
			status["scheduleStartTime"] = metav1.Time{Time: time.Now()}
		}
		pl.groups.mutex.Unlock()
		err := pl.patch(ctx, g.name, status)
		pl.groups.mutex.Lock()
		if err != nil {
			klog.ErrorS(err, "Failed to set the phase of a PodGroup", "podGroup", g.name, "phase", phase)
			failed = phase
		} else if g.object != nil {
			// The event of it comes later.
			g.object.phase, g.object.started = phase, g.object.started || phase == scheduling
		}
	}
	g.patching = false
}

// phase returns the phase to set, or "" if that is not necessary.
func (g *group) phase() string {
	phase := scheduling
	if g.object == nil || g.counts[placed] == 0 {
		return ""
	}
	if g.counts[placed] >= g.object.minMember {
		phase = scheduled
	}
	if phase == g.object.phase {
		return ""
	}
	return phase
}

func (pl *Coscheduling) patch(ctx context.Context, name types.NamespacedName, status map[string]interface{}) error {
	patch, err := json.Marshal(map[string]interface{}{"status": status})
	if err != nil {
		return err
	}
	_, err = pl.client.Resource(resource).Namespace(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
