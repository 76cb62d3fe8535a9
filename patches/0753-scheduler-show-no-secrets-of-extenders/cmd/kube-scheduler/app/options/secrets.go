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

// createFor creates or empties a file for a configuration: others may only read it if it has no secrets. The file has the
// secrets, because a scheduler must start with it.
func createFor(cfg *config.KubeSchedulerConfiguration, name string) (*os.File, error) {
	if reflect.DeepEqual(cfg, WithoutSecrets(cfg)) {
		return os.Create(name)
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() { // A device or a pipe keeps its mode.
		err = file.Chmod(0600)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
