// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	// maxGroupBy and maxLevels bound the work for each pod and node.
	maxGroupBy = 8
	maxLevels  = 8
	// farthest is the cost of a peer with which a node shares no domain.
	farthest = 100
	// maxPerNode is far above a kubelet's limit of pods.
	maxPerNode = 1000
)

// ValidateWorkloadTopologyArgs checks that the arguments select pods if they group them, that groups and levels are
// unique label keys, that costs increase from level to level, and that removed fields are empty.
func ValidateWorkloadTopologyArgs(path *field.Path, args *config.WorkloadTopologyArgs) error {
	errs := validateGroups(path, args)
	levelsPath := path.Child("levels")
	errs = append(errs, validateLength(levelsPath, len(args.Levels), maxLevels, "levels")...)
	levels, least := sets.NewString(), int32(0)
	for i, level := range args.Levels {
		levelPath := levelsPath.Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(level.TopologyKey, levelPath.Child("topologyKey"))...)
		errs = append(errs, validateUnique(levelPath.Child("topologyKey"), level.TopologyKey, levels)...)
		errs = append(errs, validateRange(levelPath.Child("cost"), level.Cost, least, farthest-1)...)
		if level.Cost >= least && level.Cost < farthest-1 {
			least = level.Cost + 1
		}
	}
	edgesPath := path.Child("edges")
	if len(args.Edges) > config.MaxWorkloadTopologyEdges {
		errs = append(errs, field.Invalid(edgesPath, len(args.Edges), fmt.Sprintf(
			"must have at most %d edges; select several roles in one edge, by matchExpressions with the operator In", config.MaxWorkloadTopologyEdges)))
	}
	for i := range args.Edges {
		errs = append(errs, validateEdge(edgesPath.Index(i), &args.Edges[i])...)
	}
	errs = append(errs, validateRemoved(path.Child("peersAnnotation"), args.PeersAnnotation, "write edges, whose selectors select the roles")...)
	errs = append(errs, validateRemoved(path.Child("roleLabel"), args.RoleLabel, "write the label into the selectors of edges")...)
	if args.MaxPerNode != nil {
		errs = append(errs, validateRange(path.Child("maxPerNode"), *args.MaxPerNode, 1, maxPerNode)...)
	}
	errs = append(errs, validateRange(path.Child("spreadWeight"), args.SpreadWeight, 0, 100)...)
	if args.AvoidAbove != nil {
		errs = append(errs, validateRange(path.Child("avoidAbove"), *args.AvoidAbove, 1, 100)...)
	}
	return errs.ToAggregate()
}

// validateGroups checks that GroupBy and a selector of pods are both set or both absent.
func validateGroups(path *field.Path, args *config.WorkloadTopologyArgs) field.ErrorList {
	groupByPath := path.Child("groupBy")
	errs := validatePatterns(path.Child("namespaces"), args.Namespaces)
	errs = append(errs, validateSelector(args.PodSelector, path.Child("podSelector"))...)
	selects := len(args.Namespaces) > 0 || args.PodSelector != nil
	switch {
	case !selects && len(args.GroupBy) > 0:
		errs = append(errs, field.Required(path.Child("podSelector"), "this or namespaces, because groupBy no longer concerns all pods; "+
			"select the pods of jobs, or write podSelector: {} for all pods with the labels of groupBy"))
	case selects:
		errs = append(errs, validateLength(groupByPath, len(args.GroupBy), maxGroupBy, "keys of labels")...)
	}
	seen := sets.NewString()
	for i, key := range args.GroupBy {
		errs = append(errs, metav1validation.ValidateLabelName(key, groupByPath.Index(i))...)
		errs = append(errs, validateUnique(groupByPath.Index(i), key, seen)...)
	}
	return errs
}

func validateEdge(path *field.Path, edge *config.WorkloadTopologyEdge) field.ErrorList {
	errs := validateSelector(edge.From, path.Child("from"))
	errs = append(errs, validateSelector(edge.To, path.Child("to"))...)
	errs = append(errs, validateRange(path.Child("weight"), *edge.Weight, 1, 100)...)
	if edge.Scope != "Group" {
		errs = append(errs, validateRemoved(path.Child("scope"), edge.Scope,
			"edges connect pods of a group; for pods of other groups, write podAffinity into the pods' templates")...)
	}
	return append(errs, validateRemoved(path.Child("within"), edge.Within,
		"write podAffinity with this topologyKey, required during scheduling, into the pods' templates")...)
}

// validateRemoved returns an error for a field that earlier versions had.
func validateRemoved(path *field.Path, value, instead string) field.ErrorList {
	if value == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "was removed; "+instead)}
}
