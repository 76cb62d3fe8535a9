// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// ConfigOf reads the configuration in a pod's command line from its path on this host; nil without one.
func ConfigOf(pod *manifest.Pod) (*schedulerpod.Config, error) {
	content, err := ConfigContent(pod)
	if content == nil || err != nil {
		return nil, err
	}
	config, err := schedulerpod.ReadConfig(content)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the scheduler's configuration: %w", err),
			"correct it, then kube-scheduler-swap install --config FILE")
	}
	return config, nil
}

// ConfigContent returns the text of the configuration in a pod's command line; nil without one.
func ConfigContent(pod *manifest.Pod) ([]byte, error) {
	inside := pod.ConfigFile()
	if inside == "" {
		return nil, nil
	}
	path, mounted := pod.HostPath(inside)
	if !mounted {
		return nil, nextstep.With(
			fmt.Errorf("the manifest has --config=%s, but does not mount the directory of that file", inside),
			"kube-scheduler-swap rollback")
	}
	content, err := record.ReadRegular(path)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the scheduler's configuration: %w", err),
			"kube-scheduler-swap install --config FILE")
	}
	return content, nil
}

// ServesNow reports whether the scheduler in the manifest has the profile name.
func ServesNow(pod *manifest.Pod, name string) bool {
	config, err := ConfigOf(pod)
	if config == nil || err != nil {
		return name == corev1.DefaultSchedulerName
	}
	return slices.Contains(config.SchedulerNames(), name)
}
