// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/schedulerpod"
)

// overcommitPlugin is the only plugin that finds nodes for pods with a request of overcommitResource: no node has it.
const (
	overcommitPlugin   = "Overcommit"
	OvercommitResource = "overcommit.scheduler/millicpu"
)

// WithoutOvercommit describes the effect of a change of the scheduler on pods that request overcommitResource in a
// profile that does not enable the plugin afterwards; empty if there are none. A nil configuration is the default one.
func (c *Cluster) WithoutOvercommit(ctx context.Context, before, after *schedulerpod.Config) (string, error) {
	if before == nil {
		before = &schedulerpod.Config{}
	}
	if after == nil {
		after = &schedulerpod.Config{}
	}
	served, enabled := append(before.SchedulerNames(), after.SchedulerNames()...), after.ProfilesWith(overcommitPlugin)
	pods, err := c.notEnded(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	waiting := 0
	for i := range pods {
		pod := &pods[i]
		name := pod.Spec.SchedulerName
		if !slices.Contains(served, name) || slices.Contains(enabled, name) || !slices.ContainsFunc(pod.Spec.Containers, overcommits) {
			continue
		}
		found = append(found, pod.Namespace+"/"+pod.Name)
		if pod.Spec.NodeName == "" {
			waiting++
		}
	}
	if len(found) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d pods request %s in a profile without the plugin %s, for example %s: %d without a node stay Pending, "+
		"and %d stay on their nodes until they end", len(found), OvercommitResource, overcommitPlugin, found[0], waiting,
		len(found)-waiting), nil
}

// overcommits reports whether a container requests overcommitResource.
func overcommits(container corev1.Container) bool {
	_, requested := container.Resources.Requests[OvercommitResource]
	return requested
}
