// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulervalidation "k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// These plugins have notes of their own.
const (
	chaos            = "Chaos"
	nodeFilter       = "NodeFilter"
	nodeLoad         = "NodeLoad"
	workloadTopology = "WorkloadTopology"
)

// notes returns notes about plugins that have no effect at an extension point, and about args that are seldom intended.
func (p checkedProfile) notes(extenders []schedulerconfig.Extender) []string {
	var notes []string
	behind := false
	for _, plugin := range p.enabled.Bind.Enabled {
		if behind {
			// Without disabling "*", a default plugin comes before those that multiPoint does not name.
			notes = append(notes, fmt.Sprintf("note: %s: %s is enabled at bind after %s, which binds every pod: list %s and then %s under bind.enabled, and \"*\" under bind.disabled",
				p.path, plugin.Name, names.DefaultBinder, plugin.Name, names.DefaultBinder))
		}
		behind = behind || plugin.Name == names.DefaultBinder
	}
	_, without := validation.Points(p.path, p.KubeSchedulerProfile)
	for _, note := range without {
		notes = append(notes, "note: "+note)
	}
	for i, pluginConfig := range p.PluginConfig {
		path := p.path.Child("pluginConfig").Index(i).Child("args")
		switch args := pluginConfig.Args.(type) {
		case *config.ChaosArgs:
			notes = append(notes, p.chaosNotes(args, extenders)...)
		case *config.NodeFilterArgs:
			notes = append(notes, p.nodeFilterNotes(args)...)
		case *config.NodeLoadArgs:
			notes = append(notes, credentialNotes(path.Child("prometheus"), &args.Prometheus)...)
			notes = append(notes, matcherNotes(path.Child("prometheus", "matchers"), args)...)
		case *config.OvercommitArgs:
			notes = append(notes, credentialNotes(path.Child("prometheus"), &args.Prometheus)...)
		case *config.WorkloadTopologyArgs:
			notes = append(notes, p.workloadTopologyNotes(args)...)
		case *schedulerconfig.NodeResourcesFitArgs:
			notes = append(notes, fitWarnings(path, args)...)
		}
	}
	return notes
}

// points returns the extension points at which a plugin is enabled.
func (p checkedProfile) points(plugin string) sets.String {
	points := sets.NewString()
	for _, point := range extensionPoints(p.enabled) {
		if _, found := point.weights()[plugin]; found {
			points.Insert(point.name)
		}
	}
	return points
}

