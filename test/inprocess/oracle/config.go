// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"strings"
)

const (
	// plainConfig is the default configuration.
	plainConfig = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
)

// profileNames are the names of the profiles, from the first.
var profileNames = []string{"default-scheduler", "second-scheduler", "third-scheduler"}

// config returns a configuration, and stores its number of profiles in g.
func (g *generator) config() string {
	var b strings.Builder
	b.WriteString(plainConfig)
	if g.overcommits {
		// The first node to search for the next pod does not depend on the nodes that an overcommitting pod fits.
		b.WriteString("percentageOfNodesToScore: 100\n")
	} else if g.one(3) || g.roomy && g.one(2) {
		fmt.Fprintf(&b, "percentageOfNodesToScore: %d\n", 1+g.Intn(100))
	}
	if g.one(6) {
		b.WriteString("extenders:\n")
		for i := 1 + g.Intn(2); i > 0; i-- {
			g.extender(&b, i)
		}
	}
	b.WriteString("profiles:\n")
	g.profiles = 1
	for g.profiles < len(profileNames) && (g.one(4/g.profiles) || g.remembers && g.one(2)) {
		g.profiles++
	}
	for _, name := range profileNames[:g.profiles] {
		g.profile(&b, name)
	}
	g.inTurn = g.one(2)
	return b.String()
}

// extender writes one of the extenders that startExtenders serves. The extenders of a configuration have different
// URLs.
func (g *generator) extender(b *strings.Builder, number int) {
	name, ignorable := fmt.Sprintf("steady-%d", number), g.one(2)
	if number == 2 && g.one(2) {
		// An error of an extender that is not ignorable fails the pod.
		name, ignorable = "unsteady", !g.one(4)
	}
	fmt.Fprintf(b, "  - {urlPrefix: %s/%s, nodeCacheCapable: %v, ignorable: %v",
		extenderAddress, name, g.one(2), ignorable)
	if !g.one(3) {
		b.WriteString(", filterVerb: filter")
	}
	if !g.one(3) {
		fmt.Fprintf(b, ", prioritizeVerb: prioritize, weight: %d", 1+g.Intn(5))
	}
	if !g.one(3) {
		b.WriteString(", preemptVerb: preempt")
	}
	if number == 1 && g.one(3) {
		// A resource has only one manager.
		fmt.Fprintf(b, ", managedResources: [{name: example.com/gpu, ignoredByScheduler: %v}]", g.one(2))
	}
	b.WriteString("}\n")
}

