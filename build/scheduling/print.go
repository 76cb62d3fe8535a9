// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"
)

const (
	// none fills an empty cell, as in kubectl.
	none = "<none>"
	// fewNodes limits the nodes with scores, and the names in a list, and widthOfCell the characters of a cell, unless all
	// are requested.
	fewNodes    = 4
	widthOfCell = 80
)

// printer prints an answer. It prints values from the cluster only with line and table, which escape them.
type printer struct {
	out  io.Writer
	wide bool
	now  time.Time
}

// line prints one line and escapes its arguments.
func (p printer) line(format string, arguments ...string) {
	safe := make([]any, len(arguments))
	for i := range arguments {
		safe[i] = escape(arguments[i])
	}
	fmt.Fprintf(p.out, format+"\n", safe...)
}

// table prints rows below a title; nothing if there are no rows.
func (p printer) table(title string, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	if title != "" {
		p.line("\n%s:", title)
	}
	writer := printers.GetNewTabWriter(p.out)
	defer writer.Flush()
	for _, row := range slices.Insert(rows, 0, header) {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(writer, "\t")
			}
			if !p.wide {
				cell = cut(cell, widthOfCell)
			}
			fmt.Fprint(writer, escape(cmp.Or(cell, none)))
		}
		fmt.Fprintln(writer)
	}
}

// ago formats the time since then as kubectl does.
func (p printer) ago(then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return since(p.now, then)
}

