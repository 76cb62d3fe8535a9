// SPDX-License-Identifier: Apache-2.0

// Package source asks a server of Prometheus' HTTP API for the load of all nodes: one request for all resources, with
// its time and size bounded, and credentials read from files that may change at any time.
//
// What it hands on is what the server said, as it said it. What a number is worth is not judged here.
package source

import (
	"strconv"
	"strings"
)

// Query is what is asked about one resource, in PromQL. Empty expressions are not asked.
type Query struct {
	// Name is the resource's, for messages.
	Name string
	// Label tells nodes apart in the series of these expressions; if it is empty, the label that Ask is given does.
	Label string
	// Value returns the load, Timestamp the time of the newest raw sample behind it, Deviation its standard deviation.
	Value, Timestamp, Deviation string
}

// Kind is what of a resource a number is.
type Kind uint8

// The kinds, in the order of Query's expressions.
const (
	Value Kind = iota
	Timestamp
	Deviation
)

// letters stand for the kinds in the label that tells an answer's series apart.
const letters = "vtd"

func (q Query) expressions() [len(letters)]string {
	return [...]string{q.Value, q.Timestamp, q.Deviation}
}

func (q *Query) asks(kind Kind) bool {
	switch kind {
	case Value:
		return q.Value != ""
	case Timestamp:
		return q.Timestamp != ""
	}
	return q.Deviation != ""
}

// nodeLabel returns the label that tells nodes apart.
func (q *Query) nodeLabel(otherwise string) string {
	if q.Label != "" {
		return q.Label
	}
	return otherwise
}

func (q Query) empty() bool { return q.expressions() == [len(letters)]string{} }

// termLabel is the label that is put on every series asked for, to say which expression it is from: the slot of the
// resource and the letter of the kind.
const termLabel = "nodeload_term"

// union makes one expression of the queries in the given slots. The label makes the series of different expressions
// differ, so that `or` keeps them all. The line's end behind an expression ends a comment that it may end with.
func union(queries []Query, slots ...int) string {
	var terms []string
	for _, slot := range slots {
		for kind, expression := range queries[slot].expressions() {
			if expression == "" {
				continue
			}
			term := strconv.Itoa(slot) + letters[kind:kind+1]
			terms = append(terms, `label_replace((`+expression+"\n"+`), "`+termLabel+`", "`+term+`", "", "")`)
		}
	}
	return strings.Join(terms, "\nor\n")
}

// term reads what union wrote into the label.
func term(text []byte) (slot int, kind Kind, ok bool) {
	last := len(text) - 1
	if last < 1 || last > 4 {
		return 0, 0, false
	}
	letter := strings.IndexByte(letters, text[last])
	if letter < 0 {
		return 0, 0, false
	}
	for _, digit := range text[:last] {
		if digit < '0' || digit > '9' {
			return 0, 0, false
		}
		slot = 10*slot + int(digit-'0')
	}
	return slot, Kind(letter), true
}