// profile writes a profile; every second one only has a name.
func (g *generator) profile(b *strings.Builder, name string) {
	fmt.Fprintf(b, "  - schedulerName: %s\n", name)
	if g.one(2) && !g.overcommits {
		return
	}
	scores := []string{"NodeResourcesBalancedAllocation", "ImageLocality", "InterPodAffinity", "NodeResourcesFit",
		"NodeAffinity", "PodTopologySpread", "TaintToleration"}
	disabled, enabled := []string{}, []string{}
	for _, name := range scores {
		switch g.Intn(4) {
		case 0:
			disabled = append(disabled, fmt.Sprintf("{name: %s}", name))
		case 1:
			disabled = append(disabled, fmt.Sprintf("{name: %s}", name))
			enabled = append(enabled, fmt.Sprintf("{name: %s, weight: %d}", name, 1+g.Intn(20)))
		}
	}
	fmt.Fprintf(b, "    plugins:\n      score: {disabled: [%s], enabled: [%s]}\n",
		strings.Join(disabled, ", "), strings.Join(enabled, ", "))
	if g.overcommits {
		b.WriteString(overcommitEnabled)
	}
	filters := []string{"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
		"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity"}
	if g.remembers {
		b.WriteString("      multiPoint: {enabled: [{name: NodeFilter}]}\n")
	}
	if g.remembers && g.one(2) {
		// In another order, and some are not enabled.
		enabled := []string{"{name: NodeFilter}"}
		for _, i := range g.Perm(len(filters))[g.Intn(3):] {
			enabled = append(enabled, fmt.Sprintf("{name: %s}", filters[i]))
		}
		fmt.Fprintf(b, "      filter: {disabled: [{name: '*'}], enabled: [%s]}\n", strings.Join(enabled, ", "))
	} else if g.one(4) {
		fmt.Fprintf(b, "      filter: {disabled: [{name: %s}]}\n", g.of(filters...))
	}
	if g.one(12) {
		b.WriteString("      postFilter: {disabled: [{name: DefaultPreemption}]}\n")
	}
	b.WriteString("    pluginConfig:\n")
	if g.overcommits {
		b.WriteString(overcommitArgs)
	}
	arguments := func(plugin, format string, args ...interface{}) {
		fmt.Fprintf(b, "      - {name: %s, args: {%s}}\n", plugin, fmt.Sprintf(format, args...))
	}
	if g.remembers {
		arguments("NodeFilter", "rules: [{name: some, action: %s, nodeSelector: {matchLabels: {rack: '1'}}, "+
			"podSelector: {matchLabels: {app: web}}}, {name: better, action: Prefer, weight: 3, nodeNames: ['*1'], namespaces: [other]}]",
			g.of("Allow", "Deny", "Share, maxPercent: 50, whenUnsatisfiable: DoNotSchedule"))
	}
	arguments("DefaultPreemption", "minCandidateNodesPercentage: %d, minCandidateNodesAbsolute: %d",
		g.Intn(50), 1+g.Intn(5))
	arguments("InterPodAffinity", "hardPodAffinityWeight: %d", g.Intn(101))
	arguments("NodeResourcesFit", "%s", g.fit())
	switch g.Intn(4) {
	case 0:
		arguments("NodeAffinity", "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
			"{nodeSelectorTerms: [{matchExpressions: [%s]}]}}",
			g.of("{key: disk, operator: Exists}", "{key: rack, operator: NotIn, values: ['1']}"))
	case 1:
		arguments("NodeAffinity", "addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "+
			"[{weight: %d, preference: {matchExpressions: [{key: disk, operator: In, values: [%s]}]}}]}",
			1+g.Intn(50), g.of("ssd", "hdd"))
	}
	switch g.Intn(4) {
	case 0:
		arguments("PodTopologySpread", "defaultingType: System")
	case 1:
		arguments("PodTopologySpread", "defaultingType: List")
	case 2:
		var constraints []string
		for _, i := range g.Perm(len(keys))[:1+g.Intn(3)] {
			constraints = append(constraints, fmt.Sprintf("{maxSkew: %d, topologyKey: %s, whenUnsatisfiable: %s}",
				1+g.Intn(3), keys[i], g.of("ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule")))
		}
		arguments("PodTopologySpread", "defaultingType: List, defaultConstraints: [%s]",
			strings.Join(constraints, ", "))
	}
}

// fit returns arguments for NodeResourcesFit.
func (g *generator) fit() string {
	strategy := g.of("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
	// BalancedAllocation keeps its two resources, because it adds floats in the order of a map.
	resources := g.of("{name: cpu, weight: 1}", "{name: cpu, weight: 2}, {name: memory, weight: 1}",
		"{name: memory, weight: 1}, {name: example.com/gpu, weight: 3}")
	shape := ""
	if strategy == "RequestedToCapacityRatio" {
		point := "{utilization: %d, score: %d}"
		shape = fmt.Sprintf(", requestedToCapacityRatio: {shape: ["+point+", "+point+", "+point+"]}",
			0, g.Intn(11), 1+g.Intn(98), g.Intn(11), 100, g.Intn(11))
	}
	ignored := ""
	if g.one(3) {
		ignored = g.of(", ignoredResources: [example.com/gpu]", ", ignoredResourceGroups: [example.com]")
	}
	if g.overcommits {
		ignored = ", ignoredResourceGroups: [" + g.of("", "example.com, ") + "overcommit.scheduler]"
	}
	return fmt.Sprintf("scoringStrategy: {type: %s, resources: [%s]%s}%s", strategy, resources, shape, ignored)
}
