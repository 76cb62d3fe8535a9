// SPDX-License-Identifier: Apache-2.0

// Package source asks a server for the load of all nodes: Prometheus, or another server with its HTTP API, or the
// resource metrics API. It returns the values as the server sent them; package collector judges them.
package source

import (
	"context"
	"fmt"
	"strings"
)

// Source is a server that measures nodes. It is for one goroutine at a time.
type Source interface {
	// Ask returns the answers to all queries. An error means that no query was answered.
	Ask(ctx context.Context, queries []Query) (Result, error)
	// Close closes idle connections.
	Close()
}

// Query has the PromQL expressions for one resource. An empty Deviation is not evaluated.
type Query struct {
	// Name is the name of the resource, for messages.
	Name string
	// Label is the label of the series that names the node. With Pods, a series is about a pod instead: its labels are
	// namespace and pod, and the label of its rows is NAMESPACE/NAME.
	Label string
	Pods  bool
	// Value returns the load, Timestamp the time of the newest raw sample behind it, Deviation its standard deviation.
	Value, Timestamp, Deviation string
}

// Kind is the expression of a query that a number belongs to.
type Kind uint8

// The kinds, in the order of Query's expressions.
const (
	Value Kind = iota
	Timestamp
	Deviation
)

// letters are the kinds in the label that distinguishes the series of an answer.
const letters = "vtd"

func (q Query) expressions() [len(letters)]string {
	return [...]string{q.Value, q.Timestamp, q.Deviation}
}

// Row is one series of an answer.
type Row struct {
	// Query is the index of the query that returned it.
	Query int
	Kind  Kind
	// Label is the value of the query's label; empty if the series has no such label.
	Label string
	Value float64
}

// termLabel is the label that each query adds to its series, to identify their expression.
const termLabel = "nodeload_term"

// term returns the value of that label: the index of the query and the letter of the kind.
func term(query int, kind Kind) string { return fmt.Sprintf("%d%c", query, letters[kind]) }

// union returns one expression for all expressions of a query. The label makes their series differ, so that `or` keeps
// all of them. The newline after each expression ends a comment at its end.
func (q Query) union(query int) string {
	var terms []string
	for kind, expression := range q.expressions() {
		if expression != "" {
			terms = append(terms, fmt.Sprintf("label_replace((%s\n), %q, %q, \"\", \"\")",
				expression, termLabel, term(query, Kind(kind))))
		}
	}
	return strings.Join(terms, "\nor\n")
}
