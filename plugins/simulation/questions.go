// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/report"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// The questions about a snapshot.
const (
	modeCheck  = "check"
	modeFit    = "fit"
	modeDrain  = "drain"
	modeShrink = "shrink"
	modeGrow   = "grow"
	modeLose   = "lose"
)

// question is a question about a snapshot, which one run answers.
type question struct {
	Mode  string
	Nodes []string
	Zone  string
	Limit int
	// Each asks for each of the nodes, or of the cluster's, alone.
	Each bool
}

// ask answers a question for each configuration.
func (o *options) ask(asked question) error {
	if o.output != "" && o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output %s is unknown here; next: json, or no --output", o.output)
	}
	if (asked.Mode == modeFit || asked.Mode == modeGrow) && asked.Limit < 1 {
		return errors.New("--limit is at least 1")
	}
	w, err := o.prepare()
	if err != nil {
		return err
	}
	if w.trace != nil && !w.History {
		return fmt.Errorf("--trace %s is not a history, which has the real nodes of its pods; next: kubectl scheduling history --help", o.trace)
	}
	w.Question, w.Again = asked, o.eachConfiguration
	method, input, warnings := w.method(), w.describe(), w.warnings()
	path, err := w.save()
	if err != nil {
		return err
	}
	var tasks []task
	for i := range w.Configurations {
		tasks = append(tasks, task{Path: path, Configuration: i, Seed: o.firstSeed})
	}
	o.jobs = 1
	answers, err := o.runTasks(o.context, replay.Process{}, tasks)
	os.Remove(path) // Not later: head may close the pipe, which ends this process.
	if o.context.Err() != nil {
		err = replay.ErrInterrupted
	}
	if err != nil {
		return err
	}
	if o.output == "json" {
		for _, text := range warnings {
			fmt.Fprintln(o.errOut, "warning:", report.Escape(text))
		}
		fmt.Fprintln(o.errOut, "Not modelled:\n  "+strings.ReplaceAll(notModelled(), "; ", "\n  "))
		all := map[string]json.RawMessage{}
		for i := range answers {
			for _, note := range answers[i].Notes {
				fmt.Fprintln(o.errOut, report.Escape("Note: "+note))
			}
			all[w.Configurations[i].Name] = answers[i].Answer
		}
		content, err := json.MarshalIndent(all, "", "  ")
		if err == nil {
			_, err = io.WriteString(o.out, report.EscapeLines(string(content))+"\n")
		}
		return err
	}
	p := &printer{out: o.out}
	if method != "" {
		p.line("%s", method)
	}
	for i := range answers {
		if len(answers) > 1 {
			p.line("%s:", w.Configurations[i].Name)
		}
		if err := p.answer(asked, answers[i].Answer); err != nil {
			return err
		}
		for _, note := range answers[i].Notes {
			p.line("Note: %s", note)
		}
	}
	for _, text := range append(input, warnings...) {
		p.line("%s", text)
	}
	p.line("Not modelled:")
	for _, part := range strings.Split(notModelled(), "; ") {
		p.line("  %s", part)
	}
	return p.err
}

// answer returns the answer to the question, in JSON. The pods of a check are not in the cluster yet.
func (w *work) answer(s *replay.Simulation, again []*v1.Pod) (json.RawMessage, error) {
	var answer interface{}
	var err error
	switch asked := w.Question; asked.Mode {
	case modeCheck:
		if w.History {
			answer = s.CheckHistory(w.Events)
		} else {
			answer = s.Check(again)
		}
	case modeFit:
		answer = s.Fit(w.Workloads, asked.Limit)
	case modeDrain:
		if asked.Each {
			answer, err = w.drainEach(s)
		} else {
			answer, err = s.Drain(asked.Nodes)
		}
	case modeShrink:
		answer = s.Shrink()
	case modeGrow:
		answer = s.Grow(w.Template, w.Workloads, asked.Limit)
	case modeLose:
		names := asked.Nodes
		if asked.Zone != "" {
			if names = s.NodesOfZone(asked.Zone); len(names) == 0 {
				return nil, fmt.Errorf("no node of the snapshot is in zone %q; next: choose a value of the label %s", asked.Zone, v1.LabelTopologyZone)
			}
		}
		answer, err = s.Lose(names)
	default:
		err = errors.New("this question is unknown")
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// drainEach drains nodes one after the other, each with all others in place.
func (w *work) drainEach(s *replay.Simulation) ([]result.Drain, error) {
	names := w.Question.Nodes
	if len(names) == 0 {
		for _, node := range w.cluster.Nodes {
			names = append(names, node.Name)
		}
	}
	var drains []result.Drain
	for _, name := range names {
		drain, err := s.Drain([]string{name})
		if err != nil {
			return nil, err
		}
		drains = append(drains, drain)
	}
	return drains, nil
}

// printer prints answers as text.
type printer struct {
	out interface{ Write([]byte) (int, error) }
	err error
}

func (p *printer) line(format string, args ...interface{}) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, report.Escape(fmt.Sprintf(format, args...)))
	}
}

