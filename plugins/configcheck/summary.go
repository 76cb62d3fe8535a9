// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"fmt"
	"os"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-scheduler/config/v1beta2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/extendernodes"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"sigs.k8s.io/yaml"
)

// extensionPoint is a list of plugins in a profile.
type extensionPoint struct {
	name string
	set  func(*schedulerconfig.Plugins) schedulerconfig.PluginSet
}

// extensionPoints are in the order in which they are called. The last, multiPoint, is not an extension point: it
// enables a plugin at all of its points.
var extensionPoints = func() (points []extensionPoint) {
	lists := reflect.TypeOf(schedulerconfig.Plugins{})
	for i := 0; i < lists.NumField(); i++ {
		i, name := i, lists.Field(i).Name
		points = append(points, extensionPoint{strings.ToLower(name[:1]) + name[1:], func(p *schedulerconfig.Plugins) schedulerconfig.PluginSet {
			return reflect.ValueOf(*p).Field(i).Interface().(schedulerconfig.PluginSet)
		}})
	}
	return points
}()

// summary returns lines with the differences of each profile from the default one, and with the verbs of each extender.
func (s Start) summary(profiles profile.Map, defaults *schedulerconfig.Plugins) []string {
	var summary []string
	for _, p := range s.Config.Profiles {
		differences := difference(defaults, profiles[p.SchedulerName].ListPlugins())
		if len(differences) == 0 {
			summary = append(summary, fmt.Sprintf("profile %s: the default plugins", p.SchedulerName))
			continue
		}
		summary = append(summary, fmt.Sprintf("profile %s: the default plugins with these changes", p.SchedulerName))
		summary = append(summary, differences...)
	}
	for _, extender := range s.Config.Extenders {
		summary = append(summary, fmt.Sprintf("extender %s: %s", extendernodes.WithoutCredentials(extender.URLPrefix), strings.Join(verbs(extender), ", ")))
	}
	return summary
}

// defaultPlugins returns the plugins of the default profile, which depends on the version of the configuration.
func defaultPlugins(apiVersion string) (*schedulerconfig.Plugins, error) {
	document := encode(metav1.TypeMeta{APIVersion: apiVersion, Kind: configurationKind})
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(document, nil, nil)
	if err != nil {
		return nil, err
	}
	offline, err := newOffline()
	if err != nil {
		return nil, err
	}
	framework, err := offline.newFramework(frameworkplugins.NewInTreeRegistry(), &object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles[0])
	if err != nil {
		return nil, err
	}
	return framework.ListPlugins(), nil
}

// difference returns lines with the plugins that were added, left out, and given another weight. Score plugins are
// shown with their weight.
func difference(before, after *schedulerconfig.Plugins) []string {
	var added, leftOut, changed findings
	for _, point := range extensionPoints {
		old, current := weights(point, before), weights(point, after)
		for _, plugin := range point.set(after).Enabled {
			weight, found := old[plugin.Name]
			switch {
			case !found:
				added.add(plugin.Name, weighted(point.name, int64(plugin.Weight)))
			case weight != plugin.Weight:
				changed.add(plugin.Name, fmt.Sprintf("%s instead of %d", weighted(point.name, int64(plugin.Weight)), weight))
			}
		}
		for _, plugin := range point.set(before).Enabled {
			if _, found := current[plugin.Name]; !found {
				leftOut.add(plugin.Name, point.name)
			}
		}
	}
	var lines []string
	lines = append(lines, added.line("  added:    ")...)
	lines = append(lines, leftOut.line("  left out: ")...)
	lines = append(lines, changed.line("  changed:  ")...)
	return lines
}

// weights returns the plugins at an extension point, with their weights, which are 0 except at score.
func weights(point extensionPoint, plugins *schedulerconfig.Plugins) map[string]int32 {
	weights := map[string]int32{}
	for _, plugin := range point.set(plugins).Enabled {
		weights[plugin.Name] = plugin.Weight
	}
	return weights
}

func weighted(what string, weight int64) string {
	if weight == 0 {
		return what
	}
	return fmt.Sprintf("%s with weight %d", what, weight)
}

// findings are extension points by plugin, in the order in which the plugins were found.
type findings struct {
	plugins []string
	points  map[string][]string
}

func (f *findings) add(plugin, point string) {
	if f.points == nil {
		f.points = map[string][]string{}
	}
	if f.points[plugin] == nil {
		f.plugins = append(f.plugins, plugin)
	}
	f.points[plugin] = append(f.points[plugin], point)
}

func (f *findings) line(heading string) []string {
	if len(f.plugins) == 0 {
		return nil
	}
	var parts []string
	for _, plugin := range f.plugins {
		parts = append(parts, fmt.Sprintf("%s (%s)", plugin, strings.Join(f.points[plugin], ", ")))
	}
	return []string{heading + strings.Join(parts, ", ")}
}

// verbs returns the verbs of an extender.
func verbs(extender schedulerconfig.Extender) []string {
	var found []string
	for _, verb := range []struct {
		name, given string
		weight      int64
	}{
		{"filter", extender.FilterVerb, 0},
		{"prioritize", extender.PrioritizeVerb, extender.Weight},
		{"preempt", extender.PreemptVerb, 0},
		{"bind", extender.BindVerb, 0},
	} {
		if verb.given != "" {
			found = append(found, weighted(verb.name, verb.weight))
		}
	}
	if len(found) == 0 {
		return []string{"nothing, it has no verbs"}
	}
	return found
}

