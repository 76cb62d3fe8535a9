// SPDX-License-Identifier: Apache-2.0

package namepattern

import (
	"fmt"
	"math/rand"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMatches(t *testing.T) {
	tests := []struct {
		pattern   string
		matches   []string
		matchesNo []string
	}{
		{pattern: "web", matches: []string{"web"}, matchesNo: []string{"", "we", "web-1", "a-web"}},
		{pattern: "*", matches: []string{"", "w", "web-1"}},
		{pattern: "?", matches: []string{"w"}, matchesNo: []string{"", "we"}},
		{pattern: "web-*", matches: []string{"web-", "web-1", "web-1-2"}, matchesNo: []string{"web", "a-web-1"}},
		{pattern: "*-gpu", matches: []string{"-gpu", "node-gpu", "a-gpu-gpu"}, matchesNo: []string{"gpu", "node-gpu-1"}},
		{pattern: "node-?", matches: []string{"node-1", "node--"}, matchesNo: []string{"node-", "node-10"}},
		{pattern: "node-??", matches: []string{"node-10"}, matchesNo: []string{"node-1", "node-100"}},
		{pattern: "*-?", matches: []string{"a-1", "-1", "a-b-c"}, matchesNo: []string{"a-", "a-10"}},
		{pattern: "a*b*c", matches: []string{"abc", "a-b-c", "abbcc", "abcbc"}, matchesNo: []string{"acb", "ab", "abcd"}},
		{pattern: "?*", matches: []string{"a", "ab"}, matchesNo: []string{""}},
		{pattern: "a**b", matches: []string{"ab", "a-b"}, matchesNo: []string{"a", "b"}},
		{pattern: "****", matches: []string{"", "a"}},
		{pattern: "aba*aba", matches: []string{"abaaba", "aba-aba"}, matchesNo: []string{"aba", "ababa"}},
		{pattern: "a.b", matches: []string{"a.b"}, matchesNo: []string{"a-b"}},
		{pattern: "", matches: []string{""}, matchesNo: []string{"a"}},
		// The star before the end must give back what it took: the first "ab" is not the last one.
		{pattern: "*ab", matches: []string{"ab", "abab", "aab"}, matchesNo: []string{"aba"}},
		{pattern: "a*?*b", matches: []string{"axb", "axxb"}, matchesNo: []string{"ab"}},
	}
	for _, tt := range tests {
		t.Run(tt.pattern, func(t *testing.T) {
			pattern := Compile(tt.pattern)
			for _, name := range tt.matches {
				if !pattern.Matches(name) {
					t.Errorf("%q does not match %q", tt.pattern, name)
				}
			}
			for _, name := range tt.matchesNo {
				if pattern.Matches(name) {
					t.Errorf("%q matches %q", tt.pattern, name)
				}
			}
		})
	}
}

// TestMatchesAsRegularExpression compares with a regular expression of the same meaning, on short texts of few
// characters, so that many of them match.
func TestMatchesAsRegularExpression(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	text := func(characters string, max int) string {
		var b strings.Builder
		for i := random.Intn(max + 1); i > 0; i-- {
			b.WriteByte(characters[random.Intn(len(characters))])
		}
		return b.String()
	}
	matched := 0
	for i := 0; i < 20000; i++ {
		pattern, name := text("ab.*?", 7), text("ab.", 8)
		expression := regexp.MustCompile("^" + strings.NewReplacer("*", ".*", "?", ".", ".", `\.`).Replace(pattern) + "$")
		want := expression.MatchString(name)
		if got := Compile(pattern).Matches(name); got != want {
			t.Fatalf("%q matches %q: %t, want %t", pattern, name, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d of the names matched, which says little", matched)
	}
}

func TestListIsAConditionOnlyWithPatterns(t *testing.T) {
	tests := []struct {
		texts []string
		name  string
		want  bool
	}{
		{texts: nil, name: "any", want: true},
		{texts: []string{}, name: "any", want: true},
		{texts: []string{"web-*"}, name: "any", want: false},
		{texts: []string{"web-*", "a??"}, name: "any", want: true},
	}
	for _, tt := range tests {
		if got := CompileList(tt.texts).Matches(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t, want %t", tt.texts, tt.name, got, tt.want)
		}
	}
}

func TestMatchesDoesNotAllocate(t *testing.T) {
	list := CompileList([]string{"db-*", "*-cache-?", "web"})
	if allocations := testing.AllocsPerRun(100, func() { list.Matches("web-cache-10") }); allocations != 0 {
		t.Errorf("%g allocations, want none", allocations)
	}
}

// BenchmarkMatches is for the names of 5,000 nodes, of which one in ten matches.
func BenchmarkMatches(b *testing.B) {
	names := make([]string, 5000)
	for i := range names {
		names[i] = fmt.Sprintf("node-%04d", i)
	}
	for _, text := range []string{"node-0042", "node-1*", "*-0?42", "*5"} {
		pattern := Compile(text)
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			start := time.Now()
			for i := 0; i < b.N; i++ {
				for _, name := range names {
					pattern.Matches(name)
				}
			}
			b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N*len(names)), "ns/node")
		})
	}
}
