// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
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
			config, known := c.configOfPod(ctx, pod)
			if !known {
				continue
			}
			found = append(found, clusterScheduler{item.Namespace + "/" + item.Name, config.SchedulerNames(), pod.Lease(config)})
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
