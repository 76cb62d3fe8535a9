// SPDX-License-Identifier: Apache-2.0

// Package namepattern matches names of Kubernetes objects by patterns: * stands for any text, none too, and ? for any
// one character. A pattern is compiled once; to match neither allocates nor fails.
package namepattern

import "strings"

// Pattern is a compiled pattern. The zero value matches the empty name alone.
type Pattern struct {
	// prefix is what stands before the first wildcard, and suffix what stands after the last one: the name must begin
	// and end with them. Most patterns are decided by these two, at the cost of a comparison.
	prefix, suffix string
	// middle is all from the first wildcard to the last one; none means that the name must be the prefix itself.
	middle string
}

// Compile makes a pattern of its text. Every text is a pattern. Names are ASCII, so a character is a byte.
func Compile(text string) Pattern {
	// Two stars say no more than one, and would only make the search longer.
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	const wildcards = "*?"
	first := strings.IndexAny(text, wildcards)
	if first < 0 {
		return Pattern{prefix: text}
	}
	last := strings.LastIndexAny(text, wildcards)
	return Pattern{prefix: text[:first], middle: text[first : last+1], suffix: text[last+1:]}
}

// Matches says whether the pattern matches the whole name.
func (p Pattern) Matches(name string) bool {
	if p.middle == "" {
		return name == p.prefix
	}
	// The length first: the prefix and the suffix must not share characters of the name.
	if len(name) < len(p.prefix)+len(p.suffix) || !strings.HasPrefix(name, p.prefix) || !strings.HasSuffix(name, p.suffix) {
		return false
	}
	return p.middle == "*" || matchWildcards(p.middle, name[len(p.prefix):len(name)-len(p.suffix)])
}

// matchWildcards walks over the pattern and the name at once. When they differ, it goes back to the last star alone and
// lets that one take one character more: what an earlier star took is never worth a second thought, because the last
// star can take all that the earlier one could have. So the time is at most len(pattern) × len(name).
func matchWildcards(pattern, name string) bool {
	p, n := 0, 0
	lastStar, taken := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			lastStar, taken = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case lastStar >= 0:
			taken++
			p, n = lastStar+1, taken
		default:
			return false
		}
	}
	return pattern[p:] == "" || pattern[p:] == "*"
}

// List is a condition on a name: one of the patterns must match it. A list without patterns is no condition.
type List []Pattern

// CompileList makes a list of the patterns' texts.
func CompileList(texts []string) List {
	if len(texts) == 0 {
		return nil
	}
	list := make(List, len(texts))
	for i := range texts {
		list[i] = Compile(texts[i])
	}
	return list
}

// Matches says whether the name fulfils the condition.
func (l List) Matches(name string) bool {
	if len(l) == 0 {
		return true
	}
	for i := range l {
		if l[i].Matches(name) {
			return true
		}
	}
	return false
}
