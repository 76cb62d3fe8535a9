// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
)

// rule is a rule of the arguments, compiled.
type rule struct {
	// number is the index in all rules.
	number int
	name   string
	// nodes is the condition on the nodes' names and labels, and pods that on the pods' namespaces and labels.
	nodes, pods filterrule.Condition
	// verdict is the verdict of an Allow or Deny. Other rules have none.
	verdict filterrule.Verdict
	share   *share
	// weight is the weight of a Prefer, and 0 for other rules.
	weight int64
}

// matchesNode reports whether a node meets the conditions of the rule.
func (r *rule) matchesNode(node *v1.Node) bool { return r.nodes.Matches(node.Name, node.Labels) }

// matchesPod reports whether a pod meets the conditions of the rule.
func (r *rule) matchesPod(pod *v1.Pod) bool { return r.pods.Matches(pod.Namespace, pod.Labels) }

// ruleSet holds all rules of the arguments, and the verdict for a node that no Allow or Deny matches.
type ruleSet struct {
	// rules are the rules that may reject a node, in order. scored are the rules that make scores. shares are the Share
	// rules of both kinds.
	rules, scored, shares []*rule
	// limits is set if a Share may reject a node.
	limits    bool
	otherwise filterrule.Verdict
}

// NodeLocalKey appends a bit for each rule that concerns the pod: Filter and Score read no more of it. A share reads the
// pods of other nodes.
func (pl *NodeFilter) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	about, ok := pl.last.Load().(*podRules)
	if !ok || about.pod != pod {
		about = pl.newRules(nil, pod)
	}
	var concern [16]byte
	for _, rules := range [...][]*rule{about.rules, about.scored} {
		for _, rule := range rules {
			concern[rule.number/8] |= 1 << (rule.number % 8)
		}
	}
	return append(key, concern[:]...), !about.shares
}

// concerning returns the rules whose conditions the pod meets, in order.
func concerning(rules []*rule, pod *v1.Pod) []*rule {
	all := 0
	for all < len(rules) && rules[all].matchesPod(pod) {
		all++
	}
	if all == len(rules) {
		return rules
	}
	concerning := append(make([]*rule, 0, len(rules)), rules[:all]...)
	for _, rule := range rules[all+1:] {
		if rule.matchesPod(pod) {
			concerning = append(concerning, rule)
		}
	}
	return concerning
}

// compile compiles the rules of valid arguments.
func compile(args *config.NodeFilterArgs, rejections func(rule string) metrics.CounterMetric) (ruleSet, error) {
	set := ruleSet{
		otherwise: filterrule.NewVerdict(args.DefaultAction == config.FilterDeny,
			fmt.Sprintf("node(s) were denied by %s: no rule matched, and defaultAction is %s", Name, config.FilterDeny),
			rejections(filterrule.DefaultActionLabel)),
	}
	for i := range args.Rules {
		rule, err := compileRule(&args.Rules[i])
		if err != nil {
			return ruleSet{}, err
		}
		rule.number = i
		switch args.Rules[i].Action {
		case config.FilterPrefer:
			rule.weight = int64(args.Rules[i].Weight)
			set.scored = append(set.scored, rule)
			continue
		case config.FilterShare:
			rule.share = compileShare(&args.Rules[i], len(set.shares), rejections(rule.name))
			set.shares = append(set.shares, rule)
			if !rule.share.limits {
				set.scored = append(set.scored, rule)
				continue
			}
			set.limits = true
		default:
			rule.verdict = filterrule.NewVerdict(args.Rules[i].Action == config.FilterDeny,
				fmt.Sprintf("node(s) were denied by rule %q of %s", rule.name, Name), rejections(rule.name))
		}
		set.rules = append(set.rules, rule)
	}
	return set, nil
}

func compileRule(from *config.NodeFilterRule) (*rule, error) {
	nodes, err := filterrule.NewCondition(from.NodeNames, from.NodeSelector)
	if err != nil {
		return nil, fmt.Errorf("%s: nodeSelector of rule %q: %w", Name, from.Name, err)
	}
	pods, err := filterrule.NewCondition(from.Namespaces, from.PodSelector)
	if err != nil {
		return nil, fmt.Errorf("%s: podSelector of rule %q: %w", Name, from.Name, err)
	}
	return &rule{name: from.Name, nodes: nodes, pods: pods}, nil
}

func compileShare(from *config.NodeFilterRule, place int, counter metrics.CounterMetric) *share {
	s := &share{
		least: 0, most: 100, place: place, limits: from.WhenUnsatisfiable == v1.DoNotSchedule,
		full: filterrule.NewResolvable(
			fmt.Sprintf("node(s) had the most pods that rule %q of %s allows them", from.Name, Name), counter),
		short: filterrule.NewResolvable(
			fmt.Sprintf("node(s) were outside rule %q of %s, whose nodes had too few pods", from.Name, Name), counter),
	}
	if from.MinPercent != nil {
		s.least = int64(*from.MinPercent)
	}
	if from.MaxPercent != nil {
		s.most = int64(*from.MaxPercent)
	}
	return s
}
