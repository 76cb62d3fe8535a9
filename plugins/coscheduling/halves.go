// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
)

// giveUp begins to evict the placed pods of a half gang if it has been one for too long. It does so again after the
// same time, if a PodDisruptionBudget did not allow all of it. The mutex is held.
func (pl *Coscheduling) giveUp(g *group, gang *gangs.Gang) {
	after := pl.args.GiveUpHalfGangsAfter.Duration
	if after == 0 || time.Since(g.half) < after {
		return
	}
	g.half = time.Now()
	go pl.evict(gang.Placed)
}

func (pl *Coscheduling) evict(pods []*v1.Pod) {
	for _, pod := range pods {
		err := pl.handle.ClientSet().CoreV1().Pods(pod.Namespace).EvictV1(context.Background(), &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
		})
		if err != nil {
			klog.ErrorS(err, "Failed to evict a pod of a half gang", "pod", klog.KObj(pod))
			continue
		}
		pl.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeWarning, "HalfGangGivenUp", "Evicting",
			"Evicted, because fewer pods of its gang than minMember have had nodes for %s", pl.args.GiveUpHalfGangsAfter.Duration)
	}
}
