// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// mostDetails limits the rows of a detail.
const mostDetails = 20

// detailRows have a text for each configuration by the name of a gang or workload, and a weight that sorts them.
type detailRows struct {
	texts   map[string][]string
	weights map[string]float64
}

func (d detailRows) set(name string, configuration, of int, text string, weight float64) {
	if d.texts[name] == nil {
		d.texts[name] = make([]string, of)
	}
	d.texts[name][configuration], d.weights[name] = text, math.Max(weight, d.weights[name])
}

// details returns tables with a title, about the first seed: the gangs that waited longest, and the workloads whose zones
// differ, those first that are most in one zone.
func details(all []configuration) (tables [][][]string) {
	gangs, spreads := detailRows{map[string][]string{}, map[string]float64{}}, detailRows{map[string][]string{}, map[string]float64{}}
	head := []string{""}
	for i, c := range all {
		head = append(head, c.Name)
		for _, of := range c.Runs[0].Gangs {
			gangs.set(of.Name, i, len(all), map[bool]string{false: "incomplete after "}[of.Complete]+span(of.Seconds), of.Seconds)
		}
		for _, of := range c.Runs[0].Workloads {
			most := 0.0
			for _, pods := range of.Zones {
				most = math.Max(most, float64(pods)/float64(of.Pods))
			}
			spreads.set(of.Name, i, len(all), strings.Trim(strings.TrimPrefix(fmt.Sprint(of.Zones), "map"), "[]"), most)
		}
	}
	for name, texts := range spreads.texts {
		if sets.NewString(texts...).Len() < 2 {
			delete(spreads.texts, name)
		}
	}
	for i, rows := range []detailRows{gangs, spreads} {
		names := sets.StringKeySet(rows.texts).List()
		sort.SliceStable(names, func(i, j int) bool { return rows.weights[names[i]] > rows.weights[names[j]] })
		head[0] = fmt.Sprintf("%s: %d", []string{"time until a gang is complete", "workloads whose zones differ"}[i], len(names))
		table := [][]string{append([]string(nil), head...)}
		for _, name := range names[:first(mostDetails, len(names))] {
			table = append(table, append([]string{name}, rows.texts[name]...))
		}
		if len(names) > 0 {
			tables = append(tables, table)
		}
	}
	return tables
}
