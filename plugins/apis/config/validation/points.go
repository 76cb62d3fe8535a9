// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// need is an extension point that a setting of a plugin needs.
type need struct {
	plugin, point string
	// with is another point: the need exists only if the plugin is enabled there. Empty: anywhere.
	with string
	// setting is in the args if has reports so. Empty: the plugin always has the need.
	setting string
	// wrong reports whether pods are placed against the setting, or not at all, without the point. Otherwise the setting
	// only has no effect, or less.
	wrong     bool
	otherwise string
}

// needs are those of all plugins in the image, ours and those of other projects, except Overcommit's, which are in
// ValidateProfile because they concern a second plugin. A plugin with one extension point needs no row.
var needs = []need{
	{"CapacityScheduling", "preFilter", "", "", true, "no pod is limited by its quota"},
	{"CapacityScheduling", "reserve", "", "", true, "pods that are being bound together exceed a quota"},
	{"CapacityScheduling", "postFilter", "", "", false, "lent resources are not reclaimed"},
	{"Chaos", "preFilter", "", "rejectPercent", false, "it rejects nothing"},
	{"Chaos", "filter", "", "rejectPercent", false, "it rejects nothing"},
	{"Chaos", "score", "", "randomScore", false, "it scores nothing"},
	{"Chaos", "score", "", "randomBindPercent", false, "it redirects nothing"},
	{"Coscheduling", "filter", "", "", true, "the later pods of a gang leave its required topology"},
	{"Coscheduling", "reserve", "", "", false, "a gang is taken for incomplete while its pods are being bound"},
	{"Coscheduling", "postBind", "", "", false, "the status of PodGroups is not set"},
	{"DataLocality", "filter", "", "requireWithin", true, "pods run outside that level"},
	{"DataLocality", "preFilter", "filter", "requireWithin", true, "no pod is scheduled"},
	{"DataLocality", "preScore", "score", "", true, "no pod is scheduled"},
	{"MyScorePlugin", "score", "", "", false, "it prefers nothing"},
	{"NodeCost", "score", "", "", false, "it prefers nothing"},
	{"NodeFilter", "filter", "", "the action Deny", true, "it denies nothing"},
	{"NodeFilter", "filter", "", "the action Share with DoNotSchedule", true, "it limits nothing"},
	{"NodeFilter", "score", "", "the action Share with ScheduleAnyway", false, "it prefers nothing"},
	{"NodeFilter", "preFilter", "", "the action Share", true,
		"its pods are not scheduled, because nothing is counted"},
	{"NodeFilter", "score", "", "the action Prefer", false, "it prefers nothing"},
	// At preScore alone, NodeLoad only shows the loads.
	{"NodeLoad", "filter", "score", "a threshold", true, "nodes take pods above it"},
	{"NodeLoad", "preFilter", "filter", "lowerPriorityLoad: Preemptible", false, "preemption cools no node"},
	{"NodeResourceTopologyMatch", "filter", "", "", false, "kubelets refuse pods that fit no zone"},
	{"RunningImageLocality", "score", "", "", false, "it prefers nothing"},
	{"WorkloadTopology", "filter", "", "maxPerNode", true, "nothing is rejected"},
	{"WorkloadTopology", "preFilter", "filter", "maxPerNode", false, "preemption makes no room for it"},
	{"WorkloadTopology", "score", "", "edges", false, "they prefer nothing"},
}

// replaced are the plugins that run at postFilter only where DefaultPreemption, before them, has found no victims.
var replaced = []string{"CapacityScheduling", "PreemptionToleration"}

