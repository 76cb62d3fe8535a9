// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// chaos is the plugin that has work at one extension point only if it is enabled at others, too.
const chaos = "Chaos"

// pointNotes are about plugins that are enabled where they are never called, or have nothing to do.
func pointNotes(path *field.Path, p *schedulerconfig.KubeSchedulerProfile, plugins *schedulerconfig.Plugins,
	extenders []schedulerconfig.Extender) []string {
	var notes []string
	for _, plugin := range behindDefaultBinder(plugins) {
		// Without the "*", a default plugin keeps its place before those that multiPoint does not name.
		notes = append(notes, fmt.Sprintf("note: %s: %s is enabled at bind behind %s, which binds every pod: name %s and then %s under bind.enabled, and \"*\" under bind.disabled",
			path, plugin, names.DefaultBinder, plugin, names.DefaultBinder))
	}
	args := chaosArgs(p)
	if args == nil {
		return notes
	}
	points := sets.NewString()
	for _, point := range extensionPoints {
		if _, found := weights(point, plugins)[chaos]; found {
			points.Insert(point.name)
		}
	}
	notes = append(notes, chaosNotes(path, args, points)...)
	var weight, others int64
	for _, plugin := range plugins.Score.Enabled {
		if plugin.Name == chaos {
			weight = int64(plugin.Weight)
		} else {
			others += int64(plugin.Weight)
		}
	}
	for _, extender := range extenders {
		// Its points, 0 to 10, are counted as 0 to 100.
		if extender.PrioritizeVerb != "" {
			others += extender.Weight
		}
	}
	if args.RandomBindPercent > 0 && points.Has("score") && weight <= others {
		notes = append(notes, fmt.Sprintf("note: %s: %s has randomBindPercent, and with weight %d at score other plugins and extenders may outweigh the node that it draws: give it more than %d",
			path, chaos, weight, others))
	}
	return notes
}

// behindDefaultBinder returns the plugins that come at bind after the one that leaves no pod to others.
func behindDefaultBinder(plugins *schedulerconfig.Plugins) []string {
	for i, plugin := range plugins.Bind.Enabled {
		if plugin.Name != names.DefaultBinder {
			continue
		}
		var behind []string
		for _, plugin := range plugins.Bind.Enabled[i+1:] {
			behind = append(behind, plugin.Name)
		}
		return behind
	}
	return nil
}

// chaosArgs returns the args of Chaos; nil if the profile has none.
func chaosArgs(p *schedulerconfig.KubeSchedulerProfile) *config.ChaosArgs {
	for _, pluginConfig := range p.PluginConfig {
		if args, ok := pluginConfig.Args.(*config.ChaosArgs); ok && pluginConfig.Name == chaos {
			return args
		}
	}
	return nil
}

// chaosNotes say what Chaos is asked to do and does not, because it is enabled at some extension points alone: the
// coins are thrown at preFilter.
func chaosNotes(path *field.Path, args *config.ChaosArgs, points sets.String) []string {
	if points.Len() == 0 {
		return nil
	}
	var notes []string
	for _, work := range []struct {
		argument string
		given    bool
		needs    []string
		then     string
	}{
		{"rejectPercent", args.RejectPercent > 0, []string{"preFilter", "filter"}, "rejects nothing"},
		{"randomScore", args.RandomScore, []string{"score"}, "scores nothing"},
		{"maxPermitDelay", args.MaxPermitDelay.Duration > 0, []string{"permit"}, "delays nothing"},
		{"randomBindPercent", args.RandomBindPercent > 0, []string{"score"}, "redirects nothing"},
	} {
		for _, point := range work.needs {
			if work.given && !points.Has(point) {
				notes = append(notes, fmt.Sprintf("note: %s: %s has %s and is not enabled at %s: it %s", path, chaos, work.argument, point, work.then))
			}
		}
	}
	return notes
}
