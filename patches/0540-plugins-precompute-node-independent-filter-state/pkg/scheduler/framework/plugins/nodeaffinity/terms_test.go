// SPDX-License-Identifier: Apache-2.0

package nodeaffinity

import (
	"math/rand"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// TestTermsAgainstComponentHelpers compares all kinds of requirements with component-helpers.
func TestTermsAgainstComponentHelpers(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	of := func(values ...string) string { return values[random.Intn(len(values))] }
	requirement := func(fields bool) v1.NodeSelectorRequirement {
		if fields {
			return v1.NodeSelectorRequirement{
				Key: of(metav1.ObjectNameField, "metadata.other"), Operator: v1.NodeSelectorOperator(of("In", "NotIn")), Values: []string{of("a", "b", "")},
			}
		}
		r := v1.NodeSelectorRequirement{Key: of("x", "y", "n"), Operator: v1.NodeSelectorOperator(of("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))}
		switch r.Operator {
		case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
			r.Values = []string{of("1", "2"), of("2", "3")}
		case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
			r.Values = []string{of("1", "2")}
		}
		return r
	}
	matched, wrong := 0, 0
	for i := 0; i < 20000; i++ {
		makeTerm := func() (term v1.NodeSelectorTerm) {
			for random.Intn(2) == 0 {
				term.MatchExpressions = append(term.MatchExpressions, requirement(false))
			}
			for random.Intn(3) == 0 {
				term.MatchFields = append(term.MatchFields, requirement(true))
			}
			return term
		}
		required := &v1.NodeSelector{}
		for random.Intn(3) > 0 {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, makeTerm())
		}
		pod := &v1.Pod{Spec: v1.PodSpec{Affinity: &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: required,
		}}}}
		if random.Intn(2) == 0 {
			pod.Spec.NodeSelector = map[string]string{"x": of("1", "2")}
		}
		if random.Intn(4) == 0 {
			pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
		}
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: of("a", "b", ""), Labels: map[string]string{"x": of("1", "2", "3")}}}
		if random.Intn(2) == 0 {
			node.Labels["n"] = of("0", "2", "no number")
		}
		want, _ := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
		match, ok := requiredMatcher(pod)
		if got := match(node); !ok || got != want {
			t.Fatalf("required %+v and %v of %s with %v: got %v, want %v", required, pod.Spec.NodeSelector, node.Name, node.Labels, got, want)
		}
		if want {
			matched++
		} else {
			wrong++
		}
	}
	if matched < 1000 || wrong < 1000 {
		t.Errorf("%d matched and %d did not: too few for a comparison", matched, wrong)
	}
}

func TestTermsWithErrors(t *testing.T) {
	for name, term := range map[string]v1.NodeSelectorTerm{
		"an unknown operator":     {MatchExpressions: []v1.NodeSelectorRequirement{{Key: "x", Operator: "Near"}}},
		"a key that is no label":  {MatchExpressions: []v1.NodeSelectorRequirement{{Key: "?", Operator: v1.NodeSelectorOpExists}}},
		"a field of two values":   {MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"a", "b"}}}},
		"a field that must exist": {MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpExists}}},
	} {
		if _, ok := NewTerms([]v1.NodeSelectorTerm{term}); ok {
			t.Errorf("%s: got no error", name)
		}
	}
}