// Points checks whether the plugins of a profile are enabled at the extension points that their settings need. It
// returns errors for pods that would be placed wrongly, and notes about settings without effect.
func Points(path *field.Path, profile *schedulerconfig.KubeSchedulerProfile) (errs []error, notes []string) {
	if profile.Plugins == nil {
		return nil, nil
	}
	sets, args := setsOf(profile.Plugins), map[string]runtime.Object{}
	for i := range profile.PluginConfig {
		args[profile.PluginConfig[i].Name] = profile.PluginConfig[i].Args
	}
	at := func(plugin, point string) bool { return runs(profile.Plugins, plugin, sets[point]) }
	enabled := func(plugin, with string) bool {
		for point := range sets {
			if (with == "" || with == point) && at(plugin, point) {
				return true
			}
		}
		return false
	}
	for _, n := range needs {
		if !enabled(n.plugin, n.with) || at(n.plugin, n.point) || n.setting != "" && !has(n.setting, args[n.plugin]) {
			continue
		}
		why := "is enabled at other points"
		if n.setting != "" {
			why = "has " + n.setting
		}
		if n.wrong {
			errs = append(errs, field.Required(path.Child("plugins", n.point, "enabled"),
				fmt.Sprintf("{name: %s}: it %s, and otherwise %s", n.plugin, why, n.otherwise)))
		} else {
			notes = append(notes, fmt.Sprintf("%s: %s %s and is not enabled at %s: %s", path, n.plugin, why, n.point, n.otherwise))
		}
	}
	for _, plugin := range replaced {
		if at(plugin, "postFilter") && at(names.DefaultPreemption, "postFilter") {
			notes = append(notes, fmt.Sprintf("%s: %s and %s are both enabled at postFilter: the first that finds victims evicts them; "+
				"list %[3]s under postFilter.disabled", path, plugin, names.DefaultPreemption))
		}
	}
	return errs, notes
}

// setsOf returns the lists of a profile's extension points, without multiPoint.
func setsOf(p *schedulerconfig.Plugins) map[string]schedulerconfig.PluginSet {
	return map[string]schedulerconfig.PluginSet{
		"queueSort": p.QueueSort, "preFilter": p.PreFilter, "filter": p.Filter, "postFilter": p.PostFilter, "preScore": p.PreScore,
		"score": p.Score, "reserve": p.Reserve, "permit": p.Permit, "preBind": p.PreBind, "bind": p.Bind, "postBind": p.PostBind,
	}
}

// runs reports whether a plugin that extends a point is enabled there. v1beta2 has no multiPoint: decoding drops it.
func runs(plugins *schedulerconfig.Plugins, name string, at schedulerconfig.PluginSet) bool {
	return contains(at.Enabled, name) ||
		contains(plugins.MultiPoint.Enabled, name) && !contains(at.Disabled, name) && !contains(at.Disabled, "*")
}

func contains(plugins []schedulerconfig.Plugin, name string) bool {
	for _, plugin := range plugins {
		if plugin.Name == name {
			return true
		}
	}
	return false
}

// has reports whether args have a setting of the needs.
func has(setting string, object runtime.Object) bool {
	settings := map[string]bool{}
	switch args := object.(type) {
	case *config.ChaosArgs:
		settings["rejectPercent"], settings["randomScore"] = args.RejectPercent > 0, args.RandomScore
		settings["randomBindPercent"] = args.RandomBindPercent > 0
	case *config.DataLocalityArgs:
		settings["requireWithin"] = args.RequireWithin != ""
	case *config.NodeFilterArgs:
		settings["the action Deny"] = args.DefaultAction == config.FilterDeny
		for i := range args.Rules {
			settings["the action "+string(args.Rules[i].Action)] = true
			if args.Rules[i].Action == config.FilterShare && args.Rules[i].WhenUnsatisfiable == v1.DoNotSchedule {
				settings["the action Share with DoNotSchedule"] = true
			} else if args.Rules[i].Action == config.FilterShare {
				settings["the action Share with ScheduleAnyway"] = true
			}
		}
	case *config.NodeLoadArgs:
		settings["lowerPriorityLoad: Preemptible"] = args.LowerPriorityLoad == config.NodeLoadLowerPriorityPreemptible
		for i := range args.Resources {
			settings["a threshold"] = settings["a threshold"] || args.Resources[i].Threshold != nil
		}
	case *config.WorkloadTopologyArgs:
		settings["maxPerNode"], settings["edges"] = args.MaxPerNode != nil, len(args.Edges) > 0
	}
	return settings[setting]
}
