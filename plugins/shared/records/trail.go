// SPDX-License-Identifier: Apache-2.0

package records

import (
	"sort"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/extendernodes"
)

const (
	// stepsOfAttempt is the number of extension points after the choice of a node.
	stepsOfAttempt = 5
	// callsOfAttempt limits the recorded calls to extenders, namedVictims the named victims of preemption.
	callsOfAttempt = 16
	namedVictims   = 20
)

// trail has the records of an attempt, except those of the search for a node. Some are written after the scheduling
// cycle, in the goroutine of the binding cycle.
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

// size estimates its memory in bytes, without the struct itself.
func (t *trail) size() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.bytes
}

// Step records how an extension point ended after the choice of a node.
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

// StepOf is Step for a pod in its binding cycle, without access to the CycleState.
func (r *Recorder) StepOf(p *v1.Pod, point string, status *framework.Status, began time.Time) {
	if r == nil {
		return
	}
	r.mutex.Lock()
	var last *Attempt
	if element, found := r.pods[p.UID]; found {
		last = element.Value.(*pod).last()
	}
	r.mutex.Unlock()
	last.Step(point, status, began)
}

// Preempts records the result of preemption. candidates names some of the count candidate nodes; if there are none,
// whyNot is the reason.
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

// Preemption returns the result of preemption.
func Preemption(candidates []string, count int, node string, victims []*v1.Pod, whyNot string) *PreemptionRecord {
	found := &PreemptionRecord{Candidates: count, Node: node, VictimCount: len(victims), WhyNot: short(whyNot)}
	sort.Strings(candidates) // With extenders, their order is that of a map.
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

// call records a request to an extender.
func (a *Attempt) call(call ExtenderCall, err error) {
	if a == nil {
		return
	}
	if err != nil {
		call.Error = short(err.Error())
	}
	a.trail.mutex.Lock()
	defer a.trail.mutex.Unlock()
	if len(a.trail.calls) < callsOfAttempt {
		a.trail.calls = append(a.trail.calls, call)
		a.trail.bytes += 120 + len(call.Error)
	}
}

// Explainer is a plugin that explains its decisions in the records.
type Explainer interface {
	framework.Plugin
	// Explain returns one or two sentences about the data with which the plugin evaluated some nodes for a pod, or ""
	// without such data. It is called at the end of each search for a node, so it must be fast.
	Explain(state *framework.CycleState, pod *v1.Pod, nodes []string) string
}

// explain asks the profile's plugins to explain the best nodes, or some of the rejected ones.
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

// Explain asks the profile's plugins to explain some nodes. Only the first call in a cycle has an effect.
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

// Extender wraps an extender, so that its requests in the scheduling cycle are recorded.
func (r *Recorder) Extender(extender framework.Extender) framework.Extender {
	if r == nil {
		return extender
	}
	return &recordedExtender{Extender: extender, recorder: r, url: short(extendernodes.WithoutCredentials(extender.Name()))}
}

// String is used in upstream's log.
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
		// It has no filter verb and returns its input.
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
		// It has no prioritize verb.
		return scores, weight, nil
	}
	call := ExtenderCall{URL: e.url, Verb: "prioritize", Seconds: e.recorder.now().Sub(began).Seconds(), NodesIn: len(nodes)}
	if scores != nil {
		call.NodesOut = len(*scores)
	}
	e.recorder.current.call(call, err)
	return scores, weight, err
}

// decide adds extender calls, explanations and preemption to a decision.
func (t *trail) decide(decision *Decision) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	decision.Extenders = append([]ExtenderCall(nil), t.calls...)
	decision.Words = append([]PluginWords(nil), t.words...)
	if decision.Evaluated > 0 || decision.Nodes == 0 {
		// A pod that PreFilter rejects is not helped by evictions.
		decision.Preemption = t.preemption
	}
}

// records returns the steps after the choice of a node.
func (t *trail) records() []StepRecord {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var steps []StepRecord
	for _, step := range t.steps[:t.stepCount] {
		steps = append(steps, StepRecord{ExtensionPoint: step.point, Seconds: step.took.Seconds(), Status: step.code.String()})
	}
	return steps
}

// permitted returns when the Permit plugins returned, possibly with Wait; zero if they have not run.
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
