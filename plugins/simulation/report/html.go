// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed" // For the template.
	"html/template"
	"io"
	"math"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
	"sigs.k8s.io/yaml"
)

//go:embed report.html
var source string

// pageTemplate escapes all values.
var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"span": span, "first": first,
	"wait":  func(p *result.Pod) string { return span(p.Bound - p.Created) },
	"color": func(configuration int) int { return configuration % 6 },
	// The opacities are of the buckets of a heat map.
	"opacities": func() []float64 { return []float64{1, .08, .12, .18, .26, .35, .45, .57, .7, .84, 1, 1} },
	"yaml": func(record []byte) (string, error) {
		text, err := yaml.JSONToYAML(record)
		return string(text), err
	},
}).Parse(source))

// movedPod is a pod whose node differs between configurations.
type movedPod struct {
	Name string
	// Places are by configuration; nil if it has no such pod.
	Places []*result.Pod
	// difference is between the longest and the shortest wait; infinite if it was placed by some configurations only.
	difference float64
}

// HTML writes the comparison as a page without scripts, which loads nothing.
func HTML(w io.Writer, c *result.Comparison) error {
	all := configurations(c)
	var text strings.Builder
	if err := pageTemplate.Execute(&text, struct {
		*result.Comparison
		Configurations []configuration
		Table          []*row
		Explanation    string
		Details        [][][]string
		Charts         []chart
		Views          []string
		Moved          []movedPod
	}{c, all, table(all), explanation(all), details(all), charts(c.Runs, all), views(all), moved(all)}); err != nil {
		return err
	}
	_, err := io.WriteString(w, EscapeLines(text.String()))
	return err
}

// moved returns the pods of the first seed whose node differs: those that a configuration did not place, and then by the
// difference of their waits.
func moved(all []configuration) []movedPod {
	places := map[string][]*result.Pod{}
	for i, c := range all {
		for j := range c.Runs[0].Pods {
			pod := &c.Runs[0].Pods[j]
			if places[pod.Name] == nil {
				places[pod.Name] = make([]*result.Pod, len(all))
			}
			places[pod.Name][i] = pod
		}
	}
	var pods []movedPod
	for _, name := range sets.StringKeySet(places).List() {
		nodes, shortest, longest := sets.NewString(), math.Inf(1), 0.0
		for _, p := range places[name] {
			node, wait := "", math.Inf(1)
			if p != nil && p.Node != "" {
				node, wait = p.Node, p.Bound-p.Created
			}
			nodes.Insert(node)
			shortest, longest = math.Min(shortest, wait), math.Max(longest, wait)
		}
		if len(nodes) > 1 {
			pods = append(pods, movedPod{name, places[name], longest - shortest})
		}
	}
	sort.SliceStable(pods, func(i, j int) bool { return pods[i].difference > pods[j].difference })
	return pods
}