// notes returns notes about settings that a scheduler accepts but that are seldom intended.
func (s Start) notes(profiles profile.Map, defaults *schedulerconfig.Plugins) []string {
	var notes []string
	note := func(format string, args ...interface{}) { notes = append(notes, fmt.Sprintf("note: "+format, args...)) }
	if !profiles.HandlesSchedulerName(v1.DefaultSchedulerName) {
		note("no profile is named %s: pods that name no scheduler stay Pending, unless another scheduler of that name runs", v1.DefaultSchedulerName)
	}
	registry := s.registry()
	isDefault := sets.NewString(defaults.Names()...)
	for i, p := range s.Config.Profiles {
		path := field.NewPath("profiles").Index(i)
		for _, point := range extensionPoints {
			for _, plugin := range point.set(p.Plugins).Disabled {
				if _, found := registry[plugin.Name]; !found && plugin.Name != "*" {
					note("%s: this scheduler has no plugin of that name", path.Child("plugins", point.name, "disabled").Key(plugin.Name))
				}
			}
		}
		enabled := sets.NewString(profiles[p.SchedulerName].ListPlugins().Names()...)
		for j, pluginConfig := range p.PluginConfig {
			if _, found := registry[pluginConfig.Name]; !found {
				note("%s: this scheduler has no plugin named %s", path.Child("pluginConfig").Index(j), pluginConfig.Name)
			} else if !enabled.Has(pluginConfig.Name) && !isDefault.Has(pluginConfig.Name) {
				// Default plugins have args even if the file has none.
				note("%s: %s is not enabled in this profile", path.Child("pluginConfig").Index(j), pluginConfig.Name)
			}
		}
	}
	for i, extender := range s.Config.Extenders {
		if extender.EnableHTTPS && strings.HasPrefix(extender.URLPrefix, "http://") {
			note("extenders[%d].urlPrefix: begins with http://, so requests are not encrypted, even with enableHTTPS", i)
		}
		for _, missing := range dropMissingFiles(extender.DeepCopy()) {
			note("extenders[%d].tlsConfig.%s", i, missing)
		}
	}
	for i, p := range s.Config.Profiles {
		path := field.NewPath("profiles").Index(i)
		notes = append(notes, pointNotes(path, &p, profiles[p.SchedulerName].ListPlugins(), s.Config.Extenders)...)
		notes = append(notes, credentialNotes(path, &p)...)
		notes = append(notes, fitWarnings(path, &p)...)
	}
	notes = append(notes, restrictedNotes(s.Config.Profiles, func(profile string) *schedulerconfig.Plugins { return profiles[profile].ListPlugins() })...)
	notes = append(notes, s.documentNotes()...)
	notes = append(notes, s.multiPointNotes()...)
	return append(notes, s.kubeconfigNotes()...)
}

// fitWarnings returns warnings about args of NodeResourcesFit that the plugin rejects but a start accepts: upstream's
// table of validators lists this one under a name that is never looked up.
func fitWarnings(path *field.Path, p *schedulerconfig.KubeSchedulerProfile) []string {
	var warnings []string
	for i, pluginConfig := range p.PluginConfig {
		args, ok := pluginConfig.Args.(*schedulerconfig.NodeResourcesFitArgs)
		if !ok {
			continue
		}
		if err := validation.ValidateNodeResourcesFitArgs(path.Child("pluginConfig").Index(i).Child("args"), args); err != nil {
			for _, line := range lines(err) {
				warnings = append(warnings, fmt.Sprintf("warning: %s; the scheduler starts with it, because the profile disables the plugin, or "+
					"because ignoredResources are those of the extenders' managedResources; correct it", line))
			}
		}
	}
	return warnings
}

// multiPointNotes returns notes about multiPoint in v1beta2, which drops its content. Therefore it reads the file
// again.
func (s Start) multiPointNotes() []string {
	data, err := os.ReadFile(s.ConfigFile)
	var given v1beta2.KubeSchedulerConfiguration
	if s.Config.APIVersion != v1beta2.SchemeGroupVersion.String() || err != nil || yaml.Unmarshal(data, &given) != nil {
		return nil
	}
	var notes []string
	for i, p := range given.Profiles {
		if p.Plugins != nil && len(p.Plugins.MultiPoint.Enabled)+len(p.Plugins.MultiPoint.Disabled) > 0 {
			notes = append(notes, fmt.Sprintf("note: %s: v1beta2 ignores this field; list the extension points, or convert the file to v1beta3",
				field.NewPath("profiles").Index(i).Child("plugins", "multiPoint")))
		}
	}
	return notes
}

func (s Start) kubeconfigNotes() []string {
	var notes []string
	if s.ConfigFile != "" && s.KubeconfigFlag != "" {
		notes = append(notes, "note: with --config, the flag --kubeconfig is ignored; set clientConnection.kubeconfig")
	}
	switch kubeconfig := s.Config.ClientConnection.Kubeconfig; {
	case kubeconfig == "" && s.Master != "":
	case kubeconfig == "":
		notes = append(notes, "note: clientConnection.kubeconfig is not set: the scheduler finds the API server only if it runs in a pod of the cluster "+
			"that has a service account's token, or with --master")
	default:
		if _, err := os.Stat(kubeconfig); err != nil {
			notes = append(notes, fmt.Sprintf("note: clientConnection.kubeconfig is not to be found on this machine: %v", err))
		}
	}
	return notes
}
