// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"io"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/configcheck"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// validateConfig reads and validates flags and configuration with the same functions as Setup, and leaves the rest to
// configcheck. It opens no port and writes no file. It only contacts the data sources of plugins, and the API server
// for them.
func validateConfig(out, errOut io.Writer, opts *options.Options, registryOptions ...Option) error {
	if !klog.V(1).Enabled() {
		// Log messages of new plugins and profiles are not part of the result. Errors still go to stderr.
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	}
	cfg, err := latest.Default()
	if err != nil {
		return err
	}
	opts.ComponentConfig = cfg
	errs := opts.Validate()
	if opts.WriteConfigTo != "" {
		errs = append(errs, errors.New("--write-config-to: nothing is written with --validate-config"))
	}
	registry := make(runtime.Registry)
	for _, option := range registryOptions {
		if err := option(registry); err != nil {
			errs = append(errs, err)
		}
	}
	// Without secure serving, ApplyTo opens no port and needs no API server for delegated authentication.
	opts.SecureServing = nil
	c := &schedulerserverconfig.Config{}
	if err := opts.ApplyTo(c); err != nil {
		errs = append(errs, configcheck.ExplainAll(opts.ConfigFile, registry, err))
	}
	return configcheck.Validate(out, errOut, configcheck.Start{
		ConfigFile:     opts.ConfigFile,
		Config:         &c.ComponentConfig,
		Registry:       registry,
		KubeconfigFlag: opts.Deprecated.Kubeconfig,
		Master:         opts.Master,
	}, utilerrors.NewAggregate(errs))
}
