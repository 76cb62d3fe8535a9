// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Bind binds the pod to the node whose place is held for it. All other pods are left to the next Bind plugin.
func (pl *Chaos) Bind(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) *framework.Status {
	current := pl.attempts.read(state)
	if current == nil || current.reservation == nil {
		return framework.NewStatus(framework.Skip, "")
	}
	node := current.reservation.node
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := pl.handle.ClientSet().CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return framework.AsStatus(err)
	}
	current.redirected = true
	pl.counters.redirected.Inc()
	pl.tell(pod, "Redirect", "Bound to %s, drawn from the nodes that fit; the best was %s (randomBindPercent %d)",
		node, nodeName, pl.args.RandomBindPercent)
	return nil
}

// PostBind ends what is left of the attempt. A place that is held for a pod bound elsewhere is given up; one whose pod
// was bound there is held until the scheduler knows.
func (pl *Chaos) PostBind(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) {
	current := pl.attempts.read(state)
	if current == nil {
		return
	}
	current.end()
	if current.reservation != nil && !current.redirected {
		pl.reservations.giveUp(current.reservation)
		klog.ErrorS(nil, "Pod went to the best node, because another plugin bound it; "+
			"next: enable this plugin at bind before DefaultBinder", "pod", klog.KObj(pod), "node", nodeName, "plugin", Name)
	}
}
