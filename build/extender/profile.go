// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
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
	argsvalidation "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/configcheck"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Profile is what an extender serves: of a profile in a KubeSchedulerConfiguration, the plugins of a registry at
// preFilter, filter, preScore and score, with their arguments and weights.
type Profile struct {
	// profile has nothing else enabled, but for the two plugins that every profile must have.
	profile schedulerconfig.KubeSchedulerProfile
	// registry has the factories of all plugins in the profile.
	registry frameworkruntime.Registry
	// parallelism is how many nodes are looked at at once.
	parallelism int
	// connection is how to talk to the API server, as the file says.
	connection componentbaseconfig.ClientConnectionConfiguration
}

// LoadProfile reads a KubeSchedulerConfiguration as the scheduler does, strictly, with defaults, and validated, and
// takes from the profile with a name what can be served. The name may be empty if there is only one profile. Of what
// the file names, upstream's own plugins are passed over: the scheduler that asks runs them itself.
func LoadProfile(file, name string, plugins frameworkruntime.Registry) (*Profile, error) {
	config, err := loadConfiguration(file)
	if err != nil {
		return nil, err
	}
	chosen, err := chooseProfile(file, config.Profiles, name)
	if err != nil {
		return nil, err
	}
	if err := checkNames(file, chosen.Plugins, plugins); err != nil {
		return nil, err
	}
	served := schedulerconfig.KubeSchedulerProfile{
		SchedulerName: chosen.SchedulerName, Plugins: onlyServed(chosen.Plugins, plugins),
	}
	enabled := enabledIn(served.Plugins)
	for _, args := range chosen.PluginConfig {
		if slices.Contains(enabled, args.Name) {
			served.PluginConfig = append(served.PluginConfig, args)
		}
	}
	if len(enabled) == 0 {
		why := ""
		if strings.HasSuffix(config.APIVersion, "/v1beta2") {
			why = " (Kubernetes 1.23 ignores multiPoint in v1beta2)"
		}
		return nil, fmt.Errorf("the profile %s in %s enables no plugin of this project at preFilter, filter, preScore or score%s; "+
			"next: enable one or more of %s", chosen.SchedulerName, file, why, strings.Join(sorted(plugins), ", "))
	}
	registry := frameworkruntime.Registry{queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New}
	if err := registry.Merge(plugins); err != nil {
		return nil, err
	}
	return &Profile{
		profile: served, registry: registry, parallelism: int(config.Parallelism), connection: config.ClientConnection,
	}, nil
}

func loadConfiguration(file string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w; next: give a file that exists with --config", err)
	}
	object, kind, err := scheme.Codecs.UniversalDecoder().Decode(content, nil, nil)
	if err != nil {
		return nil, wrong(file, configcheck.Explain(file, err))
	}
	config, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, wrong(file, fmt.Errorf("it is a %s, not a KubeSchedulerConfiguration", kind.Kind))
	}
	// Validation asks for it, and decoding leaves it out.
	config.APIVersion = kind.GroupVersion().String()
	var errs []error
	if err := validation.ValidateKubeSchedulerConfiguration(config); err != nil {
		errs = err.Errors()
	}
	if err := utilerrors.NewAggregate(append(errs, validateArgs(config.Profiles)...)); err != nil {
		return nil, wrong(file, err)
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

// wrong returns an error with a line for every error of a configuration file.
func wrong(file string, err error) error {
	lines := []string{err.Error()}
	var aggregate utilerrors.Aggregate
	if errors.As(err, &aggregate) {
		lines = nil
		for _, err := range utilerrors.Flatten(aggregate).Errors() {
			if line := err.Error(); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return fmt.Errorf("%s cannot be used:\n  %s\nnext: correct the file", file, strings.Join(lines, "\n  "))
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
	if name == "" {
		return nil, fmt.Errorf("%s has %d profiles; next: choose one with --profile: %s",
			file, len(names), strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("%s has no profile %s; next: choose one with --profile: %s",
		file, name, strings.Join(names, ", "))
}

// pluginSets returns the extension points that an extender serves.
func pluginSets(plugins *schedulerconfig.Plugins) []*schedulerconfig.PluginSet {
	return []*schedulerconfig.PluginSet{
		&plugins.MultiPoint, &plugins.PreFilter, &plugins.Filter, &plugins.PreScore, &plugins.Score,
	}
}

// otherPluginSets returns the extension points that an extender does not serve.
func otherPluginSets(plugins *schedulerconfig.Plugins) []*schedulerconfig.PluginSet {
	return []*schedulerconfig.PluginSet{
		&plugins.QueueSort, &plugins.PostFilter, &plugins.Reserve, &plugins.Permit, &plugins.PreBind, &plugins.Bind,
		&plugins.PostBind,
	}
}

// checkNames refuses plugins that are unknown to any scheduler, such as mistyped names.
func checkNames(file string, plugins *schedulerconfig.Plugins, ours frameworkruntime.Registry) error {
	var unknown []string
	for _, set := range append(pluginSets(plugins), otherPluginSets(plugins)...) {
		for _, plugin := range set.Enabled {
			if _, known := ours[plugin.Name]; !known && !inTree.Has(plugin.Name) && !slices.Contains(unknown, plugin.Name) {
				unknown = append(unknown, plugin.Name)
			}
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("%s enables plugins that are neither Kubernetes' own nor this project's: %s; "+
		"next: correct the names; this project's are %s", file, strings.Join(unknown, ", "), strings.Join(sorted(ours), ", "))
}

// onlyServed returns a profile's plugins of a registry at the served extension points. Disabled plugins stay disabled,
// because multiPoint may enable them.
func onlyServed(plugins *schedulerconfig.Plugins, ours frameworkruntime.Registry) *schedulerconfig.Plugins {
	served := plugins.DeepCopy()
	for _, set := range pluginSets(served) {
		set.Enabled = slices.DeleteFunc(set.Enabled, func(plugin schedulerconfig.Plugin) bool {
			_, is := ours[plugin.Name]
			return !is
		})
	}
	for _, set := range otherPluginSets(served) {
		// Against multiPoint.
		*set = schedulerconfig.PluginSet{Disabled: []schedulerconfig.Plugin{{Name: "*"}}}
	}
	// A framework needs these two; neither is ever called.
	served.QueueSort.Enabled = []schedulerconfig.Plugin{{Name: queuesort.Name}}
	served.Bind.Enabled = []schedulerconfig.Plugin{{Name: defaultbinder.Name}}
	return served
}

// enabledIn returns the names of the plugins that are enabled at a served extension point.
func enabledIn(plugins *schedulerconfig.Plugins) []string {
	var names []string
	for _, set := range pluginSets(plugins) {
		for _, plugin := range set.Enabled {
			if !slices.Contains(names, plugin.Name) {
				names = append(names, plugin.Name)
			}
		}
	}
	return names
}

func sorted(registry frameworkruntime.Registry) []string {
	var names []string
	for name := range registry {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
