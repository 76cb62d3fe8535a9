// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

const (
	// chartPoints limits the points of a line.
	chartPoints = 300
	// chartLeft, chartTop, chartWidth and chartHeight are the area in which lines are drawn.
	chartLeft, chartTop, chartWidth, chartHeight = 54, 8, 500, 160
	// mapWidth is the width of a heat map. Squares are mapFew apart, or mapMany if there are more than mapNodes.
	mapWidth, mapFew, mapMany, mapNodes = 384, 16, 8, 600
)

// chart is the course of a sampled value.
type chart struct {
	Title string
	// Lines are SVG paths by configuration; empty if it has no such value.
	Lines []string
	X, Y  []mark
}

// mark is a text at a position.
type mark struct {
	X, Y float64
	Text string
}

// curve has the sums and numbers of samples around equidistant times.
type curve [chartPoints]struct{ sum, count float64 }

// charts returns a chart for each sampled value, sorted by name.
func charts(runs []result.Run, all []configuration) []chart {
	end, curves := 1e-9, map[string][]curve{}
	for _, run := range runs {
		end = math.Max(end, run.Seconds)
	}
	for i, c := range all {
		for _, run := range c.Runs {
			for _, sample := range run.Samples {
				for name, v := range sample.Values {
					if curves[name] == nil {
						curves[name] = make([]curve, len(all))
					}
					p := &curves[name][i][first(chartPoints-1, int(math.Round(sample.Seconds/end*(chartPoints-1))))]
					p.sum, p.count = p.sum+v, p.count+1
				}
			}
		}
	}
	var charts []chart
	for _, name := range sets.StringKeySet(curves).List() {
		charts = append(charts, newChart(name, curves[name], end))
	}
	return charts
}

func newChart(name string, curves []curve, end float64) chart {
	c, low, high := chart{Title: name}, math.Inf(1), math.Inf(-1)
	for _, curve := range curves {
		for _, p := range curve {
			if p.count > 0 {
				low, high = math.Min(low, p.sum/p.count), math.Max(high, p.sum/p.count)
			}
		}
	}
	// The scale starts at 0, unless the lines would have less than a quarter of the height.
	if low > 0 && low < 0.75*high {
		low = 0
	}
	yStep := roundStep((high - low) / 5)
	low, high = math.Floor(low/yStep), math.Max(math.Floor(low/yStep)+1, math.Ceil(high/yStep))
	y := func(v float64) float64 { return chartTop + chartHeight*(high-v/yStep)/(high-low) }
	for i := low; i <= high; i++ {
		c.Y = append(c.Y, mark{chartLeft - 6, y(i * yStep), number(i*yStep, decimals(yStep, 1))})
	}
	x := func(t float64) float64 { return chartLeft + chartWidth*t/end }
	xSteps := []float64{1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400, 86400 * roundStep(end/6/86400)}
	xStep := xSteps[first(len(xSteps)-1, sort.SearchFloat64s(xSteps, end/6))]
	for t := 0.0; t <= end; t += xStep {
		c.X = append(c.X, mark{x(t), chartTop + chartHeight, span(t)})
	}
	for _, curve := range curves {
		path := ""
		for i, p := range curve {
			if p.count > 0 {
				path += fmt.Sprintf(" %.1f %.1f", x(end*float64(i)/(chartPoints-1)), y(p.sum/p.count))
			}
		}
		c.Lines = append(c.Lines, strings.Replace(path, " ", "M", 1))
	}
	return c
}

// roundStep returns the smallest of 1, 2, 5, 10, … and of their tenths that is not below a step.
func roundStep(step float64) float64 {
	if step <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(step)))
	return power * []float64{1, 2, 5, 10}[sort.SearchFloat64s([]float64{1, 2, 5}, step/power)]
}

// span formats a time in seconds.
func span(seconds float64) string {
	if seconds < 10 {
		return number(seconds, decimals(seconds, 2)) + "s"
	}
	return duration.HumanDuration(time.Duration(seconds * float64(time.Second)))
}

// mostViews limits the views of a map, and so the size of a page.
const mostViews = 6

// views returns what a map can show: the fullest resource, or one of the resources.
func views(all []configuration) []string {
	resources := sets.NewString()
	for _, c := range all {
		for _, node := range c.Runs[0].Nodes {
			resources = resources.Union(sets.StringKeySet(node.Allocated))
		}
	}
	names := append([]string{"fullest resource"}, resources.List()...)
	return names[:first(mostViews, len(names))]
}

// heatMap has a square for each node, in rows below the title of its zone.
type heatMap struct {
	Height, Size int
	Squares      []mark // with the texts of the nodes
	Views        []heatView
}

// heatView is the colours of a map for a resource.
type heatView struct {
	Zones []mark
	// Buckets are paths of the nodes that are empty, up to 10 %, up to 20 %, …, and above 100 %.
	Buckets [12][]byte
}

// Map returns the heat map of the first seed. A node without the resource of a view has no colour.
func (c configuration) Map(views []string) heatMap {
	zones, nodes, pitch := map[string][]int{}, c.Runs[0].Nodes, mapFew
	for i, node := range nodes {
		zones[node.Zone] = append(zones[node.Zone], i)
	}
	if len(nodes) > mapNodes {
		pitch = mapMany
	}
	m, columns := heatMap{Size: pitch - 1, Views: make([]heatView, len(views))}, mapWidth/pitch
	for _, name := range sets.StringKeySet(zones).List() {
		top, sums, counts := m.Height+18, make([]float64, len(views)), make([]float64, len(views))
		for i, n := range zones[name] {
			fullest, title := 0.0, fmt.Sprintf("%s, %d pods", nodes[n].Name, nodes[n].Pods)
			for _, resource := range sets.StringKeySet(nodes[n].Allocated).List() {
				share := nodes[n].Allocated[resource]
				fullest = math.Max(fullest, share)
				title += fmt.Sprintf(", %s %.0f", resource, 100*share)
				if used, ok := nodes[n].Used[resource]; ok {
					title += fmt.Sprintf("/%.0f", 100*used)
				}
			}
			square := mark{float64(i%columns*pitch + pitch/2), float64(top + i/columns*pitch), title}
			m.Squares = append(m.Squares, square)
			for v, view := range views {
				share, has := nodes[n].Allocated[view]
				if v == 0 {
					share = fullest
				} else if !has {
					continue
				}
				bucket := &m.Views[v].Buckets[first(len(m.Views[v].Buckets)-1, int(math.Ceil(10*share-1e-9)))]
				*bucket = append(*bucket, fmt.Sprintf("M%g %gv%d", square.X, square.Y, m.Size)...)
				sums[v], counts[v] = sums[v]+100*share, counts[v]+1
			}
		}
		for v := range views {
			title := fmt.Sprintf("%s (nodes: %g, mean: %.0f %%)", name, counts[v], sums[v]/math.Max(1, counts[v]))
			m.Views[v].Zones = append(m.Views[v].Zones, mark{0, float64(top - 5), title})
		}
		m.Height = top + (len(zones[name])+columns-1)/columns*pitch
	}
	return m
}
