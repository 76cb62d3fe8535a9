// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Reserve sends one event about all disturbances of the choice of the node, if there are any.
func (pl *Chaos) Reserve(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) *framework.Status {
	current := pl.disturbed(state, pod)
	if current == nil {
		return nil
	}
	current.reserved = true
	var done []string
	if atomic.LoadUint32(&current.rejected) == 1 {
		done = append(done, fmt.Sprintf("some nodes were rejected at random (rejectPercent %d)", pl.args.RejectPercent))
	}
	if current.scored {
		done = append(done, "the nodes were scored at random (randomScore)")
	}
	switch {
	case current.drawn == "":
	case current.drawn == nodeName:
		pl.counters.redirected.Inc()
		done = append(done, fmt.Sprintf("%s was chosen at random from the nodes that fit (randomBindPercent %d)", current.drawn, pl.args.RandomBindPercent))
	default:
		pl.needsWeight.Do(func() {
			klog.ErrorS(nil, "Pod is not bound to its random node, because other scores outweigh it; next: give this "+
				"plugin more weight than the sum of all other score plugins and extenders of the profile",
				"plugin", Name, "pod", klog.KObj(pod), "node", nodeName, "drawn", current.drawn)
		})
	}
	if len(done) > 0 {
		pl.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeNormal, eventReason, "Choose",
			"The choice of a node was disturbed: %s", strings.Join(done, "; "))
	}
	return nil
}

// Unreserve does nothing: nothing is reserved.
func (pl *Chaos) Unreserve(context.Context, *framework.CycleState, *v1.Pod, string) {}
