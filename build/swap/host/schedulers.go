// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/schedulerpod"
)

// clusterScheduler is a scheduler of the cluster that is not a static pod, for example a second scheduler.
type clusterScheduler struct {
	// Pod is the pod's namespace and name.
	Pod      string
	Profiles []string
	Lease    *schedulerpod.Lease
}

// Schedulers returns the schedulers among the cluster's pods.
// It skips a scheduler whose configuration is not in a ConfigMap.
func (c *Cluster) Schedulers(ctx context.Context) ([]clusterScheduler, error) {
	pods, err := c.notEnded(ctx)
	if err != nil {
		return nil, err
	}
	var found []clusterScheduler
	for i := range pods {
		item := &pods[i]
		if _, static := item.Annotations[corev1.MirrorPodAnnotationKey]; static {
			continue
		}
		for _, pod := range schedulerpod.Find(item) {
			if pod.Line.Program < 0 {
				continue
			}
			if config, known := c.configOfPod(ctx, pod); known {
				found = append(found, clusterScheduler{item.Namespace + "/" + item.Name, config.SchedulerNames(), pod.Lease(config)})
			}
		}
	}
	return found, nil
}

// configOfPod reads a scheduler's configuration from the ConfigMap that its pod mounts.
func (c *Cluster) configOfPod(ctx context.Context, pod schedulerpod.Scheduler) (config *schedulerpod.Config, known bool) {
	file := pod.ConfigFile()
	if file == "" {
		return &schedulerpod.Config{}, true
	}
	volume, key := pod.VolumeAt(file)
	if volume == nil || volume.ConfigMap == nil {
		return nil, false
	}
	key = strings.TrimPrefix(key, "/")
	for _, item := range volume.ConfigMap.Items {
		if item.Path == key {
			key = item.Key
			break
		}
	}
	object, err := c.Client.CoreV1().ConfigMaps(pod.Object.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
	if err != nil {
		return nil, false
	}
	config, err = schedulerpod.ReadConfig([]byte(object.Data[key]))
	return config, err == nil
}

// overcommitPlugin is the only plugin that finds nodes for pods with a request of overcommitResource: no node has it.
const (
	overcommitPlugin   = "Overcommit"
	OvercommitResource = "overcommit.scheduler/millicpu"
)

// WithoutOvercommit describes the effect of a change of the scheduler on pods that request overcommitResource in a
// profile that does not enable the plugin afterwards; empty if there are none. A nil configuration is the default one.
func (c *Cluster) WithoutOvercommit(ctx context.Context, before, after *schedulerpod.Config) (string, error) {
	before, after = cmp.Or(before, &schedulerpod.Config{}), cmp.Or(after, &schedulerpod.Config{})
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
