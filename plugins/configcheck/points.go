// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// These plugins must be enabled at several extension points, or together with another plugin.
const (
	chaos            = "Chaos"
	nodeFilter       = "NodeFilter"
	nodeLoad         = "NodeLoad"
	workloadTopology = "WorkloadTopology"
)

// pointNotes returns notes about plugins that are never called at an extension point, or have no effect there.
func pointNotes(path *field.Path, p *schedulerconfig.KubeSchedulerProfile, plugins *schedulerconfig.Plugins,
	extenders []schedulerconfig.Extender) []string {
	var notes []string
	for _, plugin := range behindDefaultBinder(plugins) {
		// Without disabling "*", a default plugin comes before those that multiPoint does not name.
		notes = append(notes, fmt.Sprintf("note: %s: %s is enabled at bind after %s, which binds every pod: list %s and then %s under bind.enabled, and \"*\" under bind.disabled",
			path, plugin, names.DefaultBinder, plugin, names.DefaultBinder))
	}
	if args, ok := argsOf(nodeFilter, p).(*config.NodeFilterArgs); ok {
		notes = append(notes, nodeFilterNotes(path, args, pointsOf(nodeFilter, plugins))...)
	}
	notes = append(notes, workloadTopologyNotes(path, p, plugins)...)
	args, ok := argsOf(chaos, p).(*config.ChaosArgs)
	if !ok {
		return notes
	}
	points := pointsOf(chaos, plugins)
	notes = append(notes, chaosNotes(path, args, points)...)
	var weight, total int64
	for _, plugin := range plugins.Score.Enabled {
		if plugin.Name == chaos {
			weight = int64(plugin.Weight)
		} else {
			total += int64(plugin.Weight)
		}
	}
	for _, extender := range extenders {
		// Its scores, 0 to 10, are scaled to 0 to 100.
		if extender.PrioritizeVerb != "" {
			total += extender.Weight
		}
	}
	if args.RandomBindPercent > 0 && points.Has("score") && weight <= total {
		notes = append(notes, fmt.Sprintf("note: %s: %s has randomBindPercent, and with weight %d at score other plugins and extenders may outweigh its random node: give it more than %d",
			path, chaos, weight, total))
	}
	return notes
}

// pointsOf returns the extension points at which a plugin is enabled.
func pointsOf(plugin string, plugins *schedulerconfig.Plugins) sets.String {
	points := sets.NewString()
	for _, point := range extensionPoints {
		if _, found := weights(point, plugins)[plugin]; found {
			points.Insert(point.name)
		}
	}
	return points
}

// argsOf returns the args of a plugin, or nil if the profile has none.
func argsOf(plugin string, p *schedulerconfig.KubeSchedulerProfile) runtime.Object {
	for _, pluginConfig := range p.PluginConfig {
		if pluginConfig.Name == plugin {
			return pluginConfig.Args
		}
	}
	return nil
}

// behindDefaultBinder returns the plugins at bind that come after DefaultBinder, which binds every pod.
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

// chaosNotes returns notes about args of Chaos without effect, because it is not enabled at the extension points that
// they need. The nodes that filter rejects are chosen at preFilter.
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

