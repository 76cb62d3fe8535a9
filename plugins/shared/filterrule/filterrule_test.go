// SPDX-License-Identifier: Apache-2.0

package filterrule

import (
	"fmt"
	"testing"
	"time"
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

func TestMatchesAnyDoesNotAllocate(t *testing.T) {
	patterns := []string{"db-*", "*-cache-[a-f]", "web"}
	if allocations := testing.AllocsPerRun(100, func() { MatchesAny(patterns, "web-cache-10") }); allocations != 0 {
		t.Errorf("%g allocations, want none", allocations)
	}
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
			b.ReportAllocs()
			start := time.Now()
			for i := 0; i < b.N; i++ {
				for _, name := range names {
					MatchesAny(patterns, name)
				}
			}
			b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N*len(names)), "ns/node")
		})
	}
}
