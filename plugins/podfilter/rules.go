// SPDX-License-Identifier: Apache-2.0

package podfilter

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
)

// rule is a rule of the arguments, compiled.
type rule struct {
	podNames []string
	pods     filterrule.Condition // on namespaces and labels
	verdict  filterrule.Verdict
}

// matches reports whether the pod meets all conditions of the rule.
func (r *rule) matches(pod *v1.Pod) bool {
	return filterrule.MatchesAny(r.podNames, pod.Name) && r.pods.Matches(pod.Namespace, pod.Labels)
}

// compile compiles the rules of valid arguments, and the verdict for pods that no rule matches.
func compile(args *config.PodFilterArgs, rejections func(rule string) metrics.CounterMetric) ([]rule, filterrule.Verdict, error) {
	rules := make([]rule, len(args.Rules))
	for i := range args.Rules {
		from := &args.Rules[i]
		pods, err := filterrule.NewCondition(from.Namespaces, from.PodSelector)
		if err != nil {
			return nil, filterrule.Verdict{}, fmt.Errorf("%s: podSelector of rule %q: %w", Name, from.Name, err)
		}
		rules[i] = rule{from.PodNames, pods, filterrule.NewVerdict(from.Action == config.FilterDeny,
			fmt.Sprintf("pod(s) were denied by rule %q of %s", from.Name, Name), rejections(from.Name))}
	}
	return rules, filterrule.NewVerdict(args.DefaultAction == config.FilterDeny,
		fmt.Sprintf("pod(s) were denied by %s: no rule matched, and defaultAction is %s", Name, config.FilterDeny),
		rejections(filterrule.DefaultActionLabel)), nil
}