// most limits the lines of a list.
const most = 20

// list prints the first lines of a list.
func (p *printer) list(n int, text func(int) string) {
	for i := 0; i < n && i < most; i++ {
		p.line("  %s", text(i))
	}
	if n > most {
		p.line("  … and %d more: --output json has all", n-most)
	}
}

func (p *printer) placements(of []result.Placement) {
	p.list(len(of), func(i int) string {
		if of[i].Node != "" {
			return of[i].Pod + " → " + of[i].Node
		}
		return of[i].Pod + ": " + of[i].Reason
	})
}

// answer prints the answer to a question.
func (p *printer) answer(asked question, content json.RawMessage) error {
	answers := map[string]interface{}{
		modeCheck: &result.Check{}, modeFit: &[]result.Fit{}, modeDrain: &result.Drain{}, modeShrink: &result.Shrink{},
		modeGrow: &result.Grow{}, modeLose: &result.Lose{},
	}
	answer := answers[asked.Mode]
	if asked.Each {
		answer = &[]result.Drain{}
	}
	if err := json.Unmarshal(content, answer); err != nil {
		return err
	}
	switch answer := answer.(type) {
	case *result.Check:
		p.check(answer)
	case *[]result.Fit:
		for _, fit := range *answer {
			p.line("%s: %d more fit, on %d nodes", fit.Workload, fit.Count, len(fit.On))
			if fit.Reason != "" {
				p.line("  the next one does not: %s", fit.Reason)
			}
		}
	case *[]result.Drain:
		for _, drain := range *answer {
			p.line("%s: %s", drain.Nodes[0], drained(&drain))
		}
	case *result.Drain:
		p.drain(answer)
	case *result.Shrink:
		p.line("%d of %d nodes can go, in this order:", len(answer.Remove), len(answer.Remove)+len(answer.Keep))
		p.list(len(answer.Remove), func(i int) string {
			return fmt.Sprintf("%s: %d pods move", answer.Remove[i].Nodes[0], len(answer.Remove[i].Moved))
		})
		p.line("%d nodes must stay:", len(answer.Keep))
		p.list(len(answer.Keep), func(i int) string { return answer.Keep[i].Nodes[0] + ": " + obstacle(&answer.Keep[i]) })
	case *result.Grow:
		p.line("%d pods wait. %d new nodes give a place to %d of them.", answer.Before, answer.Nodes, answer.Before-len(answer.Wait))
		if len(answer.Wait) > 0 {
			p.line("%d pods do not fit on such a node:", len(answer.Wait))
			p.placements(answer.Wait)
		}
	case *result.Lose:
		p.line("%d nodes with %d pods are gone. %d pods have another node, %d pods wait (%d did before), and %d have no owner that makes them again.",
			answer.Nodes, answer.Pods, answer.Placed, len(answer.Wait), answer.Before, len(answer.Gone))
		p.placements(answer.Wait)
	}
	return p.err
}

