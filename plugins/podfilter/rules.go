package podfilter

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/namepattern"
)

// verdict is what becomes of a pod: it passes, or it is rejected for a reason and counted.
type verdict struct {
	deny    bool
	reason  string
	counter metrics.CounterMetric
}

// status counts a rejection and returns it as a new status each time: the framework writes its plugin's name into the one
// that it gets.
func (v *verdict) status() *framework.Status {
	if !v.deny {
		return nil
	}
	v.counter.Inc()
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, v.reason)
}

// rule is a rule of the arguments, compiled.
type rule struct {
	podNames   namepattern.List
	namespaces namepattern.List
	// podSelector is nil if the rule has none.
	podSelector labels.Selector
	verdict     verdict
}

// matches says whether all conditions of the rule hold for the pod, the cheap ones first.
func (r *rule) matches(pod *v1.Pod) bool {
	return r.namespaces.Matches(pod.Namespace) &&
		r.podNames.Matches(pod.Name) &&
		(r.podSelector == nil || r.podSelector.Matches(labels.Set(pod.Labels)))
}

// compile makes the rules, and the verdict over what none of them matches, of valid arguments.
func compile(args *config.PodFilterArgs, rejections func(rule string) metrics.CounterMetric) ([]rule, verdict, error) {
	rules := make([]rule, len(args.Rules))
	for i := range args.Rules {
		from := &args.Rules[i]
		rules[i] = rule{
			podNames:   namepattern.CompileList(from.PodNames),
			namespaces: namepattern.CompileList(from.Namespaces),
			verdict: verdict{
				deny:    from.Action == config.FilterDeny,
				reason:  fmt.Sprintf("pod is denied by rule %q of %s", from.Name, Name),
				counter: rejections(from.Name),
			},
		}
		if from.PodSelector != nil {
			selector, err := metav1.LabelSelectorAsSelector(from.PodSelector)
			if err != nil {
				return nil, verdict{}, fmt.Errorf("%s: podSelector of rule %q: %w", Name, from.Name, err)
			}
			rules[i].podSelector = selector
		}
	}
	return rules, verdict{
		deny:    args.DefaultAction == config.FilterDeny,
		reason:  fmt.Sprintf("pod is denied by %s: no rule matches it, and defaultAction is %s", Name, config.FilterDeny),
		counter: rejections(defaultActionLabel),
	}, nil
}
