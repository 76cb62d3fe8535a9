// SPDX-License-Identifier: Apache-2.0

// Package result has the outcome of simulated scheduling, as replay measures it and report compares it.
package result

import "encoding/json"

// Run is the outcome of one configuration with one seed. The same input and seed give the same Run.
type Run struct {
	// Configuration is its name in the report: "stock", or that of its file.
	Configuration string `json:"configuration"`
	Seed          int64  `json:"seed"`
	// Seconds is the simulated time.
	Seconds float64 `json:"seconds"`
	// Incomplete is the reason why the simulation ended early; empty if it did not.
	Incomplete string `json:"incomplete,omitempty"`
	// Figures are in the order in which they are reported. A name occurs once.
	Figures []Figure `json:"figures"`
	// Samples are in the order of their time.
	Samples []Sample `json:"samples,omitempty"`
	// Pods are all pods that were without a node at some time, sorted by name.
	Pods []Pod `json:"pods,omitempty"`
	// Gangs are sorted by name. So are Workloads, those of several pods, if the snapshot's pods were placed again.
	Gangs     []Gang     `json:"gangs,omitempty"`
	Workloads []Workload `json:"workloads,omitempty"`
	// Nodes are those at the chosen moment, sorted by name.
	Nodes []Node `json:"nodes,omitempty"`
	// Preemptions are in the order of their time.
	Preemptions []Preemption `json:"preemptions,omitempty"`
	// Notes are what a reader must know about this configuration, such as a plugin that cannot work here.
	Notes []string `json:"notes,omitempty"`
}

// The values of Figure.Better.
const (
	Higher = "higher"
	Lower  = "lower"
)

// Figure is one measured number.
type Figure struct {
	// Name is like a Prometheus metric's, for example waiting_p99_seconds or
	// waiting_p99_seconds{priority_class="high"}.
	Name string `json:"name"`
	// Title is for people, for example "waiting, p99, class high".
	Title string `json:"title"`
	// Unit is s, pods, nodes, %, cores·s, …, or empty.
	Unit string `json:"unit,omitempty"`
	// Better is Higher, Lower, or empty if the figure has no direction.
	Better string  `json:"better,omitempty"`
	Value  float64 `json:"value"`
}

// Sample is the state at one time. Each name of Values is a curve, for example "cpu allocated, %" or "pods pending".
type Sample struct {
	Seconds float64            `json:"seconds"`
	Values  map[string]float64 `json:"values"`
}

// Pod is a pod's life.
type Pod struct {
	// Name is namespace/name.
	Name string `json:"name"`
	// Node is the node on which it was placed; empty if it was not.
	Node string `json:"node,omitempty"`
	// Created and Bound are in seconds since the start. Bound counts only if Node is not empty.
	Created float64 `json:"created"`
	Bound   float64 `json:"bound,omitempty"`
	// Attempts is the number of scheduling attempts.
	Attempts int `json:"attempts,omitempty"`
	// Reason is the message of the last failed attempt of a pod without a node.
	Reason string `json:"reason,omitempty"`
	// Record is the scheduler's record of the attempts, as `kubectl scheduling why -o json` prints it, if it was asked for.
	Record json.RawMessage `json:"record,omitempty"`
}

// Gang is how long a gang, NAMESPACE/NAME, took until it was complete, or how long it has waited.
type Gang struct {
	Name     string  `json:"name"`
	Seconds  float64 `json:"seconds"`
	Complete bool    `json:"complete"`
}

// Workload counts the pods of a controller, NAMESPACE/KIND/NAME, by zone, and those without a node as NoNode.
type Workload struct {
	Name  string         `json:"name"`
	Pods  int            `json:"pods"`
	Zones map[string]int `json:"zones"`
}

// NoNode is not the name of a zone, which has no spaces.
const NoNode = "no node"

// Node is a node's state at one moment.
type Node struct {
	Name string `json:"name"`
	Zone string `json:"zone,omitempty"`
	// Pods is the number of its pods.
	Pods int `json:"pods"`
	// Allocated and Used are shares of what is allocatable by resource, 0 to 1 and above. Used is empty if use is unknown.
	Allocated map[string]float64 `json:"allocated"`
	Used      map[string]float64 `json:"used,omitempty"`
}

// Preemption is a pod that was evicted for another.
type Preemption struct {
	Seconds float64 `json:"seconds"`
	// Victim and Preemptor are namespace/name.
	Victim    string `json:"victim"`
	Preemptor string `json:"preemptor"`
	Node      string `json:"node"`
}

// Comparison is several configurations with the same input.
type Comparison struct {
	// Method says how the snapshot's pods were placed again, and why the configurations cannot differ; often empty.
	Method string `json:"method,omitempty"`
	// Input describes the snapshot and the trace, one line each.
	Input []string `json:"input"`
	// NotModelled is one line.
	NotModelled string `json:"notModelled"`
	// Warnings are those of reading the input.
	Warnings []string `json:"warnings,omitempty"`
	// Runs are ordered by configuration, in the order of the command line, and then by seed. The first configuration is
	// the one that the others are compared with.
	Runs []Run `json:"runs"`
}
