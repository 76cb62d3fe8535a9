// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"kube-scheduler-fork/build/nextstep"
)

// promWriter writes what is known.
type promWriter struct {
	*promReader
	*templates
	// happened are the lines to write.
	happened []happening
	// likes has the pod of each spec, and specOf the spec of each pod.
	likes, specOf map[string]string
	// counts has the sentences of the summary with their numbers.
	counts         map[string]int
	written, bound int
}

// happening is a line to write at a time since the start. It is made when it is written: all together would need much memory.
type happening struct {
	at    Duration
	event func() Event
}

func (w *promWriter) count(sentence string) { w.counts[sentence]++ }

func (w *promWriter) at(seconds float64, event func() Event) {
	w.happened = append(w.happened, happening{length(seconds - w.first), event})
}

// length returns a duration, which is not less than 0.
func length(seconds float64) Duration {
	return Duration(math.Round(max(0, seconds)*1000)) * Duration(time.Millisecond)
}

// write writes the history, and prints the summary.
func (r *promReader) write(ctx context.Context) (err error) {
	counts := map[string]int{"kube_pod_info": len(r.pods), "kube_node_info": len(r.nodes), "kube_namespace_created": len(r.facts.created)}
	for _, metric := range slices.Sorted(maps.Keys(counts)) {
		if counts[metric] == 0 {
			err := os.Remove(r.journal.Name()) // It would stand in the way of series that are there later.
			return nextstep.With(errors.Join(fmt.Errorf("the Prometheus at %s has no series %s with these matchers since %s: kube-state-metrics is not scraped, or its series have other labels",
				r.client.url.Redacted(), metric, clock(r.start)), err), "curl -G '%s' --data-urlencode 'query=count(%s)'",
				r.client.url.JoinPath("api/v1/query").Redacted(), selector(metric, r.Matchers))
		}
	}
	w := &promWriter{promReader: r, likes: map[string]string{}, specOf: map[string]string{}, counts: map[string]int{}}
	if w.templates, err = readTemplates(ctx, r.Live, r.facts.created); err != nil {
		return err
	}
	file, err := os.OpenFile(r.Out+".partial", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nextstep.With(err, otherOutput)
	}
	defer os.Remove(file.Name())
	err = w.writeTo(ctx, file)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), r.Out)
	}
	if err == nil {
		w.summary()
	}
	return err
}

func (w *promWriter) writeTo(ctx context.Context, file io.Writer) error {
	w.first = math.Ceil(w.first)
	w.last = max(w.first, w.last)
	out, err := NewWriter(file, Header{Start: time.Unix(int64(w.first), 0).UTC(), Source: FromPrometheus, By: w.By, Cluster: w.cluster}, w.Hide)
	if err != nil {
		return err
	}
	w.lines()
	w.at(w.last, func() Event { return Event{Last: true} })
	for i, h := range w.happened {
		if i%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		event := h.event()
		event.Time = h.at
		if err := out.Write(event); err != nil {
			return err
		}
	}
	return out.Flush()
}

// lines sets what to write. Lines of the same time have this order: nodes come before their pods, and go after them.
func (w *promWriter) lines() {
	var gone []happening
	for _, name := range slices.Sorted(maps.Keys(w.facts.nodes)) {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			w.count("node(s) are left out: their names are not valid")
			delete(w.facts.nodes, name)
		}
		for i, n := range w.facts.nodes[name] {
			next := append(w.facts.nodes[name], &promNode{created: math.Inf(1)})[i+1].created
			gone = append(gone, w.node(name, n, next)...)
		}
	}
	for key := range w.byUID {
		if strings.Contains(key, "/") {
			w.count("pod(s) have no uid in their series: of several with one name, only the last is known")
		}
	}
	for _, p := range w.pods {
		w.repair(p)
	}
	slices.SortStableFunc(w.pods, func(a, b *promPod) int { return cmp.Compare(a.created, b.created) })
	latest := map[[2]string]*promPod{}
	pods := slices.DeleteFunc(w.pods, func(p *promPod) bool { return !w.valid(p) })
	for _, p := range pods {
		key := [2]string{p.namespace, p.name}
		if earlier := latest[key]; earlier != nil && (earlier.end == 0 || earlier.end > p.created) {
			if earlier.end == 0 || earlier.end-p.created > w.interval {
				w.count("pod(s) ended, as far as is known, after the next one of their name was created: their ends are its creation")
			}
			earlier.end, earlier.scheduled = p.created, min(earlier.scheduled, p.created)
		}
		latest[key] = p
	}
	for _, p := range pods {
		if p.end > 0 && p.end <= w.first {
			w.count("pod(s) ended before the start, and are left out")
			continue
		}
		w.pod(p)
		w.written++
	}
	w.happened = append(w.happened, gone...)
	for _, gap := range w.gaps {
		missing := length(gap[1] - gap[0])
		w.at(gap[0], func() Event { return Event{Gap: &missing, Reason: "kube-state-metrics was not scraped"} })
	}
	slices.SortStableFunc(w.happened, func(a, b happening) int { return cmp.Compare(a.at, b.at) })
	w.happened = slices.DeleteFunc(w.happened, func(h happening) bool { return h.at > length(w.last-w.first) })
}

