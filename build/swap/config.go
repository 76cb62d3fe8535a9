// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"slices"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

// configOf reads the configuration in a pod's command line from its path on this host; nil without one.
func configOf(pod *Pod) (*schedulerpod.Config, error) {
	content, err := configContent(pod)
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

// configContent returns the text of the configuration in a pod's command line; nil without one.
func configContent(pod *Pod) ([]byte, error) {
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
	content, err := readRegular(path)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the scheduler's configuration: %w", err),
			"kube-scheduler-swap install --config FILE")
	}
	return content, nil
}

// servesNow reports whether the scheduler in the manifest has the profile name.
func servesNow(pod *Pod, name string) bool {
	config, err := configOf(pod)
	if config == nil || err != nil {
		return name == defaultScheduler
	}
	return slices.Contains(config.SchedulerNames(), name)
}