// chaosNotes returns a note if the weight of Chaos leaves its args without effect.
func (p checkedProfile) chaosNotes(args *config.ChaosArgs, extenders []schedulerconfig.Extender) []string {
	var notes []string
	var weight, total int64
	for _, plugin := range p.enabled.Score.Enabled {
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
	if args.RandomBindPercent > 0 && weight > 0 && weight <= total {
		notes = append(notes, fmt.Sprintf("note: %s: %s has randomBindPercent, and with weight %d at score other plugins and extenders may outweigh its random node: give it more than %d",
			p.path, chaos, weight, total))
	}
	return notes
}

// nodeFilterNotes returns notes about rules of NodeFilter that depend on labels that a kubelet may set, and about rules
// that allow nodes by restricted labels, while no later rule denies the other nodes.
func (p checkedProfile) nodeFilterNotes(args *config.NodeFilterArgs) []string {
	var notes, unsafe, open, changed []string
	for i := range args.Rules {
		rule := &args.Rules[i]
		pull := rule.Action == config.FilterShare && rule.WhenUnsatisfiable != v1.DoNotSchedule
		if pull && rule.WhenUnsatisfiable == "" {
			changed = append(changed, rule.Name)
		}
		keys := validation.KubeletLabels(rule.NodeSelector)
		if rule.Action != config.FilterPrefer && !pull && len(keys) > 0 {
			unsafe = append(unsafe, fmt.Sprintf("%s (%s)", rule.Name, strings.Join(keys, ", ")))
		}
		switch {
		case rule.Action == config.FilterDeny:
			open = nil // It is not checked whether the rule concerns the same pods.
		case rule.Action == config.FilterAllow && rule.RestrictedLabels:
			open = append(open, rule.Name)
		}
	}
	if len(changed) > 0 {
		notes = append(notes, fmt.Sprintf("note: %s: rules of %s with the action Share have no whenUnsatisfiable: %s; this has changed: they rejected nodes before, "+
			"and only prefer nodes now; set whenUnsatisfiable to %s, or to %s to reject nodes again", p.path, nodeFilter, strings.Join(changed, ", "), v1.ScheduleAnyway, v1.DoNotSchedule))
	}
	if !p.points(nodeFilter).Has("filter") {
		return notes
	}
	if len(unsafe) > 0 {
		notes = append(notes, fmt.Sprintf("note: %s: rules of %s keep pods off nodes by labels that a kubelet can set on its own node: %s; where a node must not be able to, use labels of %s/ and restrictedLabels",
			p.path, nodeFilter, strings.Join(unsafe, ", "), v1.LabelNamespaceNodeRestriction))
	}
	if len(open) > 0 && args.DefaultAction != config.FilterDeny {
		notes = append(notes, fmt.Sprintf("note: %s: rules of %s allow nodes by restrictedLabels, but nothing after them denies the others: %s; add a rule with the action Deny, or defaultAction: Deny",
			p.path, nodeFilter, strings.Join(open, ", ")))
	}
	return notes
}

// restrictedNotes returns a note if only some profiles have rules with restrictedLabels, because pods choose their
// profile.
func restrictedNotes(profiles []checkedProfile) []string {
	var with, without []string
	for _, p := range profiles {
		restricted := false
		for _, pluginConfig := range p.PluginConfig {
			args, ok := pluginConfig.Args.(*config.NodeFilterArgs)
			for i := 0; ok && i < len(args.Rules); i++ {
				restricted = restricted || args.Rules[i].RestrictedLabels
			}
		}
		if !p.points(nodeFilter).Has("filter") {
			without = append(without, p.SchedulerName)
		} else if restricted {
			with = append(with, p.SchedulerName)
		}
	}
	if len(with) == 0 || len(without) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("note: rules of %s with restrictedLabels are in the profiles %s, and it is not enabled at filter in %s: pods choose their profile, and can avoid the rules",
		nodeFilter, strings.Join(with, ", "), strings.Join(without, ", "))}
}

// matcherNotes returns a note about the resources whose queries the matchers do not change.
func matcherNotes(path *field.Path, args *config.NodeLoadArgs) []string {
	var own []string
	for i := range args.Resources {
		if args.Resources[i].Query != "" || args.Resources[i].PodQuery != "" {
			own = append(own, args.Resources[i].Name)
		}
	}
	if len(args.Prometheus.Matchers) == 0 || len(own) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("note: %s: they do not change the queries in resources, of %s: "+
		"write the matchers there, too", path, strings.Join(own, ", "))}
}

// workloadTopologyNotes returns notes about args of WorkloadTopology that need NodeLoad, or that concern few pods.
func (p checkedProfile) workloadTopologyNotes(args *config.WorkloadTopologyArgs) []string {
	var notes []string
	points := p.points(workloadTopology)
	if args.AvoidAbove != nil && points.Len() > 0 && !p.points(nodeLoad).HasAny("preFilter", "filter", "preScore") {
		notes = append(notes, fmt.Sprintf("note: %s: %s has avoidAbove and %s is not enabled before score: the load of nodes is not known in time",
			p.path, workloadTopology, nodeLoad))
	}
	if points.Len() > 0 && args.PodSelector == nil && len(args.Namespaces) == 0 {
		notes = append(notes, fmt.Sprintf("note: %s: %s has no podSelector and no namespaces: it concerns only pods with the annotation workload-topology.scheduler/job",
			p.path, workloadTopology))
	}
	return notes
}

// fitWarnings returns warnings about args of NodeResourcesFit that the plugin rejects but a start accepts: upstream's
// table of validators lists this one under a name that is never looked up.
func fitWarnings(path *field.Path, args *schedulerconfig.NodeResourcesFitArgs) []string {
	err := schedulervalidation.ValidateNodeResourcesFitArgs(path, args)
	if err == nil {
		return nil
	}
	var warnings []string
	for _, line := range Lines(err) {
		warnings = append(warnings, fmt.Sprintf("warning: %s; the scheduler starts with it, because the profile disables the plugin, or "+
			"because ignoredResources are those of the extenders' managedResources; correct it", line))
	}
	return warnings
}
