// SPDX-License-Identifier: Apache-2.0

// Package extendernodes keeps an extender's answer from reaching nodes that the scheduler did not ask about: such a node
// may have failed a filter, or be gone. This is no plugin; the scheduler's HTTPExtender calls it. An extender is named
// by its urlPrefix.
package extendernodes

import (
	"fmt"
	"net/url"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

var (
	unknownNodes = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "extender_unknown_nodes_total",
			Help:           "Number of whole nodes that an extender answered with and was not sent, by the extender's urlPrefix and by what it was asked. They are dropped.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"extender", "verb"})
	register sync.Once
)

// KeepNodes drops whole nodes that were not sent from the answer to filter, and counts them. If no other is in the
// answer, it returns the error that upstream makes of an unknown name: had the extender rejected all nodes, it could
// not be ignored, and pods would be evicted for nothing.
func KeepNodes(extender string, pod *v1.Pod, sent map[string]*v1.Node, answer *v1.NodeList) error {
	register.Do(func() { legacyregistry.MustRegister(unknownNodes) })
	kept, unknown := answer.Items[:0], ""
	for _, node := range answer.Items {
		if sent[node.Name] != nil {
			kept = append(kept, node)
		} else {
			unknown = node.Name
		}
	}
	extender, dropped := WithoutCredentials(extender), len(answer.Items)-len(kept)
	// Also when that is nothing: so the counter is there from the first call on.
	unknownNodes.WithLabelValues(extender, "filter").Add(float64(dropped))
	answer.Items = kept
	if dropped == 0 {
		return nil
	}
	klog.V(2).InfoS("Dropped nodes from the answer of an extender: it was not sent them", "extender", extender, "pod", klog.KObj(pod),
		"dropped", dropped, "kept", len(kept), "oneOfThem", unknown)
	if len(kept) == 0 {
		return fmt.Errorf("extender %q claims a filtered node %q which is not found in the input node list", extender, unknown)
	}
	return nil
}

// CheckVictims makes an error of an answer to preempt with a node that was not sent, or with null in the place of victims,
// at which the scheduler would panic.
func CheckVictims(extender string, sent map[string]*extenderv1.Victims, answer map[string]*extenderv1.MetaVictims) error {
	for name, victims := range answer {
		if _, found := sent[name]; !found {
			return fmt.Errorf("extender %q claims victims on node %q, which it was not asked about", WithoutCredentials(extender), name)
		}
		isNull := victims == nil
		for i := 0; !isNull && i < len(victims.Pods); i++ {
			isNull = victims.Pods[i] == nil
		}
		if isNull {
			return fmt.Errorf("extender %q answers null for victims on node %q", WithoutCredentials(extender), name)
		}
	}
	return nil
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
