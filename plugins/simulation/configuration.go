// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	// The plugins' args, in every version.
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/configcheck"
)

// stock is the name of the default configuration.
const stock = "stock"

// configuration is a named configuration.
type configuration struct {
	Name string
	// Path is its file, and Text what is in it; empty for the default one. A pipe can be read only once.
	Path string
	Text []byte
	// CallExtenders is whether its extenders are called.
	CallExtenders bool
}

// load reads, defaults and validates the configuration as kube-scheduler does.
func (c configuration) load() (*schedulerconfig.KubeSchedulerConfiguration, error) {
	text := []byte("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n")
	if c.Path != "" {
		text = c.Text
	}
	object, version, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, c.failed(configcheck.Explain(c.Path, err))
	}
	config, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, c.failed(fmt.Errorf("want a KubeSchedulerConfiguration, got %s", version))
	}
	config.TypeMeta.APIVersion = version.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(config); err != nil {
		return nil, c.failed(err)
	}
	if len(config.Extenders) > 0 && !c.CallExtenders {
		return nil, fmt.Errorf("--config %s: extenders: they need the network; next: --extender, which calls them, or a copy of the file without extenders", c.Path)
	}
	return config, nil
}

func (c configuration) failed(err error) error {
	return fmt.Errorf("--config %s: %v; next: kube-scheduler-swap check --config %s", c.Path, err, c.Path)
}
