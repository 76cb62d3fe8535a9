// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodefilter"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/overcommit"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"kube-scheduler-fork/test/inprocess/decision"
)

// verb is the end of the URL in an error of an extender, which 0455 leaves out.
var verb = regexp.MustCompile("/(filter|prioritize|preempt), code")

// Run runs a scenario in two ways, and returns both results.
func Run(tb testing.TB, scenario *Scenario) []string {
	if err := decision.WatchScores(); err != nil {
		tb.Fatal(err)
	}
	gates := utilfeature.DefaultFeatureGate
	for feature, on := range scenario.Features {
		defer featuregatetesting.SetFeatureGateDuringTest(tb, gates, featuregate.Feature(feature), on)()
	}
	config := scenario.Config
	if !strings.Contains(config, extenderAddress) {
		return run(tb, scenario, config)
	}
	extenders := startExtenders(tb)
	defer extenders.Close()
	trace := run(tb, scenario, strings.ReplaceAll(config, extenderAddress, extenders.URL))
	for i := range trace {
		trace[i] = verb.ReplaceAllString(strings.ReplaceAll(trace[i], extenders.URL, extenderAddress), ", code")
	}
	return trace
}

func run(tb testing.TB, scenario *Scenario, config string) []string {
	options := decision.Options{
		Config: config, Nodes: scenario.Nodes, Objects: scenario.objects(), Seed: scenario.Seed, OneByOne: true, WhatIfs: true,
		Graceful: scenario.Graceful, Outcome: scenario.follow(),
		Plugins: frameworkruntime.Registry{overcommit.Name: overcommit.Factory(nil), nodefilter.Name: nodefilter.New},
	}
	one := decision.New(tb, options)
	trace := decide(one, scenario)
	one.Stop()
	options.Parallelism, options.AllNodes = 16, true
	several := decision.New(tb, options)
	defer several.Stop()
	trace = append(trace, evaluate(several, scenario, options.Outcome)...)
	return scenario.ordinary(withoutTaintValues(trace))
}

// evaluate returns the plugins' results for every pod on every node, with several workers, and whether the scheduler
// would choose one of the best nodes. No pod is scheduled: each is placed on the best node, and among several on the
// first by name, or on the one that follow has. Nominated pods stay nominated.
func evaluate(s *decision.Scheduler, scenario *Scenario, follow func(string) (string, bool)) []string {
	var trace []string
	for number := range scenario.Steps {
		step := &scenario.Steps[number]
		happen(s, step)
		pods := s.Complete(step.Schedule...)
		for _, pod := range pods {
			if pod.Status.NominatedNodeName != "" {
				s.Create(pod)
			}
		}
		for _, pod := range pods {
			name := pod.Namespace + "/" + pod.Name
			best, lines := evaluated(s, pod)
			if scenario.overcommits(name) {
				if follow != nil {
					best, _ = follow(name)
				}
				lines = []string{name + overcommitsMark + best}
			}
			trace = append(trace, lines...)
			if s.HasNode(best) && pod.Status.NominatedNodeName == "" {
				// The scheduler may have kept the pod that it has seen.
				placed := pod.DeepCopy()
				placed.Spec.NodeName = best
				s.Create(placed)
			}
		}
		trace = append(trace, s.CompareCache()...)
	}
	return trace
}

// evaluated returns the best node for a pod, if any, and the lines of the trace on all nodes.
func evaluated(s *decision.Scheduler, pod *v1.Pod) (node string, lines []string) {
	verdicts, err := s.Evaluate(pod)
	if err != nil {
		return "", []string{fmt.Sprintf("%s/%s: %v", pod.Namespace, pod.Name, err)}
	}
	sort.Slice(verdicts, func(i, j int) bool { return verdicts[i].Node < verdicts[j].Node })
	var best *decision.Verdict
	for i := range verdicts {
		v := &verdicts[i]
		lines = append(lines, fmt.Sprintf("%s/%s on %s: %d %s", pod.Namespace, pod.Name, v.Node, v.Score, v.Status))
		if v.Status == "" && (best == nil || v.Score > best.Score) {
			best, node = v, v.Node
		}
	}
	return node, append(lines, fmt.Sprintf("%s/%s: %s", pod.Namespace, pod.Name, s.Choose(pod, verdicts)))
}

