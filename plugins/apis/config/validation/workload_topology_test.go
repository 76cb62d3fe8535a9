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
			GroupBy: []string{"app"}, RoleLabel: "component", PeersAnnotation: "example.com/peers",
			Levels: []config.WorkloadTopologyLevel{{TopologyKey: "host", Cost: 0}, {TopologyKey: "rack", Cost: 1}, {TopologyKey: "zone", Cost: 99}},
			Edges:  []config.WorkloadTopologyEdge{{Weight: 1, Scope: config.WorkloadTopologyGroup}},
		}
	}
	tests := []struct {
		name   string
		change func(*config.WorkloadTopologyArgs)
		want   []string
	}{
		{name: "valid", change: func(*config.WorkloadTopologyArgs) {}},
		{name: "no edges, which is for annotations alone, or for spread", change: func(args *config.WorkloadTopologyArgs) { args.Edges = nil }},
		{name: "all that may be", change: func(args *config.WorkloadTopologyArgs) {
			args.PeersAnnotation = ""
			args.MaxPerNode, args.SpreadWeight, args.AvoidAbove = pointer.Int32(1000), 100, pointer.Int32(100)
			args.Edges = append(args.Edges, config.WorkloadTopologyEdge{From: jobs, To: jobs, Weight: 100, Scope: config.WorkloadTopologyCluster, Within: "zone"},
				config.WorkloadTopologyEdge{Within: "host", Scope: config.WorkloadTopologyGroup})
		}},
		{
			name: "keys that are none, twice, or too many",
			change: func(args *config.WorkloadTopologyArgs) {
				args.GroupBy = []string{"a b", "app", "app", "d", "e", "f", "g", "h", "i"}
				args.PeersAnnotation = "a/b/c"
			},
			want: []string{"args.groupBy: Too many", "args.groupBy[0]: Invalid value", "args.groupBy[2]: Duplicate value", "args.peersAnnotation: Invalid value"},
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
					{Weight: 101, Scope: "Everywhere"},
					{Weight: 1, Scope: config.WorkloadTopologyNamespace},
					{Scope: config.WorkloadTopologyGroup},
					{Weight: 1, Scope: config.WorkloadTopologyGroup, Within: "region"},
					{From: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}, Weight: 1, Scope: config.WorkloadTopologyGroup},
				}
			},
			want: []string{
				"args.edges[0].weight: Invalid value: 101", `args.edges[0].scope: Unsupported value: "Everywhere": supported values: "Cluster", "Group", "Namespace"`,
				"args.edges[1].from: Required value", "args.edges[1].to: Required value", "args.edges[2]: Required value: a weight of more than 0, or within",
				`args.edges[3].within: Unsupported value: "region": supported values: "host", "rack", "zone"`, "args.edges[4].from.matchLabels: Invalid value",
			},
		},
		{
			name: "too many edges",
			change: func(args *config.WorkloadTopologyArgs) {
				for len(args.Edges) < 33 {
					args.Edges = append(args.Edges, args.Edges[0])
				}
			},
			want: []string{"args.edges: Too many: 33: must have at most 32 items"},
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
