// SPDX-License-Identifier: Apache-2.0

package records

import (
	"net/url"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	// stepsOfAttempt are as many as there are extension points after a node is chosen.
	stepsOfAttempt = 5
	// callsOfAttempt are kept of extenders, and namedVictims of preemption.
	callsOfAttempt = 16
	namedVictims   = 20
)

// trail is what an attempt leaves beside the search for a node: some of it after the scheduling cycle, in the binding
// cycle's goroutine.
type trail struct {
	mutex      sync.Mutex
	steps      [stepsOfAttempt]step
	stepCount  int
	calls      []ExtenderCall
	preemption *PreemptionRecord
	words      []PluginWords
	bytes      int
}

type step struct {
	point string
	code  framework.Code
	ended time.Time
	took  time.Duration
}

// size is about how many bytes it takes, beside its own.
func (t *trail) size() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.bytes
}

// Step notes how an extension point ended after a node was chosen.
func (a *Attempt) Step(point string, status *framework.Status, began time.Time) {
	if a == nil {
		return
	}
	now := a.recorder.now()
	a.trail.mutex.Lock()
	defer a.trail.mutex.Unlock()
	if a.trail.stepCount < stepsOfAttempt {
		a.trail.steps[a.trail.stepCount] = step{point, status.Code(), now, now.Sub(began)}
		a.trail.stepCount++
	}
}

// StepOf is Step for a pod that is being bound, where the state of its cycle is not at hand.
func (r *Recorder) StepOf(p *v1.Pod, point string, status *framework.Status, began time.Time) {
	if r == nil {
		return
	}
	r.mutex.Lock()
	var last *Attempt
	if element, found := r.pods[p.UID]; found {
		attempts := element.Value.(*pod).attempts
		last = attempts[len(attempts)-1]
	}
	r.mutex.Unlock()
	last.Step(point, status, began)
}

// Preempts notes what preemption has found. candidates are the names of some of the nodes, of which there are count;
// without any, whyNot says why.
func (a *Attempt) Preempts(candidates []string, count int, node string, victims []*v1.Pod, whyNot string) {
	if a == nil {
		return
	}
	found := Preemption(candidates, count, node, victims, whyNot)
	a.trail.mutex.Lock()
	defer a.trail.mutex.Unlock()
	a.trail.preemption = found
	a.trail.bytes += 100 + 16*len(found.Sample) + 60*len(found.Victims) + len(found.WhyNot)
}

// Preemption is what preemption has found.
func Preemption(candidates []string, count int, node string, victims []*v1.Pod, whyNot string) *PreemptionRecord {
	found := &PreemptionRecord{Candidates: count, Node: node, VictimCount: len(victims), WhyNot: short(whyNot)}
	if len(candidates) > sampleNodes {
		candidates = candidates[:sampleNodes]
	}
	found.Sample = append(found.Sample, candidates...)
	for i, victim := range victims {
		if i == namedVictims {
			break
		}
		found.Victims = append(found.Victims, victim.Namespace+"/"+victim.Name)
	}
	return found
}

// call notes a request to an extender.
func (a *Attempt) call(call ExtenderCall, err error) {
	if a == nil {
		return
	}
	if err != nil {
		call.Error = short(a.recorder.clean(err.Error()))
	}
	a.trail.mutex.Lock()
	defer a.trail.mutex.Unlock()
	if len(a.trail.calls) < callsOfAttempt {
		a.trail.calls = append(a.trail.calls, call)
		a.trail.bytes += 120 + len(call.Error)
	}
}

// Explainer is a plugin that has words of its own for the records.
type Explainer interface {
	framework.Plugin
	// Explain says in a sentence or two what the plugin knew of some nodes when it decided about a pod; empty if there
	// is nothing to say. It is called at the end of each search for a node, so it has to be quick.
	Explain(state *framework.CycleState, pod *v1.Pod, nodes []string) string
}

// explain asks the plugins of the profile for their words, of the best nodes or of some that were rejected.
func (a *Attempt) explain(p *v1.Pod) {
	if len(a.recorder.Sources.Explainers[a.profile]) == 0 {
		a.state = nil
		return
	}
	var nodes []string
	for _, node := range a.scores.nodes {
		nodes = append(nodes, node.name)
	}
	if len(nodes) == 0 && a.node != "" {
		nodes = []string{a.node}
	}
	for i := range a.rejections {
		if len(nodes) < bestNodes && a.node == "" {
			nodes = append(nodes, a.rejections[i].sample...)
		}
	}
	a.Explain(p, nodes)
}

