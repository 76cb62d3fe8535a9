// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"slices"
	"strconv"
)

// stage is a row of the funnel: a text above a bar. The edges of the bar represent the rejected nodes.
type stage struct {
	Text, Class string
	// From and Width are the start and the width of the bar in percent, KeptFrom and Kept those of its middle. Top and
	// Base are the positions of the bar and of the text in em.
	From, Width, KeptFrom, Kept string
	Top, Base                   float64
}

// funnel is a picture of a decision: from all nodes to the chosen one.
type funnel struct {
	nodes  int
	Stages []stage
	Height float64
	// Words are the texts of the stages.
	Words string
}

// rejectingPlugins limits the rows of plugins in the funnel.
const rejectingPlugins = 6

// add appends a stage with a number of nodes, and with the number that it keeps.
func (f *funnel) add(class, text string, nodes, kept int) {
	s := stage{
		Text: cut(text, 44), Class: class, Top: f.Height + 1.35, Base: f.Height + 1,
		Width: percent(nodes, f.nodes), Kept: percent(kept, f.nodes),
	}
	s.From, s.KeptFrom = margin(s.Width), margin(s.Kept)
	if f.Words != "" {
		f.Words += "; "
	}
	f.Stages, f.Height, f.Words = append(f.Stages, s), f.Height+2.5, f.Words+text
}

// margin returns the space before a bar in the middle, in percent.
func margin(width string) string {
	w, _ := strconv.ParseFloat(width, 64)
	return strconv.FormatFloat((100-w)/2, 'f', 2, 64)
}

// Funnel returns the picture of a decision.
func (d decision) Funnel() *funnel {
	f := &funnel{nodes: d.Nodes}
	f.add("kept", counted(d.Nodes, "node")+" in the cluster", d.Nodes, d.Nodes)
	if d.Evaluated < d.Nodes {
		f.add("kept", fmt.Sprint(d.Evaluated)+" evaluated", d.Evaluated, d.Evaluated)
	}
	rejected, plugins := d.rejectedByPlugin()
	// If each node is rejected only once, each row starts with the nodes that the previous row kept.
	once, left := rejected+d.Feasible <= d.Evaluated, d.Evaluated
	for _, p := range plugins {
		text := fmt.Sprint(cut(plugin(p.Plugin), 28), " rejects ", p.Nodes)
		if d.Evaluated == 0 {
			text = cut(plugin(p.Plugin), 28) + " rejects the pod"
		}
		if p.Plugin == otherPlugins {
			text = fmt.Sprint("other plugins reject ", p.Nodes)
		}
		f.add("rejected", text, left, left-p.Nodes)
		if once {
			left -= p.Nodes
		}
	}
	fit := " nodes fit"
	if d.Feasible == 1 {
		fit = " node fits"
	}
	f.add("kept", fmt.Sprint(d.Feasible)+fit, d.Feasible, d.Feasible)
	if d.Feasible > 1 && len(d.Scores) > 0 {
		f.add("kept", fmt.Sprint(d.Feasible)+" scored", d.Feasible, d.Feasible)
	}
	if d.Ties > 1 && d.Node != "" {
		f.add("chosen", fmt.Sprintf("chosen of %d: %s", d.Ties, d.Node), 1, 1)
	} else if d.Node != "" {
		f.add("chosen", "chosen: "+d.Node, 1, 1)
	}
	return f
}

// rejectedByPlugin returns the number of rejections in total, and by plugin in descending order.
func (d decision) rejectedByPlugin() (all int, plugins []rejection) {
	for _, r := range d.Rejections {
		all += r.Nodes
		at := slices.IndexFunc(plugins, func(p rejection) bool { return p.Plugin == r.Plugin })
		if at < 0 {
			at = len(plugins)
			plugins = append(plugins, rejection{Plugin: r.Plugin})
		}
		plugins[at].Nodes += r.Nodes
	}
	slices.SortStableFunc(plugins, func(a, b rejection) int { return b.Nodes - a.Nodes })
	if len(plugins) > rejectingPlugins {
		others := rejection{Plugin: otherPlugins}
		for _, p := range plugins[rejectingPlugins-1:] {
			others.Nodes += p.Nodes
		}
		plugins = append(plugins[:rejectingPlugins-1], others)
	}
	return all, plugins
}

// cut shortens a text for a picture. The tables have the full text.
func cut(text string, length int) string {
	if letters := []rune(text); len(letters) > length {
		return string(letters[:length-1]) + "…"
	}
	return text
}

// percent returns number as a percentage of another number, 0 to 100. Small positive results are rounded up to 0.5.
func percent(number, of any) string {
	n, err := strconv.ParseFloat(fmt.Sprint(number), 64)
	all, _ := strconv.ParseFloat(fmt.Sprint(of), 64)
	switch {
	case err != nil || n <= 0 || all <= 0:
		return "0"
	case n >= all:
		return "100"
	case n < all/200:
		return "0.5"
	}
	return strconv.FormatFloat(100*n/all, 'f', 2, 64)
}