// some joins the first few names, or all with -o wide.
func (p printer) some(names []string) string {
	if !p.wide && len(names) > fewNodes {
		return strings.Join(names[:fewNodes], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

func (p printer) pod(record podRecord) {
	p.line("%s", record.Summary)
	var permits [][]string
	for _, wait := range record.Permit {
		permits = append(permits, []string{wait.Plugin, p.ago(wait.Since)})
	}
	p.table("Waits for Permit plugins", []string{"PLUGIN", "SINCE"}, permits)
	if len(record.Attempts) == 0 {
		return
	}
	last := record.Attempts[0]
	p.decision(last.decision)
	var steps [][]string
	for _, step := range last.Steps {
		steps = append(steps, []string{step.ExtensionPoint, lasted(step.Seconds), step.Status})
	}
	p.table("Steps after a node was chosen", []string{"STEP", "TOOK", "STATUS"}, steps)
	header := []string{"NUMBER", "AGE", "WAITED", "WOKEN BY", "RESULT"}
	if p.wide {
		header = append(header, "SINCE FIRST", "SEARCH", "TO END", "PROFILE", "NODES", "FEASIBLE", "ERROR")
	}
	var attempts [][]string
	for _, a := range record.Attempts {
		row := []string{strconv.Itoa(a.Attempt), p.ago(a.Time), lasted(a.QueuedSeconds), a.WokenBy, a.Result}
		if p.wide {
			row = append(row, lasted(a.SinceFirstSeconds), lasted(a.CycleSeconds), lasted(a.ToEndSeconds), a.Profile,
				fmt.Sprintf("%d of %d", a.Evaluated, a.Nodes), strconv.Itoa(a.Feasible), a.Error)
		}
		attempts = append(attempts, row)
	}
	p.table("Attempts", header, attempts)
	if record.Result == "Unschedulable" {
		p.line("\nnext: kubectl scheduling --namespace %s what-if %s shows what it lacks", record.Namespace, record.Name)
	}
}

// decision prints the rejections and scores of nodes.
func (p printer) decision(d decision) {
	var rejections [][]string
	for _, r := range d.Rejections {
		nodes := strconv.Itoa(r.Nodes)
		if d.Evaluated == 0 {
			nodes = "all"
		}
		rejections = append(rejections, []string{nodes, plugin(r.Plugin), strings.Join(r.Reasons, ", "), p.some(r.Sample)})
	}
	p.table("Rejected", []string{"NODES", "PLUGIN", "REASONS", "SUCH AS"}, rejections)
	if d.Preemption != nil {
		p.line("\nPreemption:\n%s", d.Preemption.sentences(p.some))
	}
	var extenders [][]string
	for _, call := range d.Extenders {
		extenders = append(extenders, []string{call.URL, call.Verb, lasted(call.Seconds), strconv.Itoa(call.NodesIn), strconv.Itoa(call.NodesOut), call.Error})
	}
	p.table("Extenders", []string{"URL", "VERB", "TOOK", "NODES IN", "NODES OUT", "ERROR"}, extenders)
	p.scores(d)
	for i, said := range d.Words {
		if i == 0 {
			p.line("\nFrom plugins:")
		}
		p.line("%s: %s", said.Plugin, said.Text)
	}
}

// scores prints the best nodes and the chosen one as columns, and plugins as rows, because there are many plugins.
func (p printer) scores(d decision) {
	if len(d.Scores) == 0 {
		return
	}
	shown := d.Scores
	if !p.wide && len(shown) > fewNodes {
		shown = slices.Clone(shown[:fewNodes])
		if chosen := slices.IndexFunc(d.Scores, func(s nodeScores) bool { return s.Node == d.Node }); chosen >= fewNodes {
			shown = append(shown, d.Scores[chosen])
		}
	}
	header, total, extenders := []string{"PLUGIN"}, []string{"total"}, []string{"extenders"}
	extended := false
	var rows [][]string
	for _, node := range shown {
		name := node.Node
		if name == d.Node {
			name += " (chosen)"
		}
		header = append(header, name)
		total = append(total, strconv.FormatInt(node.Total, 10))
		extenders = append(extenders, strconv.FormatInt(node.Extenders, 10))
		extended = extended || node.Extenders != 0
	}
	for i, plugin := range shown[0].Plugins {
		row := []string{plugin.Name}
		for _, node := range shown {
			cell := ""
			if i < len(node.Plugins) {
				score := node.Plugins[i]
				cell = strconv.FormatInt(score.Weighted, 10)
				if p.wide {
					cell += fmt.Sprintf(" = %d × %d (raw %d)", score.Normalized, score.Weight, score.Raw)
				}
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	if extended {
		rows = append(rows, extenders)
	}
	title := fmt.Sprintf("Scores of %d of %d nodes that fit", len(shown), d.Feasible)
	p.table(title, header, append(rows, total))
	if tie := d.Tie(); tie != "" {
		p.line("%s", tie)
	}
}

// result prints the summary of a dry run, and what the pod lacks.
func (p printer) result(answer whatIf) {
	p.line("%s", answer.Summary)
	for _, sentence := range answer.Lacks {
		p.line("%s", sentence)
	}
}

func (p printer) whatIf(answer whatIf) {
	p.result(answer)
	p.decision(answer.decision)
	if answer.Gang != nil {
		p.gang(*answer.Gang)
	}
	if p.wide {
		p.line("\nScheduling paused for %s for this answer.", lasted(answer.Seconds))
	}
}

// gang prints where a gang was tried, the nodes of its pods, and the victims of preemption.
func (p printer) gang(g gang) {
	var domains, nodes, victims [][]string
	for _, d := range g.Domains {
		domains = append(domains, []string{d.Domain, strconv.Itoa(d.Found)})
	}
	p.table("Other domains", []string{"DOMAIN", "PLACES"}, domains)
	for _, n := range g.Nodes() {
		nodes = append(nodes, []string{n.Node, strconv.Itoa(len(n.Pods)), p.some(n.Pods)})
	}
	p.table("Pods of the gang", []string{"NODE", "PODS", "NAMES"}, nodes)
	for _, v := range g.Victims {
		victims = append(victims, []string{v.Node, strconv.Itoa(len(v.Pods)), p.some(v.Pods)})
	}
	p.table("To be evicted", []string{"NODE", "PODS", "NAMES"}, victims)
}

func (p printer) nodes(answer whatIf) {
	p.result(answer)
	p.line("")
	var rows [][]string
	for _, verdict := range answer.Verdicts {
		row := []string{verdict.Node, "no", "", ""}
		if verdict.Fits {
			row[1], row[2] = "yes", strconv.FormatInt(verdict.Total, 10)
		}
		var reasons []string
		for _, r := range verdict.Rejections {
			reasons = append(reasons, plugin(r.Plugin)+": "+strings.Join(r.Reasons, ", "))
		}
		if !p.wide && len(reasons) > 1 {
			reasons = append(reasons[:1], fmt.Sprintf("… (%d more)", len(reasons)-1))
		}
		row[3] = strings.Join(reasons, "; ")
		rows = append(rows, row)
	}
	p.table("", []string{"NODE", "FITS", "SCORE", "REASON"}, rows)
}

// unlisted returns the number of pending pods that are not listed.
func (q queue) unlisted() int {
	lengths := q.Lengths
	return lengths.Active + lengths.Backoff + lengths.Unschedulable + lengths.Permit - len(q.Items)
}

// only removes the pods of other namespaces, unless namespace is empty.
func (q *queue) only(namespace string) {
	q.Items = slices.DeleteFunc(q.Items, func(pod queuedPod) bool { return namespace != "" && pod.Namespace != namespace })
}

// queue prints the pods of a namespace, or all.
func (p printer) queue(answer queue, namespace string) {
	unlisted := answer.unlisted()
	if namespace != "" {
		answer.only(namespace)
	}
	switch {
	case len(answer.Items) > 0 || unlisted > 0:
	case namespace != "":
		p.line("No pods of namespace %s are pending.", namespace)
	default:
		p.line("No pods are pending.")
	}
	header := []string{"NAMESPACE", "NAME", "WHERE", "WAITS", "ATTEMPTS", "WAITS FOR"}
	if p.wide {
		header = append(header, "PROFILE", "PRIORITY", "SINCE", "TRIED IN", "NOMINATED NODE", "SUMMARY")
	}
	var rows [][]string
	for _, pod := range answer.Items {
		row := []string{pod.Namespace, pod.Name, pod.Where, p.ago(pod.First), strconv.Itoa(pod.Attempts), p.some(pod.WaitsFor)}
		if p.wide {
			until := ""
			if pod.Until != nil {
				until = since(*pod.Until, p.now)
			}
			row = append(row, pod.Profile, strconv.Itoa(int(pod.Priority)), p.ago(pod.Since), until, pod.NominatedNode, pod.Summary)
		}
		rows = append(rows, row)
	}
	p.table("", header, rows)
	if unlisted > 0 {
		p.line("\n%s more pods are pending, but not listed.", strconv.Itoa(unlisted))
	}
}
