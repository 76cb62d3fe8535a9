// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"sort"
	"strings"

	"github.com/prometheus/common/model"
	v1 "k8s.io/api/core/v1"
)

// maxValues is the maximum number of values that a message lists.
const maxValues = 5

// choice is a label with one of its values, and what a matcher for it would select.
type choice struct {
	label, value string
	// covered is the number of nodes that keep a target, and helped the number of those that lose another one.
	covered, helped int
}

// Distinguish returns a message if nodes match several scrape targets each: the label that tells these apart, and the
// matcher that selects those of this cluster, as far as the targets show it. It returns an empty text if no node does.
func (r Resource) Distinguish(nodes []*v1.Node, targets []model.Metric) string {
	byNode, several := map[int32][]model.Metric{}, 0
	known := newDirectory(r.By, nodes)
	for _, target := range targets {
		if found := known.find(string(target[model.LabelName(r.Label)])); len(found) == 1 {
			byNode[found[0]] = append(byNode[found[0]], target)
		}
	}
	for _, of := range byNode {
		if len(of) > 1 {
			several++
		}
	}
	if several == 0 {
		return ""
	}
	found := fmt.Sprintf("%d of %d nodes match several scrape targets", several, len(nodes))
	choices := choicesOf(byNode)
	best := choices[0]
	// A label such as pod has another value on each node.
	if 2*best.helped < several || 2*best.covered < len(byNode) {
		return found + ", and no value of one label selects one for each node; " +
			"next: compare the labels of their series up, and add a matcher to prometheus.matchers, for example with =~"
	}
	var values []string
	for _, c := range choices {
		if c.label == best.label && len(values) < maxValues {
			values = append(values, fmt.Sprintf("%q on %d nodes", c.value, c.covered))
		}
	}
	return fmt.Sprintf("%s, which the label %s tells apart: %s; "+
		"next: add {label: %s, operator: \"=\", value: %q} to prometheus.matchers, with the value of this cluster",
		found, best.label, strings.Join(values, ", "), best.label, best.value)
}

// choicesOf returns all labels with all their values, the best matcher first.
func choicesOf(byNode map[int32][]model.Metric) []choice {
	names := map[model.LabelName]bool{}
	for _, of := range byNode {
		for _, target := range of {
			for name := range target {
				names[name] = true
			}
		}
	}
	var choices []choice
	for name := range names {
		values := map[model.LabelValue]*choice{}
		for _, of := range byNode {
			kept := map[model.LabelValue]int{}
			for _, target := range of {
				kept[target[name]]++ // an absent label has an empty value
			}
			for value, count := range kept {
				if values[value] == nil {
					values[value] = &choice{label: string(name), value: string(value)}
				}
				values[value].covered++
				if count < len(of) {
					values[value].helped++
				}
			}
		}
		for _, c := range values {
			choices = append(choices, *c)
		}
	}
	sort.Slice(choices, func(i, j int) bool { return choices[i].before(choices[j]) })
	return choices
}

// before reports whether a matcher is better: it resolves more nodes, then it measures more.
func (c choice) before(other choice) bool {
	switch {
	case c.helped != other.helped:
		return c.helped > other.helped
	case c.covered != other.covered:
		return c.covered > other.covered
	case c.label != other.label:
		return c.label < other.label
	default:
		return c.value < other.value
	}
}
