// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componentbaseconfig "k8s.io/component-base/config"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	upstreamplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	argsvalidation "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/configcheck"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Profile is a profile of a KubeSchedulerConfiguration with the plugins of a registry, their arguments and weights.
type Profile struct {
	// profile has nothing else enabled, except the two plugins that every profile must have.
	profile schedulerconfig.KubeSchedulerProfile
	// registry has the factories of all plugins in the profile.
	registry frameworkruntime.Registry
	// parallelism is the number of nodes that are evaluated at the same time.
	parallelism int
	// connection configures the connection to the API server.
	connection componentbaseconfig.ClientConnectionConfiguration
}

// LoadProfile reads a KubeSchedulerConfiguration as the scheduler does, strictly, with defaults, and validated. It
// returns the profile with a name, which may be empty if there is only one, without upstream's own plugins: the
// scheduler that sends the requests runs these itself.
func LoadProfile(file, name string, plugins frameworkruntime.Registry) (*Profile, error) {
	config, err := loadConfiguration(file)
	if err != nil {
		return nil, err
	}
	profile, err := chooseProfile(file, config.Profiles, name)
	if err != nil {
		return nil, err
	}
	withoutUpstreams(profile.Plugins)
	registry := frameworkruntime.Registry{queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New}
	if err := registry.Merge(plugins); err != nil {
		return nil, err
	}
	return &Profile{
		profile: *profile, registry: registry, parallelism: int(config.Parallelism), connection: config.ClientConnection,
	}, nil
}

func loadConfiguration(file string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w; next: give a file that exists with --config", err)
	}
	object, kind, err := scheme.Codecs.UniversalDecoder().Decode(content, nil, nil)
	if err != nil {
		return nil, invalid(file, configcheck.Explain(file, err))
	}
	config, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, invalid(file, fmt.Errorf("it is a %s, not a KubeSchedulerConfiguration", kind.Kind))
	}
	// Validation asks for it, and decoding leaves it out.
	config.APIVersion = kind.GroupVersion().String()
	errs := validateArgs(config.Profiles)
	for i := range config.Profiles {
		missing, _ := argsvalidation.Points(field.NewPath("profiles").Index(i), &config.Profiles[i])
		errs = append(errs, missing...)
	}
	if err := validation.ValidateKubeSchedulerConfiguration(config); err != nil {
		errs = append(errs, err.Errors()...)
	}
	if len(errs) > 0 {
		return nil, invalid(file, utilerrors.NewAggregate(errs))
	}
	return config, nil
}

// validateArgs validates the arguments of this project's plugins in all profiles; upstream's validation skips them.
func validateArgs(profiles []schedulerconfig.KubeSchedulerProfile) []error {
	validators := argsvalidation.Functions()
	var errs []error
	for i := range profiles {
		for j, config := range profiles[i].PluginConfig {
			validator, ours := validators[config.Name]
			if !ours {
				continue
			}
			path := field.NewPath("profiles").Index(i).Child("pluginConfig").Index(j).Child("args")
			function := reflect.ValueOf(validator)
			if config.Args == nil || reflect.TypeOf(config.Args) != function.Type().In(1) {
				errs = append(errs, field.Invalid(path, fmt.Sprintf("%T", config.Args), "has to match plugin args"))
				continue
			}
			result := function.Call([]reflect.Value{reflect.ValueOf(path), reflect.ValueOf(config.Args)})[0]
			if err, failed := result.Interface().(error); failed {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// invalid returns an error with a line for every error of a configuration file.
func invalid(file string, err error) error {
	return fmt.Errorf("%s cannot be used:\n  %s\nnext: correct the file", file, strings.Join(configcheck.Lines(err), "\n  "))
}

func chooseProfile(
	file string, profiles []schedulerconfig.KubeSchedulerProfile, name string,
) (*schedulerconfig.KubeSchedulerProfile, error) {
	var names []string
	for i := range profiles {
		if profiles[i].SchedulerName == name || (name == "" && len(profiles) == 1) {
			return &profiles[i], nil
		}
		names = append(names, profiles[i].SchedulerName)
	}
	return nil, fmt.Errorf("%s has %d profiles, and --profile is %q; next: choose one with --profile: %s",
		file, len(names), name, strings.Join(names, ", "))
}

// withoutUpstreams removes the plugins that every scheduler has from those that are enabled. A name that is neither
// theirs nor ours stays, and is an error when the plugins are created. What is enabled at the points that an extender
// does not serve is never called.
func withoutUpstreams(plugins *schedulerconfig.Plugins) {
	upstreams := upstreamplugins.NewInTreeRegistry()
	for _, set := range []*schedulerconfig.PluginSet{
		&plugins.MultiPoint, &plugins.QueueSort, &plugins.PreFilter, &plugins.Filter, &plugins.PostFilter, &plugins.PreScore,
		&plugins.Score, &plugins.Reserve, &plugins.Permit, &plugins.PreBind, &plugins.Bind, &plugins.PostBind,
	} {
		set.Enabled = slices.DeleteFunc(set.Enabled, func(plugin schedulerconfig.Plugin) bool {
			_, is := upstreams[plugin.Name]
			return is
		})
	}
	// A framework needs these two; neither is ever called.
	plugins.QueueSort.Enabled = []schedulerconfig.Plugin{{Name: queuesort.Name}}
	plugins.Bind.Enabled = []schedulerconfig.Plugin{{Name: defaultbinder.Name}}
}
