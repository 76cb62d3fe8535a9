// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/schedulerpod"
)

// otherScheduler is a scheduler of the cluster that is not a static pod, for example a second scheduler.
type otherScheduler struct {
	// pod is the pod's namespace and name.
	pod      string
	profiles []string
	lease    *schedulerpod.Lease
}

// otherSchedulers returns the schedulers among the cluster's pods.
// It skips a scheduler whose configuration is not in a ConfigMap.
func (c *cluster) otherSchedulers(ctx context.Context) ([]otherScheduler, error) {
	pods, err := c.notEnded(ctx)
	if err != nil {
		return nil, err
	}
	var found []otherScheduler
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
			found = append(found, otherScheduler{item.Namespace + "/" + item.Name, config.SchedulerNames(), pod.Lease(config)})
		}
	}
	return found, nil
}

// configOfPod reads a scheduler's configuration from the ConfigMap that its pod mounts.
func (c *cluster) configOfPod(ctx context.Context, pod schedulerpod.Scheduler) (config *schedulerpod.Config, known bool) {
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
	object, err := c.client.CoreV1().ConfigMaps(pod.Object.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
	if err != nil {
		return nil, false
	}
	config, err = schedulerpod.ReadConfig([]byte(object.Data[key]))
	return config, err == nil
}
