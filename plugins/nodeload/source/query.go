// SPDX-License-Identifier: Apache-2.0

// Package source asks a server of Prometheus' HTTP API for the load of all nodes, with one request for each resource.
// What it hands on is what the server said. What a number is worth is not judged here.
package source

import (
	"fmt"
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

func (q Query) empty() bool { return q.expressions() == [len(letters)]string{} }

// termLabel is the label that is put on every series asked for, to say which expression it is from.
const termLabel = "nodeload_term"

// term is that label's value: the slot of the resource and the letter of the kind.
func term(slot int, kind Kind) string { return fmt.Sprintf("%d%c", slot, letters[kind]) }

// union makes one expression of a query. The label makes the series of its expressions differ, so that `or` keeps them
// all. The line's end behind an expression ends a comment that it may end with.
func (q Query) union(slot int) string {
	var terms []string
	for kind, expression := range q.expressions() {
		if expression != "" {
			terms = append(terms, fmt.Sprintf("label_replace((%s\n), %q, %q, \"\", \"\")",
				expression, termLabel, term(slot, Kind(kind))))
		}
	}
	return strings.Join(terms, "\nor\n")
}
