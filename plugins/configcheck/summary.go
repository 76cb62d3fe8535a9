// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"fmt"
	"reflect"
	"strings"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/extendernodes"
)

// extensionPoint is a list of plugins in a profile.
type extensionPoint struct {
	name string
	schedulerconfig.PluginSet
}

// extensionPoints returns the lists of a profile in the order in which they are called. The last, multiPoint, is not an
// extension point: it enables a plugin at all of its points.
func extensionPoints(plugins *schedulerconfig.Plugins) []extensionPoint {
	var points []extensionPoint
	value := reflect.ValueOf(*plugins)
	for i := 0; i < value.NumField(); i++ {
		name := value.Type().Field(i).Name
		set := value.Field(i).Interface().(schedulerconfig.PluginSet)
		points = append(points, extensionPoint{strings.ToLower(name[:1]) + name[1:], set})
	}
	return points
}

// weights returns the weights of the enabled plugins, which are 0 except at score.
func (e extensionPoint) weights() map[string]int32 {
	weights := map[string]int32{}
	for _, plugin := range e.Enabled {
		weights[plugin.Name] = plugin.Weight
	}
	return weights
}

// summary returns lines with the differences of each profile from the default one, and with the verbs of each extender.
func (c *checked) summary() []string {
	var summary []string
	for _, p := range c.profiles {
		differences := difference(c.defaults, p.enabled)
		if len(differences) == 0 {
			summary = append(summary, fmt.Sprintf("profile %s: the default plugins", p.SchedulerName))
			continue
		}
		summary = append(summary, fmt.Sprintf("profile %s: the default plugins with these changes", p.SchedulerName))
		summary = append(summary, differences...)
	}
	for _, extender := range c.Config.Extenders {
		summary = append(summary, fmt.Sprintf("extender %s: %s", extendernodes.WithoutCredentials(extender.URLPrefix), strings.Join(verbs(extender), ", ")))
	}
	return summary
}

// difference returns lines with the plugins that were added, left out, and given another weight. Score plugins are
// shown with their weight.
func difference(before, after *schedulerconfig.Plugins) []string {
	var added, leftOut, changed []change
	current := extensionPoints(after)
	for i, old := range extensionPoints(before) {
		point := current[i].name
		oldWeights, weights := old.weights(), current[i].weights()
		for _, plugin := range current[i].Enabled {
			now := weighted(point, int64(plugin.Weight))
			if weight, found := oldWeights[plugin.Name]; !found {
				added = append(added, change{plugin.Name, now})
			} else if weight != plugin.Weight {
				changed = append(changed, change{plugin.Name, fmt.Sprintf("%s instead of %d", now, weight)})
			}
		}
		for _, plugin := range old.Enabled {
			if _, found := weights[plugin.Name]; !found {
				leftOut = append(leftOut, change{plugin.Name, point})
			}
		}
	}
	changes := append(line("  added:    ", added), line("  left out: ", leftOut)...)
	return append(changes, line("  changed:  ", changed)...)
}

func weighted(what string, weight int64) string {
	if weight == 0 {
		return what
	}
	return fmt.Sprintf("%s with weight %d", what, weight)
}

// change is a plugin that differs at an extension point.
type change struct{ plugin, point string }

// line returns a line with all changes, if there are any. Each plugin is listed once.
func line(heading string, changes []change) []string {
	var plugins []string
	points := map[string][]string{}
	for _, change := range changes {
		if points[change.plugin] == nil {
			plugins = append(plugins, change.plugin)
		}
		points[change.plugin] = append(points[change.plugin], change.point)
	}
	for i, plugin := range plugins {
		plugins[i] = fmt.Sprintf("%s (%s)", plugin, strings.Join(points[plugin], ", "))
	}
	if len(plugins) == 0 {
		return nil
	}
	return []string{heading + strings.Join(plugins, ", ")}
}

// verbs returns the verbs of an extender.
func verbs(extender schedulerconfig.Extender) []string {
	var found []string
	for _, verb := range []struct{ shown, given string }{
		{"filter", extender.FilterVerb},
		{weighted("prioritize", extender.Weight), extender.PrioritizeVerb},
		{"preempt", extender.PreemptVerb},
		{"bind", extender.BindVerb},
	} {
		if verb.given != "" {
			found = append(found, verb.shown)
		}
	}
	if len(found) == 0 {
		return []string{"nothing, it has no verbs"}
	}
	return found
}
