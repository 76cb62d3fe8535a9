// SPDX-License-Identifier: Apache-2.0

package filterrule

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

func TestMatchesAny(t *testing.T) {
	tests := []struct {
		patterns  []string
		matches   []string
		matchesNo []string
	}{
		{patterns: nil, matches: []string{"", "any"}},
		{patterns: []string{}, matches: []string{"any"}},
		{patterns: []string{"web"}, matches: []string{"web"}, matchesNo: []string{"", "we", "web-1", "a-web"}},
		{patterns: []string{"web-*", "a??"}, matches: []string{"web-", "web-1-2", "any"}, matchesNo: []string{"web", "a-web-1", "many"}},
		{patterns: []string{"*-gpu"}, matches: []string{"-gpu", "node-gpu", "a-gpu-gpu"}, matchesNo: []string{"gpu", "node-gpu-1"}},
		{patterns: []string{"a*b*c"}, matches: []string{"abc", "a-b-c", "abcbc"}, matchesNo: []string{"acb", "ab", "abcd"}},
		{patterns: []string{"a**b"}, matches: []string{"ab", "a-b"}, matchesNo: []string{"a", "b"}},
		{patterns: []string{"a*?*b"}, matches: []string{"axb", "axxb"}, matchesNo: []string{"ab"}},
		{patterns: []string{"aba*aba"}, matches: []string{"abaaba", "aba-aba"}, matchesNo: []string{"aba", "ababa"}},
		{patterns: []string{"a.b"}, matches: []string{"a.b"}, matchesNo: []string{"a-b"}},
		{patterns: []string{"node-[0-4]?"}, matches: []string{"node-07", "node-42"}, matchesNo: []string{"node-50", "node-4"}},
		{patterns: []string{"web-[^0-9]*"}, matches: []string{"web-a1"}, matchesNo: []string{"web-1", "web-"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.patterns), func(t *testing.T) {
			for _, name := range tt.matches {
				if !MatchesAny(tt.patterns, name) {
					t.Errorf("%q does not match", name)
				}
			}
			for _, name := range tt.matchesNo {
				if MatchesAny(tt.patterns, name) {
					t.Errorf("%q matches", name)
				}
			}
		})
	}
}

func TestCondition(t *testing.T) {
	gpu := &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "true"}}
	notTesting := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "stage", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"testing"}},
	}}
	for _, tt := range []struct {
		what     string
		patterns []string
		selector *metav1.LabelSelector
		name     string
		labels   labels.Set
		want     bool
	}{
		{"a name", []string{"web-*", "*-canary-?"}, nil, "db-canary-1", nil, true},
		{"another name", []string{"*-canary-?"}, nil, "db-canary-10", nil, false},
		{"a label", nil, gpu, "a", labels.Set{"gpu": "true"}, true},
		{"no labels, and a condition on one", nil, gpu, "a", nil, false},
		{"no labels, and a condition on the absence of a value", nil, notTesting, "a", nil, true},
		{"an empty selector", nil, &metav1.LabelSelector{}, "a", nil, true},
		{"both", []string{"gpu-*"}, gpu, "gpu-1", labels.Set{"gpu": "true"}, true},
		{"the label, but not the name", []string{"old-*"}, gpu, "gpu-1", labels.Set{"gpu": "true"}, false},
		{"the name, but not the label", []string{"gpu-*"}, gpu, "gpu-1", labels.Set{"gpu": "false"}, false},
	} {
		c, err := NewCondition(tt.patterns, tt.selector)
		if got := c.Matches(tt.name, tt.labels); err != nil || got != tt.want {
			t.Errorf("%s: got %t, %v, want %t", tt.what, got, err, tt.want)
		}
	}
}

func TestMatchesAnyDoesNotAllocate(t *testing.T) {
	patterns := []string{"db-*", "*-cache-[a-f]", "web"}
	plugintest.ExpectAllocations(t, "MatchesAny", 0, func() { MatchesAny(patterns, "web-cache-10") })
}

// BenchmarkMatchesAny is for the names of 5,000 nodes, of which one in ten matches.
func BenchmarkMatchesAny(b *testing.B) {
	names := make([]string, 5000)
	for i := range names {
		names[i] = fmt.Sprintf("node-%04d", i)
	}
	for _, pattern := range []string{"node-0042", "gpu-*", "node-1*", "*-0?42", "*5"} {
		patterns := []string{pattern}
		b.Run(pattern, func(b *testing.B) {
			plugintest.PerNode(b, len(names), func(int) {
				for _, name := range names {
					MatchesAny(patterns, name)
				}
			})
		})
	}
}
