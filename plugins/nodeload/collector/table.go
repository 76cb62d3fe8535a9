// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// table sorts the rows of an answer by node and resource.
type table struct {
	nodes       []*v1.Node
	resources   []Resource
	directories []*directory // of each resource
	// readings has one reading per resource for the first node, then for the second, and so on.
	readings []reading
	// unmatched has the rows that match no node, ambiguous those that match several.
	unmatched, ambiguous refused
	// pods has the readings of pods by NAMESPACE/NAME, for each resource.
	pods []map[string]*reading
	// unmatchedOf is the number of unmatched rows of each resource.
	unmatchedOf []int
}

func newTable(nodes []*v1.Node, resources []Resource) *table {
	t := &table{nodes: nodes, resources: resources, readings: make([]reading, len(nodes)*len(resources)), unmatchedOf: make([]int, len(resources))}
	made := map[config.NodeLoadMatchBy]*directory{}
	for i := range resources {
		by := resources[i].By
		if made[by] == nil {
			made[by] = newDirectory(by, nodes)
		}
		t.directories = append(t.directories, made[by])
		t.pods = append(t.pods, map[string]*reading{})
	}
	return t
}

// refused counts rows that do not match exactly one node.
type refused struct {
	rows int
	// example is the alphabetically first value of their labels, so that it does not depend on the order of rows.
	example, label string
}

// longestExample is the maximum length of example, in bytes.
const longestExample = 256

func (r *refused) add(label, value string) {
	if len(value) > longestExample {
		value = value[:longestExample]
	}
	if r.rows++; r.rows == 1 || value < r.example {
		r.label, r.example = label, value
	}
}

func (r *refused) text() string { return strings.ToValidUTF8(r.example, "\uFFFD") }

// add adds a row.
func (t *table) add(row *source.Row) {
	if t.resources[row.Query].Pods {
		of := t.pods[row.Query]
		if of[row.Label] == nil {
			of[row.Label] = &reading{}
		}
		of[row.Label].note(row.Kind, row.Value)
		return
	}
	width, label := len(t.resources), t.resources[row.Query].Label
	switch nodes := t.directories[row.Query].find(row.Label); len(nodes) {
	case 0:
		t.unmatched.add(label, row.Label)
		t.unmatchedOf[row.Query]++
	case 1:
		t.readings[int(nodes[0])*width+row.Query].note(row.Kind, row.Value)
	default:
		t.ambiguous.add(label, row.Label)
		for _, node := range nodes {
			t.readings[int(node)*width+row.Query].blur(row.Kind)
		}
	}
}

// severalSeries returns a warning for each resource with several series for a node or pod. It does not depend on their
// values, so that it stays the same from refresh to refresh, and is logged once.
func (t *table) severalSeries() (warnings []string) {
	for r := range t.resources {
		count, what := 0, "nodes"
		for i := r; i < len(t.readings); i += len(t.resources) {
			if t.readings[i].repeated&hasValue != 0 {
				count++
			}
		}
		for _, of := range t.pods[r] {
			if of.repeated&hasValue != 0 {
				count, what = count+1, "pods"
			}
		}
		if count > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %d %s have several series each, which count as one if they differ by at most %g %% of a node; "+
				"next: if they are those of several clusters, select one in the query", t.resources[r].Name, count, what, 100*sameLoad))
		}
	}
	return warnings
}
