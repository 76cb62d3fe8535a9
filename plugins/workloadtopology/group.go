// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
)

// JobAnnotation is the annotation of a pod with the name of its job. Values longer than a label's are ignored.
const JobAnnotation = "workload-topology.scheduler/job"

// grouping finds the group of a pod, and its sides of the edges.
type grouping struct {
	namespaces  []string
	podSelector labels.Selector
	// by are the keys of labels, or none if the arguments select no pods.
	by    []string
	edges []edge
}

// edge is an edge of the arguments.
type edge struct {
	from, to labels.Selector
	// same is true if both sides select the same pods, which are then counted once.
	same   bool
	weight int64
}

// sides has a number for each side of each edge: 2i for from and 2i+1 for to of edge i.
type sides [2 * config.MaxWorkloadTopologyEdges]int64

func newGrouping(args *config.WorkloadTopologyArgs) (g grouping, err error) {
	g = grouping{namespaces: args.Namespaces, by: args.GroupBy}
	if g.podSelector, err = compile(args.PodSelector); err != nil {
		return g, err
	}
	for i := range args.Edges {
		given := &args.Edges[i]
		e := edge{same: reflect.DeepEqual(given.From, given.To), weight: int64(*given.Weight)}
		if e.from, err = compile(given.From); err != nil {
			return g, err
		}
		if e.to, err = compile(given.To); err != nil {
			return g, err
		}
		g.edges = append(g.edges, e)
	}
	return g, nil
}

// compile returns a selector, which selects all pods for nil.
func compile(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// groupOf returns the name of a pod's group, or "" without a group. Names are unique, because values of labels contain
// no slashes and no commas.
func (g *grouping) groupOf(pod *v1.Pod) string {
	if job := pod.Annotations[JobAnnotation]; job != "" && len(job) <= validation.LabelValueMaxLength {
		return pod.Namespace + "//" + job
	}
	if len(g.by) == 0 || !filterrule.MatchesAny(g.namespaces, pod.Namespace) || !g.podSelector.Matches(labels.Set(pod.Labels)) {
		return ""
	}
	var name strings.Builder
	name.WriteString(pod.Namespace)
	separator := byte('/')
	for _, key := range g.by {
		value := pod.Labels[key]
		if value == "" {
			return ""
		}
		name.WriteByte(separator)
		name.WriteString(value)
		separator = ','
	}
	return name.String()
}

// sidesOf returns 1 for each side of each edge that selects a pod.
func (g *grouping) sidesOf(pod *v1.Pod) (on sides) {
	set := labels.Set(pod.Labels)
	for i, e := range g.edges {
		if e.from.Matches(set) {
			on[2*i] = 1
		}
		if !e.same && e.to.Matches(set) {
			on[2*i+1] = 1
		}
	}
	return on
}

// peersOf returns the weight of each side for a pod: that of the edge, if the pod is on its other side.
func (g *grouping) peersOf(pod *v1.Pod) (weights sides) {
	for side, on := range g.sidesOf(pod) {
		if on == 0 {
			continue
		}
		if e := g.edges[side/2]; e.same {
			weights[side] = e.weight
		} else {
			weights[side^1] = e.weight
		}
	}
	return weights
}
