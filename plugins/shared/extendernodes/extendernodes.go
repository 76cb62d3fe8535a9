// SPDX-License-Identifier: Apache-2.0

// Package extendernodes reduces what an extender answers to the nodes that it was sent. An extender chooses among
// those. What it says of other nodes is dropped and counted before the scheduler looks at the answer: such a node may
// have failed a filter, or be gone. This is no plugin; the scheduler's HTTPExtender calls it. An extender is named by
// its urlPrefix.
package extendernodes

import (
	"net/url"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// maxNodesLogged is how many of the nodes that were dropped from an answer are named in the log.
const maxNodesLogged = 5

var (
	unknownNodes = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem: schedulermetrics.SchedulerSubsystem,
			Name:      "extender_unknown_nodes_total",
			Help: "Number of times that an extender answered with a node that it was not sent, or with null for the " +
				"victims of a node, by the extender's urlPrefix and by what it was asked. Such a node is dropped.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"extender", "verb"})
	register sync.Once
)

// KeepNodes drops from the answer to filter the nodes that are not among those sent, and from the nodes that passed
// also those that are there twice, which would be scored twice. Whole nodes are replaced by the scheduler's own.
func KeepNodes(extender string, pod *v1.Pod, nodeCacheCapable bool, sent map[string]*v1.Node,
	result *extenderv1.ExtenderFilterResult) {
	named := newAnswer(func(name string) bool { return sent[name] != nil })
	if nodeCacheCapable && result.NodeNames != nil {
		names := make([]string, 0, len(*result.NodeNames))
		for _, name := range *result.NodeNames {
			if named.keeps(name) {
				names = append(names, name)
			}
		}
		result.NodeNames = &names
	} else if result.Nodes != nil {
		nodes := make([]v1.Node, 0, len(result.Nodes.Items))
		for i := range result.Nodes.Items {
			if name := result.Nodes.Items[i].Name; named.keeps(name) {
				nodes = append(nodes, *sent[name])
			}
		}
		result.Nodes.Items = nodes
	}
	for _, failed := range []extenderv1.FailedNodesMap{result.FailedNodes, result.FailedAndUnresolvableNodes} {
		for name := range failed {
			if !named.knows(name) {
				delete(failed, name)
			}
		}
	}
	named.report(extender, "filter", pod)
}

// KeepHosts drops from the answer to prioritize the nodes that are not among those sent, and those that are there
// twice: the scores would be added.
func KeepHosts(extender string, pod *v1.Pod, sent []*v1.Node, result *extenderv1.HostPriorityList) {
	names := make(sets.String, len(sent))
	for _, node := range sent {
		names.Insert(node.Name)
	}
	named := newAnswer(names.Has)
	hosts := make(extenderv1.HostPriorityList, 0, len(*result))
	for _, host := range *result {
		if named.keeps(host.Host) {
			hosts = append(hosts, host)
		}
	}
	*result = hosts
	named.report(extender, "prioritize", pod)
}

// KeepVictims drops from the answer to preempt the nodes that are not among those sent, and those whose victims cannot
// all be read, because one or all of them are null: fewer victims may not be enough for the pod.
func KeepVictims(extender string, pod *v1.Pod, sent map[string]*extenderv1.Victims,
	result *extenderv1.ExtenderPreemptionResult) {
	named := newAnswer(func(name string) bool {
		_, found := sent[name]
		return found
	})
	for name, victims := range result.NodeNameToMetaVictims {
		if !named.knows(name) {
			delete(result.NodeNameToMetaVictims, name)
		} else if !areReadable(victims) {
			named.unreadable = append(named.unreadable, name)
			delete(result.NodeNameToMetaVictims, name)
		}
	}
	named.report(extender, "preempt", pod)
}

// areReadable tells whether neither the victims of a node nor one of them is null, which the scheduler would panic at.
func areReadable(victims *extenderv1.MetaVictims) bool {
	if victims == nil {
		return false
	}
	for _, pod := range victims.Pods {
		if pod == nil {
			return false
		}
	}
	return true
}

// answer keeps the account of the nodes that an extender names in one answer.
type answer struct {
	sent              func(string) bool
	kept              sets.String
	unknown, repeated []string
	// unreadable are nodes that were sent, and of whose victims the answer says null.
	unreadable []string
}

func newAnswer(sent func(string) bool) *answer {
	return &answer{sent: sent, kept: sets.NewString()}
}

// knows tells whether the node was sent.
func (a *answer) knows(name string) bool {
	if a.sent(name) {
		return true
	}
	a.unknown = append(a.unknown, name)
	return false
}

// keeps tells whether the node was sent and is named for the first time.
func (a *answer) keeps(name string) bool {
	if !a.knows(name) {
		return false
	}
	if a.kept.Has(name) {
		a.repeated = append(a.repeated, name)
		return false
	}
	a.kept.Insert(name)
	return true
}

// report counts what was dropped, also when that is nothing: so the counter is there from the first call on.
func (a *answer) report(extender, verb string, pod *v1.Pod) {
	register.Do(func() { legacyregistry.MustRegister(unknownNodes) })
	extender = WithoutCredentials(extender)
	unknownNodes.WithLabelValues(extender, verb).Add(float64(len(a.unknown) + len(a.unreadable)))
	if len(a.unknown)+len(a.repeated) > 0 {
		klog.V(2).InfoS("Dropped nodes from the answer of an extender: it was not sent them, or named them twice",
			"extender", extender, "verb", verb, "pod", klog.KObj(pod), "unknown", len(a.unknown), "repeated", len(a.repeated),
			"unknownNodes", first(a.unknown), "repeatedNodes", first(a.repeated))
	}
	if len(a.unreadable) > 0 {
		klog.V(2).InfoS("Dropped nodes from the answer of an extender: it says null of their victims",
			"extender", extender, "verb", verb, "pod", klog.KObj(pod), "unreadable", len(a.unreadable),
			"unreadableNodes", first(a.unreadable))
	}
}

func first(names []string) []string {
	if len(names) > maxNodesLogged {
		return names[:maxNodesLogged]
	}
	return names
}

// WithoutCredentials is what an extender is called in logs and metrics: its urlPrefix without a user and a password.
func WithoutCredentials(prefix string) string {
	parsed, err := url.Parse(prefix)
	if err != nil {
		return "(not a URL)"
	}
	parsed.User = nil
	return parsed.String()
}
