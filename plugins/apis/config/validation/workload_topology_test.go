// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
)

func TestValidateWorkloadTopologyArgs(t *testing.T) {
	jobs := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "job"}}
	valid := func() *config.WorkloadTopologyArgs {
		return &config.WorkloadTopologyArgs{
			GroupBy: []string{"app"}, PodSelector: jobs,
			Levels: []config.WorkloadTopologyLevel{{TopologyKey: "host", Cost: 0}, {TopologyKey: "rack", Cost: 1}, {TopologyKey: "zone", Cost: 99}},
			Edges:  []config.WorkloadTopologyEdge{{Weight: pointer.Int32(1)}},
		}
	}
	tests := []struct {
		name   string
		change func(*config.WorkloadTopologyArgs)
		want   []string
	}{
		{name: "valid", change: func(*config.WorkloadTopologyArgs) {}},
		{name: "no edges, for spread alone", change: func(args *config.WorkloadTopologyArgs) { args.Edges = nil }},
		{name: "all that may be", change: func(args *config.WorkloadTopologyArgs) {
			args.MaxPerNode, args.SpreadWeight, args.AvoidAbove = pointer.Int32(1000), 100, pointer.Int32(100)
			args.Namespaces, args.PodSelector = []string{"streaming-*"}, nil
			args.Edges = append(args.Edges, config.WorkloadTopologyEdge{From: jobs, To: jobs, Weight: pointer.Int32(100), Scope: "Group"}, args.Edges[0], args.Edges[0])
		}},
		{
			name: "keys that are none, twice, or too many",
			change: func(args *config.WorkloadTopologyArgs) {
				args.GroupBy = []string{"a b", "app", "app", "d", "e", "f", "g", "h", "i"}
			},
			want: []string{"args.groupBy: Too many", "args.groupBy[0]: Invalid value", "args.groupBy[2]: Duplicate value"},
		},
		{name: "only pods with the annotation", change: func(args *config.WorkloadTopologyArgs) { args.GroupBy, args.PodSelector = nil, nil }},
		{name: "all pods with the labels", change: func(args *config.WorkloadTopologyArgs) { args.PodSelector = &metav1.LabelSelector{} }},
		{
			name:   "groups of all pods, as in earlier versions",
			change: func(args *config.WorkloadTopologyArgs) { args.PodSelector = nil },
			want: []string{"args.podSelector: Required value: this or namespaces, because groupBy no longer concerns all pods; " +
				"select the pods of jobs, or write podSelector: {} for all pods with the labels of groupBy"},
		},
		{
			name:   "pods without groups",
			change: func(args *config.WorkloadTopologyArgs) { args.GroupBy = nil },
			want:   []string{"args.groupBy: Required value"},
		},
		{
			name: "selectors that select nothing",
			change: func(args *config.WorkloadTopologyArgs) {
				args.Namespaces, args.PodSelector = []string{"["}, &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}
			},
			want: []string{"args.namespaces[0]: Invalid value", "args.podSelector.matchLabels: Invalid value"},
		},
		{
			name: "what was removed",
			change: func(args *config.WorkloadTopologyArgs) {
				args.PeersAnnotation, args.RoleLabel = "example.com/peers", "component"
				args.Edges[0].Scope, args.Edges[0].Within = "Namespace", "zone"
			},
			want: []string{
				"args.edges[0].scope: Forbidden: was removed; edges connect pods of a group; for pods of other groups, write podAffinity",
				"args.edges[0].within: Forbidden: was removed; write podAffinity with this topologyKey",
				"args.peersAnnotation: Forbidden: was removed; write edges", "args.roleLabel: Forbidden: was removed; write the label into",
			},
		},
		{
			name: "costs that do not grow, or reach that of a peer far away",
			change: func(args *config.WorkloadTopologyArgs) {
				args.Levels = []config.WorkloadTopologyLevel{{TopologyKey: "host", Cost: -1}, {TopologyKey: "rack", Cost: 5}, {TopologyKey: "zone", Cost: 5}, {TopologyKey: "rack", Cost: 100}}
			},
			want: []string{
				"args.levels[0].cost: Invalid value: -1: must be between 0 and 99", "args.levels[2].cost: Invalid value: 5: must be between 6 and 99",
				"args.levels[3].topologyKey: Duplicate value", "args.levels[3].cost: Invalid value: 100: must be between 6 and 99",
			},
		},
		{
			name: "edges",
			change: func(args *config.WorkloadTopologyArgs) {
				args.Edges = []config.WorkloadTopologyEdge{
					{Weight: pointer.Int32(101)}, {Weight: pointer.Int32(0)}, {From: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}, Weight: pointer.Int32(1)},
				}
			},
			want: []string{
				"args.edges[0].weight: Invalid value: 101", "args.edges[1].weight: Invalid value: 0", "args.edges[2].from.matchLabels: Invalid value",
			},
		},
		{
			name: "too many edges",
			change: func(args *config.WorkloadTopologyArgs) {
				for len(args.Edges) < 5 {
					args.Edges = append(args.Edges, args.Edges[0])
				}
			},
			want: []string{"args.edges: Invalid value: 5: must have at most 4 edges; select several roles in one edge, by matchExpressions with the operator In"},
		},
		{
			name: "numbers",
			change: func(args *config.WorkloadTopologyArgs) {
				args.MaxPerNode, args.SpreadWeight, args.AvoidAbove = pointer.Int32(0), 101, pointer.Int32(0)
			},
			want: []string{"args.maxPerNode: Invalid value: 0", "args.spreadWeight: Invalid value: 101", "args.avoidAbove: Invalid value: 0"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := valid()
			tt.change(args)
			expectErrors(t, validate(t, "WorkloadTopology", args), tt.want)
		})
	}
}
