// SPDX-License-Identifier: Apache-2.0

package validation

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	// maxGroupBy and maxLevels bound the work for each pod and node.
	maxGroupBy = 8
	maxLevels  = 8
	// maxEdges bounds the work for each pod that is added or removed: two selectors for each edge.
	maxEdges = 32
	// farthest is the cost of a peer with which a node shares no domain.
	farthest = 100
	// maxPerNode is far above a kubelet's limit of pods.
	maxPerNode = 1000
)

// ValidateWorkloadTopologyArgs checks that groups and levels are unique label keys, that costs increase from level to
// level, and that edges select pods and name existing levels.
func ValidateWorkloadTopologyArgs(path *field.Path, args *config.WorkloadTopologyArgs) error {
	groupByPath := path.Child("groupBy")
	errs := validateLength(groupByPath, len(args.GroupBy), maxGroupBy, "keys of labels")
	seen := sets.NewString()
	for i, key := range args.GroupBy {
		errs = append(errs, metav1validation.ValidateLabelName(key, groupByPath.Index(i))...)
		errs = append(errs, validateUnique(groupByPath.Index(i), key, seen)...)
	}
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
	if len(args.Edges) > maxEdges {
		errs = append(errs, field.TooMany(edgesPath, len(args.Edges), maxEdges))
	}
	for i := range args.Edges {
		errs = append(errs, validateEdge(edgesPath.Index(i), &args.Edges[i], levels)...)
	}
	if args.PeersAnnotation != "" {
		annotationPath := path.Child("peersAnnotation")
		errs = append(errs, metav1validation.ValidateLabelName(args.PeersAnnotation, annotationPath)...)
	}
	errs = append(errs, metav1validation.ValidateLabelName(args.RoleLabel, path.Child("roleLabel"))...)
	if args.MaxPerNode != nil {
		errs = append(errs, validateRange(path.Child("maxPerNode"), *args.MaxPerNode, 1, maxPerNode)...)
	}
	errs = append(errs, validateRange(path.Child("spreadWeight"), args.SpreadWeight, 0, 100)...)
	if args.AvoidAbove != nil {
		errs = append(errs, validateRange(path.Child("avoidAbove"), *args.AvoidAbove, 1, 100)...)
	}
	return errs.ToAggregate()
}

func validateEdge(path *field.Path, edge *config.WorkloadTopologyEdge, levels sets.String) field.ErrorList {
	errs := validateSelector(edge.From, path.Child("from"))
	errs = append(errs, validateSelector(edge.To, path.Child("to"))...)
	errs = append(errs, validateRange(path.Child("weight"), edge.Weight, 0, 100)...)
	switch edge.Scope {
	case config.WorkloadTopologyGroup:
	case config.WorkloadTopologyNamespace, config.WorkloadTopologyCluster:
		if edge.From == nil {
			errs = append(errs, field.Required(path.Child("from"), "a selector, because the scope is not Group"))
		}
		if edge.To == nil {
			errs = append(errs, field.Required(path.Child("to"), "a selector, because the scope is not Group"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("scope"), edge.Scope, []string{
			string(config.WorkloadTopologyCluster), string(config.WorkloadTopologyGroup), string(config.WorkloadTopologyNamespace),
		}))
	}
	if edge.Within != "" && !levels.Has(edge.Within) {
		errs = append(errs, field.NotSupported(path.Child("within"), edge.Within, levels.List()))
	}
	if edge.Weight == 0 && edge.Within == "" {
		errs = append(errs, field.Required(path, "a weight of more than 0, or within: without both the edge has no effect"))
	}
	return errs
}
