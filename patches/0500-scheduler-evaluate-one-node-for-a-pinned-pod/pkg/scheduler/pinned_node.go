// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// A pod of a DaemonSet names its node in its affinity, and NodeAffinity rejects all others. Filtering that one node
// is therefore enough. If it fits, the result equals that of a search over all nodes, including the start index of
// the next search: a search over every node ends where it began. If it does not fit, the search over all nodes
// collects the reasons, as in stock.

// evaluatePinnedNode returns the only node that can fit the pod, if it is known before any filter has run and it
// fits.
func (g *genericScheduler) evaluatePinnedNode(ctx context.Context, extenders []framework.Extender, pod *v1.Pod,
	fwk framework.Framework, state *framework.CycleState) []*v1.Node {
	name := pinnedNodeName(pod)
	if name == "" || !g.filtersByNodeAffinity(fwk) {
		return nil
	}
	for _, extender := range extenders {
		// The extender's answer may depend on the nodes that it does not get.
		if extender.IsInterested(pod) {
			return nil
		}
	}
	nodeInfo, err := g.nodeInfoSnapshot.Get(name)
	if err != nil {
		return nil
	}
	began := time.Now()
	if !fwk.RunFilterPluginsWithNominatedPods(ctx, state, pod, nodeInfo).IsSuccess() {
		return nil
	}
	// As the search over all nodes, which otherwise follows, measures itself.
	metrics.FrameworkExtensionPointDuration.WithLabelValues(frameworkruntime.Filter, framework.Success.String(), fwk.ProfileName()).
		Observe(metrics.SinceInSeconds(began))
	return []*v1.Node{nodeInfo.Node()}
}

// pinnedNodeName returns the node name that every term of the pod's required node affinity requires; empty if there
// is none, or if the terms differ.
func pinnedNodeName(pod *v1.Pod) string {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	pinned := ""
	for i, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		name := ""
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == v1.NodeSelectorOpIn && len(field.Values) == 1 {
				name = field.Values[0]
			}
		}
		if name == "" || i > 0 && name != pinned {
			return ""
		}
		pinned = name
	}
	return pinned
}

// filtersByNodeAffinity reports whether the profile rejects nodes that do not match a pod's required node affinity.
func (g *genericScheduler) filtersByNodeAffinity(fwk framework.Framework) bool {
	filters, known := g.nodeAffinityFilters[fwk]
	if known {
		return filters
	}
	for _, plugin := range fwk.ListPlugins().Filter.Enabled {
		filters = filters || plugin.Name == names.NodeAffinity
	}
	if g.nodeAffinityFilters == nil {
		g.nodeAffinityFilters = map[framework.Framework]bool{}
	}
	g.nodeAffinityFilters[fwk] = filters
	return filters
}
