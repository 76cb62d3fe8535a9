// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"sort"
	"strings"

	"github.com/prometheus/common/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxValues is the maximum number of values that a message lists.
const maxValues = 5

// Distinguish returns a message if nodes match several scrape targets each: the label that tells these apart, and the
// matcher that selects those of this cluster, as far as the targets show it. It returns an empty text if no node does.
func (r Resource) Distinguish(nodes []*v1.Node, targets []model.Metric) string {
	byNode, known, labels, several := map[int32][]model.Metric{}, newDirectory(r.By, nodes), sets.String{}, 0
	for _, target := range targets {
		found := known.find(string(target[model.LabelName(r.Label)]))
		if len(found) != 1 {
			continue
		}
		if byNode[found[0]] = append(byNode[found[0]], target); len(byNode[found[0]]) == 2 {
			several++
		}
		for label := range target {
			labels.Insert(string(label))
		}
	}
	if several == 0 {
		return ""
	}
	// The best matcher drops targets of the most nodes, and then keeps targets of the most nodes.
	dropped := len(byNode) + 1
	var best string
	var scores map[string]int
	var values []string
	for _, label := range labels.List() {
		of := scoresOf(byNode, model.LabelName(label), dropped)
		sorted := sets.StringKeySet(of).List()
		sort.SliceStable(sorted, func(i, j int) bool { return of[sorted[i]] > of[sorted[j]] })
		if best == "" || of[sorted[0]] > scores[values[0]] {
			best, scores, values = label, of, sorted
		}
	}
	found := fmt.Sprintf("%d of %d nodes match several scrape targets", several, len(nodes))
	// A label such as pod has another value on each node.
	if score := scores[values[0]]; 2*(score/dropped) < several || 2*(score%dropped) < len(byNode) {
		return found + ", and no value of one label selects one for each node; " +
			"next: compare the labels of their series up, and add a matcher to prometheus.matchers, for example with =~"
	}
	var listed []string
	for i := 0; i < len(values) && i < maxValues; i++ {
		listed = append(listed, fmt.Sprintf("%q on %d nodes", values[i], scores[values[i]]%dropped))
	}
	return fmt.Sprintf("%s, which the label %s tells apart: %s; "+
		"next: add {label: %s, operator: \"=\", value: %q} to prometheus.matchers, with the value of this cluster",
		found, best, strings.Join(listed, ", "), best, values[0])
}

// scoresOf returns a score for each value of a label: the number of nodes of which a matcher for it keeps some targets,
// and dropped times the number of those of which it drops some. An absent label has an empty value.
func scoresOf(byNode map[int32][]model.Metric, label model.LabelName, dropped int) map[string]int {
	scores := map[string]int{}
	for _, targets := range byNode {
		matching := map[string]int{}
		for _, target := range targets {
			matching[string(target[label])]++
		}
		for value, n := range matching {
			if scores[value]++; n < len(targets) {
				scores[value] += dropped
			}
		}
	}
	return scores
}
