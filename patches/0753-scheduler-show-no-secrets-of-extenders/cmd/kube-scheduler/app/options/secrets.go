// SPDX-License-Identifier: Apache-2.0

package options

import (
	"os"
	"reflect"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/extendernodes"
)

// WithoutSecrets returns a copy of a configuration for logs and pages, without the secrets of extenders.
func WithoutSecrets(cfg *config.KubeSchedulerConfiguration) *config.KubeSchedulerConfiguration {
	cfg = cfg.DeepCopy()
	for i := range cfg.Extenders {
		cfg.Extenders[i] = *extendernodes.WithoutSecrets(&cfg.Extenders[i])
	}
	return cfg
}

// modeFor returns the mode of a file with a configuration: others may only read it if it has no secrets. The file has
// the secrets, because a scheduler must start with it.
func modeFor(cfg *config.KubeSchedulerConfiguration) os.FileMode {
	if reflect.DeepEqual(cfg, WithoutSecrets(cfg)) {
		return 0666
	}
	return 0600
}