// nodeFilterNotes returns notes about rules of NodeFilter without effect, because it is not enabled at the extension
// points that they need; about rules that depend on labels that a kubelet may set; and about rules that allow nodes by
// restricted labels, while no later rule denies the other nodes.
func nodeFilterNotes(path *field.Path, args *config.NodeFilterArgs, points sets.String) []string {
	if points.Len() == 0 {
		return nil
	}
	rules := map[config.FilterAction]int{}
	var unsafe, open []string
	for i := range args.Rules {
		rule := &args.Rules[i]
		rules[rule.Action]++
		keys := validation.KubeletLabels(rule.NodeSelector)
		if rule.Action != config.FilterPrefer && len(keys) > 0 {
			unsafe = append(unsafe, fmt.Sprintf("%s (%s)", rule.Name, strings.Join(keys, ", ")))
		}
		switch {
		case rule.Action == config.FilterDeny:
			open = nil // It is not checked whether the rule concerns the same pods.
		case rule.Action == config.FilterAllow && rule.RestrictedLabels:
			open = append(open, rule.Name)
		}
	}
	var notes []string
	for _, work := range []struct {
		action      config.FilterAction
		point, then string
	}{
		{config.FilterDeny, "filter", "they deny nothing"},
		{config.FilterShare, "filter", "they limit nothing"},
		{config.FilterShare, "preFilter", "their pods are not scheduled, because nothing is counted"},
		{config.FilterPrefer, "score", "they prefer nothing"},
	} {
		if rules[work.action] > 0 && !points.Has(work.point) {
			notes = append(notes, fmt.Sprintf("note: %s: %s has rules with the action %s and is not enabled at %s: %s",
				path, nodeFilter, work.action, work.point, work.then))
		}
	}
	if len(unsafe) > 0 && points.Has("filter") {
		notes = append(notes, fmt.Sprintf("note: %s: rules of %s keep pods off nodes by labels that a kubelet can set on its own node: %s; where a node must not be able to, use labels of %s/ and restrictedLabels",
			path, nodeFilter, strings.Join(unsafe, ", "), v1.LabelNamespaceNodeRestriction))
	}
	if len(open) > 0 && args.DefaultAction != config.FilterDeny && points.Has("filter") {
		notes = append(notes, fmt.Sprintf("note: %s: rules of %s allow nodes by restrictedLabels, but nothing after them denies the others: %s; add a rule with the action Deny, or defaultAction: Deny",
			path, nodeFilter, strings.Join(open, ", ")))
	}
	return notes
}

// restrictedNotes returns a note if only some profiles have rules with restrictedLabels, because pods choose their
// profile.
func restrictedNotes(profiles []schedulerconfig.KubeSchedulerProfile, pluginsOf func(profile string) *schedulerconfig.Plugins) []string {
	var with, without []string
	for i := range profiles {
		p := &profiles[i]
		if !pointsOf(nodeFilter, pluginsOf(p.SchedulerName)).Has("filter") {
			without = append(without, p.SchedulerName)
		} else if args, ok := argsOf(nodeFilter, p).(*config.NodeFilterArgs); ok && hasRestrictedLabels(args) {
			with = append(with, p.SchedulerName)
		}
	}
	if len(with) == 0 || len(without) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("note: rules of %s with restrictedLabels are in the profiles %s, and it is not enabled at filter in %s: pods choose their profile, and can avoid the rules",
		nodeFilter, strings.Join(with, ", "), strings.Join(without, ", "))}
}

func hasRestrictedLabels(args *config.NodeFilterArgs) bool {
	for i := range args.Rules {
		if args.Rules[i].RestrictedLabels {
			return true
		}
	}
	return false
}

// workloadTopologyNotes returns notes about args of WorkloadTopology without effect.
func workloadTopologyNotes(path *field.Path, p *schedulerconfig.KubeSchedulerProfile, plugins *schedulerconfig.Plugins) []string {
	args, ok := argsOf(workloadTopology, p).(*config.WorkloadTopologyArgs)
	points := pointsOf(workloadTopology, plugins)
	if !ok || points.Len() == 0 {
		return nil
	}
	var notes []string
	if loads := pointsOf(nodeLoad, plugins); args.AvoidAbove != nil && !loads.HasAny("preFilter", "filter", "preScore") {
		notes = append(notes, fmt.Sprintf("note: %s: %s has avoidAbove and %s is not enabled before score: the load of nodes is not known in time", path, workloadTopology, nodeLoad))
	}
	within := false
	for i := range args.Edges {
		within = within || args.Edges[i].Within != ""
	}
	for _, work := range []struct {
		argument string
		given    bool
	}{{"maxPerNode", args.MaxPerNode != nil}, {"edges with within", within}} {
		if work.given && !points.Has("filter") {
			notes = append(notes, fmt.Sprintf("note: %s: %s has %s and is not enabled at filter: nothing is rejected", path, workloadTopology, work.argument))
		} else if work.given && !points.Has("preFilter") {
			notes = append(notes, fmt.Sprintf("note: %s: %s has %s and is not enabled at preFilter: preemption makes no room for it", path, workloadTopology, work.argument))
		}
	}
	return notes
}
