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
	// setting is the name of the setting, and given reports whether the args have it. Both are absent if the plugin always
	// has the need.
	setting string
	given   func(args runtime.Object) bool
	// wrong reports whether pods are placed against the setting, or not at all, without the point. Otherwise the setting
	// only has no effect, or less.
	wrong     bool
	otherwise string
}

// needs are those of all plugins in the image, ours and those of other projects, except Overcommit's, which are in
// ValidateProfile because they concern a second plugin. A plugin with one extension point needs no row.
var needs = []need{
	{"CapacityScheduling", "preFilter", "", "", nil, true, "no pod is limited by its quota"},
	{"CapacityScheduling", "reserve", "", "", nil, true, "pods that are being bound together exceed a quota"},
	{"CapacityScheduling", "postFilter", "", "", nil, false, "lent resources are not reclaimed"},
	{"Chaos", "preFilter", "", "rejectPercent", rejects, false, "it rejects nothing"},
	{"Chaos", "filter", "", "rejectPercent", rejects, false, "it rejects nothing"},
	{"Chaos", "score", "", "randomScore", scoresAtRandom, false, "it scores nothing"},
	{"Chaos", "score", "", "randomBindPercent", redirects, false, "it redirects nothing"},
	{"Coscheduling", "filter", "", "", nil, true, "the later pods of a gang leave its required topology"},
	{"Coscheduling", "reserve", "", "", nil, false, "a gang is taken for incomplete while its pods are being bound"},
	{"Coscheduling", "postBind", "", "", nil, false, "the status of PodGroups is not set"},
	{"DataLocality", "filter", "", "requireWithin", requireWithin, true, "pods run outside that level"},
	{"DataLocality", "preFilter", "filter", "requireWithin", requireWithin, true, "no pod is scheduled"},
	{"DataLocality", "preScore", "score", "", nil, true, "no pod is scheduled"},
	{"MyScorePlugin", "score", "", "preferredValues", nil, false, "they prefer nothing"},
	{"NodeCost", "score", "", "", nil, false, "it prefers nothing"},
	{"NodeFilter", "filter", "", "the action Deny", denies, true, "it denies nothing"},
	{"NodeFilter", "filter", "", "the action Share with DoNotSchedule", shares(v1.DoNotSchedule), true, "it limits nothing"},
	{"NodeFilter", "score", "", "the action Share with ScheduleAnyway", shares(v1.ScheduleAnyway, ""), false, "it prefers nothing"},
	{"NodeFilter", "preFilter", "", "the action Share", shares(v1.DoNotSchedule, v1.ScheduleAnyway, ""), true,
		"its pods are not scheduled, because nothing is counted"},
	{"NodeFilter", "score", "", "the action Prefer", prefers, false, "it prefers nothing"},
	// At preScore alone, NodeLoad only shows the loads.
	{"NodeLoad", "filter", "score", "a threshold", thresholds, true, "nodes take pods above it"},
	{"NodeLoad", "preFilter", "filter", "lowerPriorityLoad: Preemptible", preemptible, false, "preemption cools no node"},
	{"NodeResourceTopologyMatch", "filter", "", "", nil, false, "kubelets refuse pods that fit no zone"},
	{"RunningImageLocality", "score", "", "", nil, false, "it prefers nothing"},
	{"WorkloadTopology", "filter", "", "maxPerNode", maxOfWorkload, true, "nothing is rejected"},
	{"WorkloadTopology", "preFilter", "filter", "maxPerNode", maxOfWorkload, false, "preemption makes no room for it"},
	{"WorkloadTopology", "score", "", "edges", edges, false, "they prefer nothing"},
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
		if !enabled(n.plugin, n.with) || at(n.plugin, n.point) || n.given != nil && !n.given(args[n.plugin]) {
			continue
		}
		if n.wrong {
			why := "it is enabled at other points"
			if n.setting != "" {
				why = "it has " + n.setting
			}
			errs = append(errs, field.Required(path.Child("plugins", n.point, "enabled"),
				fmt.Sprintf("{name: %s}: %s, and otherwise %s", n.plugin, why, n.otherwise)))
			continue
		}
		has := " is enabled at other points, but not at "
		if n.setting != "" {
			has = " has " + n.setting + " and is not enabled at "
		}
		notes = append(notes, fmt.Sprintf("%s: %s%s%s: %s", path, n.plugin, has, n.point, n.otherwise))
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
	return contains(at.Enabled, name) || contains(plugins.MultiPoint.Enabled, name) && !contains(at.Disabled, name) && !contains(at.Disabled, "*")
}

func contains(plugins []schedulerconfig.Plugin, name string) bool {
	for _, plugin := range plugins {
		if plugin.Name == name {
			return true
		}
	}
	return false
}

func rejects(object runtime.Object) bool {
	args, is := object.(*config.ChaosArgs)
	return is && args.RejectPercent > 0
}

func scoresAtRandom(object runtime.Object) bool {
	args, is := object.(*config.ChaosArgs)
	return is && args.RandomScore
}

func redirects(object runtime.Object) bool {
	args, is := object.(*config.ChaosArgs)
	return is && args.RandomBindPercent > 0
}

func requireWithin(object runtime.Object) bool {
	args, is := object.(*config.DataLocalityArgs)
	return is && args.RequireWithin != ""
}

// ruleOf returns a function that reports whether a rule of NodeFilter meets a condition.
func ruleOf(meets func(*config.NodeFilterRule) bool) func(runtime.Object) bool {
	return func(object runtime.Object) bool {
		args, is := object.(*config.NodeFilterArgs)
		for i := 0; is && i < len(args.Rules); i++ {
			if meets(&args.Rules[i]) {
				return true
			}
		}
		return false
	}
}

// denies reports whether a rule, or the default action, denies nodes.
func denies(object runtime.Object) bool {
	args, is := object.(*config.NodeFilterArgs)
	return is && args.DefaultAction == config.FilterDeny ||
		ruleOf(func(rule *config.NodeFilterRule) bool { return rule.Action == config.FilterDeny })(object)
}

func prefers(object runtime.Object) bool {
	return ruleOf(func(rule *config.NodeFilterRule) bool { return rule.Action == config.FilterPrefer })(object)
}

func shares(when ...v1.UnsatisfiableConstraintAction) func(runtime.Object) bool {
	return ruleOf(func(rule *config.NodeFilterRule) bool {
		for _, action := range when {
			if rule.Action == config.FilterShare && rule.WhenUnsatisfiable == action {
				return true
			}
		}
		return false
	})
}

func thresholds(object runtime.Object) bool {
	args, is := object.(*config.NodeLoadArgs)
	for i := 0; is && i < len(args.Resources); i++ {
		if args.Resources[i].Threshold != nil {
			return true
		}
	}
	return false
}

func preemptible(object runtime.Object) bool {
	args, is := object.(*config.NodeLoadArgs)
	return is && args.LowerPriorityLoad == config.NodeLoadLowerPriorityPreemptible
}

func maxOfWorkload(object runtime.Object) bool {
	args, is := object.(*config.WorkloadTopologyArgs)
	return is && args.MaxPerNode != nil
}

func edges(object runtime.Object) bool {
	args, is := object.(*config.WorkloadTopologyArgs)
	return is && len(args.Edges) > 0
}