// Explain asks the plugins of the profile for their words about some nodes, once in a cycle.
func (a *Attempt) Explain(p *v1.Pod, nodes []string) {
	state := a.state
	if a.state = nil; state == nil {
		return
	}
	for _, explainer := range a.recorder.Sources.Explainers[a.profile] {
		if text := short(explainer.Explain(state, p, nodes)); text != "" {
			a.trail.words = append(a.trail.words, PluginWords{explainer.Name(), text})
			a.trail.bytes += 40 + len(text)
		}
	}
}

// Extender has the requests of the scheduling cycle to an extender noted.
func (r *Recorder) Extender(extender framework.Extender) framework.Extender {
	if r == nil {
		return extender
	}
	shown := short(ExtenderURL(extender))
	if extender.Name() != "" {
		r.extenders[extender.Name()] = shown
	}
	return &recordedExtender{Extender: extender, recorder: r, url: shown}
}

// ExtenderURL is the address of an extender, without what may be secret.
func ExtenderURL(extender framework.Extender) string {
	parsed, err := url.Parse(extender.Name())
	if err != nil {
		return "an extender whose address cannot be shown"
	}
	parsed.User, parsed.RawQuery = nil, ""
	return parsed.String()
}

// clean leaves out of a text what extenders' addresses have of secrets.
func (r *Recorder) clean(text string) string {
	for address, shown := range r.extenders {
		text = strings.ReplaceAll(text, address, shown)
	}
	return text
}

// String is for upstream's log.
func (e *recordedExtender) String() string { return e.url }

type recordedExtender struct {
	framework.Extender
	recorder *Recorder
	url      string
}

func (e *recordedExtender) Filter(pod *v1.Pod, nodes []*v1.Node) ([]*v1.Node, extenderv1.FailedNodesMap, extenderv1.FailedNodesMap, error) {
	began := e.recorder.now()
	left, failed, unresolvable, err := e.Extender.Filter(pod, nodes)
	if err == nil && len(left) > 0 && len(left) == len(nodes) && &left[0] == &nodes[0] {
		// It has no verb to filter with, and gives back what it got.
		return left, failed, unresolvable, nil
	}
	e.recorder.current.call(ExtenderCall{
		URL: e.url, Verb: "filter", Seconds: e.recorder.now().Sub(began).Seconds(), NodesIn: len(nodes), NodesOut: len(left),
	}, err)
	return left, failed, unresolvable, err
}

func (e *recordedExtender) Prioritize(pod *v1.Pod, nodes []*v1.Node) (*extenderv1.HostPriorityList, int64, error) {
	began := e.recorder.now()
	scores, weight, err := e.Extender.Prioritize(pod, nodes)
	if err == nil && weight == 0 {
		// It has no verb to score with.
		return scores, weight, nil
	}
	call := ExtenderCall{URL: e.url, Verb: "prioritize", Seconds: e.recorder.now().Sub(began).Seconds(), NodesIn: len(nodes)}
	if scores != nil {
		call.NodesOut = len(*scores)
	}
	e.recorder.current.call(call, err)
	return scores, weight, err
}

// decide adds what was found beside the nodes' statuses and scores.
func (t *trail) decide(decision *Decision) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	decision.Extenders = append([]ExtenderCall(nil), t.calls...)
	decision.Words = append([]PluginWords(nil), t.words...)
	decision.Preemption = t.preemption
}

// records are the steps after the choice of a node.
func (t *trail) records() []StepRecord {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var steps []StepRecord
	for _, step := range t.steps[:t.stepCount] {
		steps = append(steps, StepRecord{ExtensionPoint: step.point, Seconds: step.took.Seconds(), Status: step.code.String()})
	}
	return steps
}

// permitted is when the Permit plugins were done or had the pod wait; zero if they have not run.
func (t *trail) permitted() time.Time {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, step := range t.steps[:t.stepCount] {
		if step.point == "Permit" {
			return step.ended
		}
	}
	return time.Time{}
}