// happen applies the parts of a step that are independent of the scheduler.
func happen(s *decision.Scheduler, step *Step) {
	switch {
	case step.Place != nil:
		if s.HasNode(step.Place.Spec.NodeName) {
			s.Create(step.Place)
		}
	case step.Schedule != nil:
		for _, pod := range s.Complete(step.Schedule...) {
			s.DeletePod(pod.Namespace + "/" + pod.Name)
		}
	case step.PutPod != nil:
		s.PutPod(step.PutPod)
	case step.Vanish:
		for _, pod := range s.Pods() {
			if pod.DeletionTimestamp != nil {
				s.DeletePod(pod.Namespace + "/" + pod.Name)
			}
		}
	case step.PutNode != nil:
		s.PutNode(step.PutNode)
	case step.DeleteNode != "":
		s.DeleteNode(step.DeleteNode)
	case step.DeletePod != "":
		s.DeletePod(step.DeletePod)
	case step.PutNamespace != nil:
		s.PutNamespace(step.PutNamespace)
	case step.PutVolume != nil:
		s.PutVolume(step.PutVolume)
	case step.PutClaim != nil:
		s.PutClaim(step.PutClaim)
	}
}

// decide runs a scenario with one worker, and returns one line for each decision: the node of each pod or the reason
// why it has none; its nominated node, its condition and its events; and the victims.
func decide(s *decision.Scheduler, scenario *Scenario) []string {
	var trace []string
	note := func(format string, args ...interface{}) { trace = append(trace, fmt.Sprintf(format, args...)) }
	decided := func(decisions []decision.Decision) {
		s.Settle()
		for _, d := range decisions {
			switch {
			case scenario.overcommits(d.Pod):
				note("%s%s%s", d.Pod, overcommitsMark, outcome(d))
			case d.Node != "":
				note("%s: %s%s", d.Pod, d.Node, d.Scores)
			default:
				note("%s: %s", d.Pod, d.Failure)
			}
		}
	}
	pods, events := map[string]*v1.Pod{}, 0
	for number := range scenario.Steps {
		step := &scenario.Steps[number]
		note("step %d", number)
		happen(s, step)
		switch {
		case step.Schedule != nil:
			decided(s.Schedule(step.Schedule...))
		case step.Place != nil:
			// Nothing else can change, and there are many of these.
			if s.HasNode(step.Place.Spec.NodeName) {
				pods[step.Place.Namespace+"/"+step.Place.Name] = step.Place
			}
			continue
		case step.Retry:
			if waiting := s.Waiting(); len(waiting) > 0 {
				decided(s.Retry(waiting...))
			}
		}
		now, sent := s.Pods(), s.Events()
		trace = append(trace, changes(pods, now)...)
		trace = append(trace, written(sent[events:])...)
		trace = append(trace, s.CompareCache()...)
		pods, events = now, len(sent)
	}
	return trace
}

// written returns events, sorted: those of binding cycles come at any time.
func written(events []decision.Event) []string {
	var lines []string
	for _, event := range events {
		lines = append(lines, fmt.Sprintf("%s: %s %s: %s", event.Object, event.Type, event.Reason, event.Note))
	}
	sort.Strings(lines)
	return lines
}

// changes returns the deleted pods, the nominated nodes, and the conditions.
func changes(before, now map[string]*v1.Pod) []string {
	var lines []string
	for name, pod := range before {
		if now[name] == nil {
			lines = append(lines, fmt.Sprintf("%s: gone from %q", name, pod.Spec.NodeName))
		}
	}
	for name, pod := range now {
		nominated, old := pod.Status.NominatedNodeName, before[name]
		if pod.DeletionTimestamp != nil && (old == nil || old.DeletionTimestamp == nil) {
			lines = append(lines, fmt.Sprintf("%s: terminates on %q", name, pod.Spec.NodeName))
		}
		if nominated != "" && (old == nil || old.Status.NominatedNodeName != nominated) {
			lines = append(lines, fmt.Sprintf("%s: nominated for %s", name, nominated))
		}
		for i, condition := range pod.Status.Conditions {
			if old == nil || len(old.Status.Conditions) <= i || old.Status.Conditions[i].Message != condition.Message {
				lines = append(lines, fmt.Sprintf("%s: %s %s %s: %s", name, condition.Type, condition.Status, condition.Reason, condition.Message))
			}
		}
	}
	sort.Strings(lines)
	return lines
}

// difference returns the first lines that differ between two traces, or an empty string.
func difference(one, other []string) string {
	for i := 0; i < len(one) || i < len(other); i++ {
		var a, b string
		if i < len(one) {
			a = one[i]
		}
		if i < len(other) {
			b = other[i]
		}
		if a != b {
			var context []string
			if i > 0 {
				context = one[:i]
			}
			if len(context) > 3 {
				context = context[len(context)-3:]
			}
			return fmt.Sprintf("%s\n- %s\n+ %s\n", strings.Join(context, "\n"), a, b)
		}
	}
	return ""
}