func (p *printer) drain(drain *result.Drain) {
	if drain.Free() {
		p.line("The drain of %s can finish: %d pods move, %d stay.", strings.Join(drain.Nodes, ", "), len(drain.Moved), drain.Stay)
	} else {
		p.line("The drain of %s cannot finish: %d pods move, %d would wait, %d are blocked, %d have no owner, %d stay.",
			strings.Join(drain.Nodes, ", "), len(drain.Moved), len(drain.Wait), len(drain.Blocked), len(drain.Lost), drain.Stay)
	}
	p.placements(drain.Wait)
	p.list(len(drain.Blocked), func(i int) string {
		return drain.Blocked[i].Pod + ": " + blocked(drain.Blocked[i])
	})
	p.list(len(drain.Lost), func(i int) string { return drain.Lost[i] + ": no owner makes it again" })
	p.placements(drain.Moved)
}

// blocked returns why a pod is not evicted.
func blocked(by result.Blocked) string {
	if by.Several {
		return "Kubernetes 1.23 does not evict a pod that several PodDisruptionBudgets select: " + by.Budget
	}
	return "PodDisruptionBudget " + by.Budget + " allows no disruption"
}

// drained returns the outcome of a drain in one line.
func drained(drain *result.Drain) string {
	if drain.Free() {
		return fmt.Sprintf("%d pods move", len(drain.Moved))
	}
	return "cannot go: " + obstacle(drain)
}

// obstacle returns a reason why a node cannot go: first one that needs a person.
func obstacle(drain *result.Drain) string {
	switch {
	case drain.Kept != "":
		return drain.Kept
	case len(drain.Blocked) > 0:
		return drain.Blocked[0].Pod + " is blocked: " + blocked(drain.Blocked[0])
	case len(drain.Wait) > 0:
		return fmt.Sprintf("%s would wait: %s", drain.Wait[0].Pod, drain.Wait[0].Reason)
	case len(drain.Lost) > 0:
		return drain.Lost[0] + " has no owner that makes it again"
	}
	return "another pod would wait"
}

func (p *printer) check(c *result.Check) {
	if c.Pods == 0 {
		p.line("No pod of the snapshot was placed by a scheduler.")
		return
	}
	p.line("%.1f %% of %d pods agree: %d get their real node again, and %d a node with the same score. %d pods of DaemonSets and static pods stay.",
		100*float64(c.Same+c.Equal)/float64(c.Pods), c.Pods, c.Same, c.Equal, c.Kept)
	var reasons []string
	for reason := range c.Others {
		reasons = append(reasons, reason)
	}
	sort.Slice(reasons, func(i, j int) bool {
		a, b := len(c.Others[reasons[i]]), len(c.Others[reasons[j]])
		return a > b || a == b && reasons[i] < reasons[j]
	})
	p.list(len(reasons), func(i int) string {
		pods := c.Others[reasons[i]]
		return fmt.Sprintf("%d pods, for example %s: %s", len(pods), pods[0], reasons[i])
	})
}

// describe returns the input, one line each.
func (w *work) describe() []string {
	waiting := 0
	for _, of := range w.cluster.Pods {
		if of.Spec.NodeName == "" {
			waiting++
		}
	}
	lines := []string{fmt.Sprintf("Snapshot: %d nodes, %d pods, of which %d are pending", len(w.cluster.Nodes), len(w.cluster.Pods), waiting)}
	if w.History {
		lines = w.describeHistory()
	} else if w.trace != nil {
		pods := 0
		for i := range w.trace.Events {
			if of := w.trace.Events[i].Pods; of != nil {
				pods += of.Count
			}
		}
		lines = append(lines, fmt.Sprintf("Trace: %d events, %d pods", len(w.trace.Events), pods))
	}
	ignored := sets.StringKeySet(w.cluster.Ignored).List()
	for i, kind := range ignored {
		ignored[i] = fmt.Sprintf("%d %s", w.cluster.Ignored[kind], kind)
	}
	if len(ignored) > 0 {
		lines = append(lines, "Not used: "+strings.Join(ignored, ", "))
	}
	return lines
}

// warnings returns the warnings of reading the input.
func (w *work) warnings() []string {
	warnings := append([]string(nil), w.cluster.Warnings...)
	if w.trace != nil {
		warnings = append(warnings, w.trace.Warnings...)
	}
	return warnings
}
