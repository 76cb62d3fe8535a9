// SPDX-License-Identifier: Apache-2.0

package podfilter

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
)

// rule is a rule of the arguments, compiled.
type rule struct {
	podNames   []string
	namespaces []string
	// podSelector is nil if the rule has no selector.
	podSelector labels.Selector
	verdict     filterrule.Verdict
}

// matches reports whether the pod meets all conditions of the rule. It evaluates the cheap ones first.
func (r *rule) matches(pod *v1.Pod) bool {
	return filterrule.MatchesAny(r.namespaces, pod.Namespace) &&
		filterrule.MatchesAny(r.podNames, pod.Name) &&
		(r.podSelector == nil || r.podSelector.Matches(labels.Set(pod.Labels)))
}

// compile compiles the rules of valid arguments, and the verdict for pods that no rule matches.
func compile(args *config.PodFilterArgs, rejections func(rule string) metrics.CounterMetric) ([]rule, filterrule.Verdict, error) {
	rules := make([]rule, len(args.Rules))
	for i := range args.Rules {
		from := &args.Rules[i]
		rules[i] = rule{
			podNames:   from.PodNames,
			namespaces: from.Namespaces,
			verdict: filterrule.NewVerdict(from.Action == config.FilterDeny,
				fmt.Sprintf("pod(s) were denied by rule %q of %s", from.Name, Name),
				rejections(from.Name)),
		}
		if from.PodSelector != nil {
			selector, err := metav1.LabelSelectorAsSelector(from.PodSelector)
			if err != nil {
				return nil, filterrule.Verdict{}, fmt.Errorf("%s: podSelector of rule %q: %w", Name, from.Name, err)
			}
			rules[i].podSelector = selector
		}
	}
	return rules, filterrule.NewVerdict(args.DefaultAction == config.FilterDeny,
		fmt.Sprintf("pod(s) were denied by %s: no rule matched, and defaultAction is %s", Name, config.FilterDeny),
		rejections(filterrule.DefaultActionLabel)), nil
}
