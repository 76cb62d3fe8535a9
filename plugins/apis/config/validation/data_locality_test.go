// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
)

// dataLocality are the default args, with a change.
func dataLocality(change func(args *config.DataLocalityArgs)) *config.DataLocalityArgs {
	args := &config.DataLocalityArgs{
		DatasetsAnnotation: pointer.String("data-locality.scheduler/datasets"), NodeAnnotation: pointer.String("data-locality.scheduler/datasets"),
		Levels: dataLevels(config.DataLocalityLevel{TopologyKey: "kubernetes.io/hostname", Percent: 100},
			config.DataLocalityLevel{TopologyKey: "topology.kubernetes.io/zone", Percent: 50}),
	}
	if change != nil {
		change(args)
	}
	return args
}

func dataLevels(levels ...config.DataLocalityLevel) []config.DataLocalityLevel { return levels }

func TestValidateDataLocalityArgs(t *testing.T) {
	const hostname, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
	tests := []struct {
		name   string
		change func(args *config.DataLocalityArgs)
		want   []string
	}{
		{name: "the defaults"},
		{name: "everything", change: func(args *config.DataLocalityArgs) {
			args.NodeLabelPrefix, args.RequireWithin = "data.example.com/", zone
			args.Servers = []config.DataLocalityServer{{
				Namespaces: []string{"hdfs"}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "datanode"}}, DatasetLabel: "dataset",
			}}
		}},
		{name: "the last level counts nothing", change: func(args *config.DataLocalityArgs) { args.Levels[1].Percent = 0 }},
		{name: "no annotation of the pod", change: func(args *config.DataLocalityArgs) { args.DatasetsAnnotation = pointer.String("") },
			want: []string{"args.datasetsAnnotation: Required value: the key of an annotation"}},
		{name: "nothing says where data are", change: func(args *config.DataLocalityArgs) { args.NodeAnnotation = pointer.String("") },
			want: []string{"args: Required value: at least one of nodeAnnotation, nodeLabelPrefix and servers"}},
		{name: "servers alone", change: func(args *config.DataLocalityArgs) {
			args.NodeAnnotation = pointer.String("")
			args.Servers = []config.DataLocalityServer{{DatasetLabel: "dataset"}}
		}},
		{name: "a prefix that no key begins with", change: func(args *config.DataLocalityArgs) { args.NodeLabelPrefix = "a/b/" },
			want: []string{`args.nodeLabelPrefix: Invalid value: "a/b/": must be the prefix of a label's key`}},
		{name: "bad annotations", change: func(args *config.DataLocalityArgs) {
			args.DatasetsAnnotation, args.NodeAnnotation = pointer.String("a b"), pointer.String("b c")
		},
			want: []string{`args.datasetsAnnotation: Invalid value: "a b"`, `args.nodeAnnotation: Invalid value: "b c"`}},
		{name: "all that can be wrong with a server", change: func(args *config.DataLocalityArgs) {
			args.Servers = []config.DataLocalityServer{{
				Namespaces: []string{"A", "a", "a"},
				Selector:   &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
			}}
		}, want: []string{
			"args.servers[0].namespaces[0]: Invalid value", "args.servers[0].namespaces[2]: Duplicate value",
			"args.servers[0].selector.matchExpressions[0].operator: Invalid value", "args.servers[0].datasetLabel: Required value: the key of a label",
		}},
		{name: "too many servers", change: func(args *config.DataLocalityArgs) {
			for i := 0; i < 17; i++ {
				args.Servers = append(args.Servers, config.DataLocalityServer{DatasetLabel: "dataset"})
			}
		}, want: []string{"args.servers: Too many: 17: must have at most 16 items"}},
		{name: "no levels", change: func(args *config.DataLocalityArgs) { args.Levels = []config.DataLocalityLevel{} }, want: []string{"args.levels: Required value: 1 to 8 levels"}},
		{name: "too many levels", change: func(args *config.DataLocalityArgs) {
			args.Levels = nil
			for i := int32(0); i < 9; i++ {
				args.Levels = append(args.Levels, config.DataLocalityLevel{TopologyKey: string(rune('a' + i)), Percent: 100 - i})
			}
		}, want: []string{"args.levels: Too many: 9: must have at most 8 items"}},
		{name: "levels that do not fall", change: func(args *config.DataLocalityArgs) {
			args.Levels = dataLevels(config.DataLocalityLevel{TopologyKey: hostname, Percent: 50}, config.DataLocalityLevel{TopologyKey: zone, Percent: 50})
		}, want: []string{"args.levels[1].percent: Invalid value: 50: must be less than 50"}},
		{name: "a level that counts less than nothing", change: func(args *config.DataLocalityArgs) { args.Levels[1].Percent = -1 },
			want: []string{"args.levels[1].percent: Invalid value: -1: must be between 0 and 100, inclusive"}},
		{name: "a level twice, and one without a key", change: func(args *config.DataLocalityArgs) {
			args.Levels = dataLevels(config.DataLocalityLevel{TopologyKey: zone, Percent: 100}, config.DataLocalityLevel{TopologyKey: zone, Percent: 50}, config.DataLocalityLevel{TopologyKey: "", Percent: 20})
		}, want: []string{"args.levels[1].topologyKey: Duplicate value", "args.levels[2].topologyKey: Required value: the key of a label"}},
		{name: "a level that is none", change: func(args *config.DataLocalityArgs) { args.RequireWithin = "rack" },
			want: []string{`args.requireWithin: Unsupported value: "rack": supported values: "` + hostname + `", "` + zone + `"`}},
		{name: "errors of all fields at once", change: func(args *config.DataLocalityArgs) {
			*args = config.DataLocalityArgs{
				DatasetsAnnotation: pointer.String(""), NodeAnnotation: pointer.String(""), Levels: []config.DataLocalityLevel{}, RequireWithin: "rack",
			}
		}, want: []string{
			"args.datasetsAnnotation", "args: Required value", "args.levels: Required value", "args.requireWithin: Unsupported value",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := validate(t, "DataLocality", dataLocality(tt.change))
			expectErrors(t, err, tt.want)
			if err != nil && strings.Contains(err.Error(), "%!") {
				t.Errorf("a text that was not put together: %v", err)
			}
		})
	}
}