// valid reports whether the API server would accept a pod's names, and its node is known.
func (w *promWriter) valid(p *promPod) bool {
	if p.owner[0] == "" || len(p.owner[0])+len(p.owner[1]) > 319 || strings.ContainsAny(p.owner[0]+p.owner[1], "/\n") {
		p.owner = [2]string{}
	}
	ok := len(validation.IsDNS1123Label(p.namespace))+len(validation.IsDNS1123Subdomain(p.name)) == 0 && (p.node == "" || w.facts.nodes[p.node] != nil)
	if !ok {
		w.count("pod(s) are left out: their names are not valid, or their node has no series")
	}
	return ok
}

// repair puts the times of a pod in order, and sets its end. A clock may run backwards.
func (w *promWriter) repair(p *promPod) {
	wrong := p.created <= 0 || p.first > 0 && p.created > p.first+w.interval
	if wrong {
		p.created = p.first
	}
	if p.node == "" || p.scheduled == 0 && w.renamed > 0 && w.samples["kube_pod_status_scheduled_time"] > 0 {
		// A pod that waits has no node, and then the label may be that of the target.
		p.node, p.scheduled = "", 0
	} else if p.scheduled < p.created {
		p.scheduled, wrong = p.created, true
	}
	p.end = w.ended(p)
	if least := max(p.created, p.scheduled); p.end != 0 && p.end < least {
		p.end, wrong = least, true
	}
	if wrong {
		w.count("pod(s) have no time of their creation or binding, or times that cannot be: they are moved to the next time that can")
	}
}

// ended returns when a pod no longer held resources, or 0.
func (w *promWriter) ended(p *promPod) float64 {
	if p.went > 0 && p.went-p.first < w.interval/2 {
		w.count("pod(s) were seen in one scrape only: their times are those of their creation and of the next scrape")
	}
	if w.samples["kube_pod_status_phase"] == 0 && p.owner[0] == "Job" { // Containers of others begin again.
		p.finished = p.completed
	}
	switch {
	case p.finished > 0:
		return cmp.Or(p.completed, p.finished)
	case p.went == 0 || p.went > w.last-w.interval/2: // The last scrape saw it.
		return 0
	}
	end := p.went + w.interval/2
	for _, gap := range w.gaps {
		if p.went > gap[0]-w.interval && p.went < gap[1]-w.interval/2 {
			end = (gap[0] + gap[1]) / 2
			w.count("pod(s) ended in a gap: their end is its middle")
		}
	}
	return min(end, w.last)
}

// pod adds what happens to a pod.
func (w *promWriter) pod(p *promPod) {
	key := p.namespace + "/" + p.name
	w.at(p.created, func() Event { return w.creation(p, key) })
	if p.node != "" && (p.created >= w.first || p.scheduled > w.first) {
		w.at(p.scheduled, func() Event { return Event{Bound: key, On: p.node} })
		w.bound++
	}
	for _, use := range p.use {
		if at := max(use.at, p.scheduled); p.node != "" && (p.end == 0 || at < p.end) {
			w.at(at, func() Event {
				amounts := map[string]string{}
				for i, resource := range useOf {
					if use.amounts[i] >= 0 {
						amounts[resource] = quantity(resource, use.amounts[i])
					}
				}
				return Event{Of: key, Use: amounts}
			})
		}
	}
	if p.finished == 0 && (p.deleted > 0 || p.end > 0 && p.owner[0] != "Job") {
		// The timestamp is when the grace period ends. Without one, the pod was deleted between two scrapes.
		at := p.end
		if p.deleted > 0 {
			at = min(max(p.scheduled, p.created, p.deleted-w.grace(p)), cmp.Or(p.end, math.Inf(1)))
		}
		w.at(at, func() Event { return Event{Delete: key} })
	}
	if p.end > 0 {
		w.at(p.end, func() Event { return Event{Ended: key} })
	}
}

