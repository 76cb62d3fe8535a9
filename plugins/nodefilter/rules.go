// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
)

// rule is a rule of the arguments, compiled. The selectors are nil if the rule has none.
type rule struct {
	nodeNames    []string
	nodeSelector labels.Selector
	namespaces   []string
	podSelector  labels.Selector
	verdict      filterrule.Verdict
}

// matchesNode says whether the conditions of the rule that are about the node hold.
func (r *rule) matchesNode(node *v1.Node) bool {
	return filterrule.MatchesAny(r.nodeNames, node.Name) &&
		(r.nodeSelector == nil || r.nodeSelector.Matches(labels.Set(node.Labels)))
}

// matchesPod says whether the conditions of the rule that are about the pod hold.
func (r *rule) matchesPod(pod *v1.Pod) bool {
	return filterrule.MatchesAny(r.namespaces, pod.Namespace) &&
		(r.podSelector == nil || r.podSelector.Matches(labels.Set(pod.Labels)))
}

// ruleSet is all rules of the arguments, in order, and what becomes of a node that none of them matches.
type ruleSet struct {
	rules     []*rule
	otherwise filterrule.Verdict
	// dependOnPod says that some rule does not concern every pod.
	dependOnPod bool
}

// concerning returns the rules whose conditions about the pod hold, in order.
func (s *ruleSet) concerning(pod *v1.Pod) []*rule {
	concerning := make([]*rule, 0, len(s.rules))
	for _, rule := range s.rules {
		if rule.matchesPod(pod) {
			concerning = append(concerning, rule)
		}
	}
	return concerning
}

// compile makes the rules of valid arguments.
func compile(args *config.NodeFilterArgs, rejections func(rule string) metrics.CounterMetric) (ruleSet, error) {
	set := ruleSet{
		otherwise: filterrule.NewVerdict(args.DefaultAction == config.FilterDeny,
			fmt.Sprintf("node(s) were denied by %s: no rule matched, and defaultAction is %s", Name, config.FilterDeny),
			rejections(filterrule.DefaultActionLabel)),
	}
	for i := range args.Rules {
		rule, err := compileRule(&args.Rules[i], rejections)
		if err != nil {
			return ruleSet{}, err
		}
		set.rules = append(set.rules, rule)
		set.dependOnPod = set.dependOnPod || len(rule.namespaces) > 0 || rule.podSelector != nil
	}
	return set, nil
}

func compileRule(from *config.NodeFilterRule, rejections func(rule string) metrics.CounterMetric) (*rule, error) {
	nodeSelector, err := compileSelector(from.NodeSelector)
	if err != nil {
		return nil, fmt.Errorf("%s: nodeSelector of rule %q: %w", Name, from.Name, err)
	}
	podSelector, err := compileSelector(from.PodSelector)
	if err != nil {
		return nil, fmt.Errorf("%s: podSelector of rule %q: %w", Name, from.Name, err)
	}
	return &rule{
		nodeNames:    from.NodeNames,
		nodeSelector: nodeSelector,
		namespaces:   from.Namespaces,
		podSelector:  podSelector,
		verdict: filterrule.NewVerdict(from.Action == config.FilterDeny,
			fmt.Sprintf("node(s) were denied by rule %q of %s", from.Name, Name),
			rejections(from.Name)),
	}, nil
}

// compileSelector returns nil for a selector that is not given: upstream's own answer would be one that matches
// nothing.
func compileSelector(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return nil, nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}
