// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// scraped returns a target for each of the nodes, with the node's name as instance, a pod of its own, and more labels.
func scraped(nodes []int, labels ...string) (targets []model.Metric) {
	for _, node := range nodes {
		target := model.Metric{
			"instance": model.LabelValue(fmt.Sprintf("node-%d", node)),
			"pod":      model.LabelValue(fmt.Sprintf("exporter-%d-%s", node, strings.Join(labels, "-"))),
		}
		for i := 0; i < len(labels); i += 2 {
			target[model.LabelName(labels[i])] = model.LabelValue(labels[i+1])
		}
		targets = append(targets, target)
	}
	return targets
}

func TestDistinguish(t *testing.T) {
	all, strangers := []int{1, 2, 3, 4}, []int{5, 6, 7, 8, 9}
	with := func(lists ...[]model.Metric) (targets []model.Metric) {
		for _, list := range lists {
			targets = append(targets, list...)
		}
		return targets
	}
	matcher := func(label, value string) string {
		return fmt.Sprintf(`next: add {label: %s, operator: "=", value: %q} to prometheus.matchers`, label, value)
	}
	const none = "and no value of one label selects one for each node; next: "
	for name, tt := range map[string]struct {
		targets []model.Metric
		// want are parts of the message; without any, there is none.
		want []string
	}{
		"none":      {},
		"one each":  {targets: scraped(all, "cluster", "a")},
		"strangers": {targets: with(scraped(strangers, "cluster", "a"), scraped(strangers, "cluster", "b"))},
		"no node":   {targets: []model.Metric{{"job": "a"}, {"job": "b"}}},
		"two clusters": {
			with(scraped(all, "cluster", "b", "job", "node"), scraped(all, "cluster", "a", "job", "node")),
			[]string{"4 of 4 nodes match several scrape targets, which the label cluster tells apart: \"a\" on 4 nodes, \"b\" on 4 nodes;", matcher("cluster", "a")},
		},
		"two clusters of which one has other nodes": {
			with(scraped([]int{1}, "cluster", "a"), scraped(strangers, "cluster", "a"), scraped(all, "cluster", "b")),
			[]string{`1 of 4 nodes`, `"b" on 4 nodes, "a" on 1 nodes`, matcher("cluster", "b")},
		},
		"a label that this cluster lacks": {
			with(scraped(all), scraped(all[:2], "cluster", "b")), []string{`2 of 4 nodes`, `"" on 4 nodes`, matcher("cluster", "")},
		},
		"two jobs in two clusters": {
			with(scraped(all, "job", "x", "cluster", "a"), scraped(all, "job", "y", "cluster", "a"), scraped(all, "job", "x", "cluster", "b")),
			[]string{matcher("cluster", "a")},
		},
		"two pods": {with(scraped(all), []model.Metric{{"instance": "node-1:9100", "pod": "other"}}), []string{"1 of 4 nodes", none}},
		"many values": {
			with(scraped(all, "c", "1"), scraped(all, "c", "2"), scraped(all, "c", "3"), scraped(all, "c", "4"), scraped(all, "c", "5"), scraped(all, "c", "6")),
			[]string{`"5" on 4 nodes;`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cpu := Resource{Query: source.Query{Label: "instance"}, By: config.NodeLoadMatchName}
			got := cpu.Distinguish(makeNodes(4), tt.targets)
			if len(tt.want) == 0 && got != "" {
				t.Errorf("got %s", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s is not in %s", want, got)
				}
			}
		})
	}
}