// creation returns the event of a pod's creation.
func (w *promWriter) creation(p *promPod, key string) Event {
	event := Event{}
	if p.owner[0] != "" {
		event.Owner = p.owner[0] + "/" + p.owner[1]
		if made := w.workloads[[3]string{p.namespace, p.owner[0], p.owner[1]}]; made[0] != "" && !strings.ContainsAny(made[0]+made[1], "/") {
			event.Workload = made[0] + "/" + made[1]
		}
	}
	if p.created < w.first {
		age := length(w.first - p.created)
		event.Age = &age
		if p.scheduled <= w.first {
			event.On = p.node
		}
	}
	metadata, spec := w.spec(p)
	content, _ := json.Marshal([]any{metadata, spec}) // It came as JSON.
	sum := sha256.Sum256(content)
	text := string(sum[:])
	if old := w.specOf[key]; w.likes[old] == key && old != text {
		delete(w.likes, old) // NAMESPACE/NAME is the latest pod of that name.
	}
	if like, is := w.likes[text]; is {
		event.Namespace, event.Name, event.Like = p.namespace, p.name, like
		return event
	}
	w.likes[text], w.specOf[key] = key, text
	metadata["namespace"], metadata["name"] = p.namespace, p.name
	event.Pod = object{"metadata": metadata, "spec": spec}
	return event
}

// quantity returns an amount as Kubernetes writes it.
func quantity(resource string, value float64) string {
	value = min(max(0, value), 1<<60)
	if milli := int64(math.Round(min(value, 1<<50) * 1000)); resource == "cpu" && milli%1000 != 0 {
		return strconv.FormatInt(milli, 10) + "m"
	}
	return strconv.FormatInt(int64(math.Round(value)), 10)
}

// node adds a node that is there until the next of its name at most. It returns its end.
func (w *promWriter) node(name string, n *promNode, next float64) []happening {
	began := n.created
	if began <= 0 || n.first > 0 && began > n.first+w.interval {
		began = n.first
		w.count("node(s) have no creation time that can be: they are there from the first scrape on")
	}
	w.at(began, func() Event { return Event{Change: "add", Node: w.nodeObject(name, n)} })
	if end := n.went + w.interval/2; n.went > 0 && end < min(w.last, next) {
		return []happening{{length(end - w.first), func() Event { return Event{Change: "remove", Node: name} }}}
	}
	if n.went == 0 && !math.IsInf(next, 1) {
		w.count("node(s) were made anew under the same name: they are there until then, because it is unknown when they went")
	}
	return nil
}

// summary prints what the history has, and what it does not know.
func (w *promWriter) summary() {
	say := func(format string, arguments ...any) { fmt.Fprintf(w.Progress, "history: "+format+"\n", arguments...) }
	span := func(seconds float64) time.Duration { return time.Duration(length(seconds)).Round(time.Second) }
	say("%d pod(s), of which %d were bound in the time, and %d node(s), from %s to %s", w.written, w.bound, len(w.facts.nodes), clock(w.first), clock(w.last))
	say("pods that lived for less than one scrape, each %v, may be missing", span(w.interval))
	if late := w.first - w.start; late > 2.5*w.interval {
		say("the first %v have no series: the history begins with the first scrape", span(late))
	}
	if early := w.end - w.last; early > 2.5*w.interval {
		say("the last %v have no series: the history ends with the last scrape", span(early))
	}
	sum := 0.0
	for _, gap := range w.gaps {
		sum += gap[1] - gap[0]
	}
	if w.failed != nil {
		say("labels, affinity, tolerations and spread are incomplete: %v", w.failed)
	}
	w.counts[fmt.Sprintf("gap(s), of %v in all, in which kube-state-metrics was not scraped", span(sum))] = len(w.gaps)
	w.counts["more target(s) of kube-state-metrics, after a restart or as a replica: each pod counts once"] = len(w.targets) - 1
	w.counts["series have labels such as exported_pod, which are used: the scrape does not honor labels"] = w.renamed
	w.counts[fmt.Sprintf("warning(s) of Prometheus, so answers may be partial: %.200q", w.warning)] = w.warnings
	w.counts["value(s) are not numbers, and left out"] = w.notNumbers
	for _, sentence := range slices.Sorted(maps.Keys(w.counts)) {
		if n := w.counts[sentence]; n > 0 {
			say("%d %s", n, sentence)
		}
	}
	for _, q := range table {
		if w.samples[q.metric] == 0 && q.without != "" {
			say("0 series %s: %s", q.metric, q.without)
		}
	}
}
