// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/nextstep"
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

// checkOthers reports schedulers that serve the same profiles as the
// new one without sharing its lease: both would bind the same pods.
func (t *Tool) checkOthers(ctx context.Context, findings *Findings, p *plan, accepted []string) {
	others, err := t.cluster.otherSchedulers(ctx)
	if err != nil {
		what, next := nextstep.Split(err, otherwise)
		findings.warn(next, "%s", what)
		return
	}
	ours := p.afterPod.Lease(p.accepted)
	reported := map[string]bool{}
	for _, other := range others {
		if ours != nil && other.lease != nil && *ours == *other.lease {
			continue
		}
		for _, profile := range p.accepted.SchedulerNames() {
			if !slices.Contains(other.profiles, profile) || reported[profile] {
				continue
			}
			// Report each profile once, not for every replica.
			reported[profile] = true
			findings.unless(accepted, SharedProfiles, "give one of the two profiles another schedulerName, or stop that scheduler",
				"the scheduler in pod %s serves %s, too: both would bind the same pods, and one of them would fail each time", other.pod, profile)
		}
	}
}
