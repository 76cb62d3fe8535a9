// SPDX-License-Identifier: Apache-2.0

package records

import "time"

// NodesPath is the path of the nodes' records: NodesPath/NAME returns what the last attempts recorded about a node.
const NodesPath = "/scheduling/nodes"

// NodeRecord is the answer at NodesPath/NAME: what the last attempt of each pod recorded about a node, the latest
// first.
type NodeRecord struct {
	Answer `json:",inline"`
	Name   string `json:"name"`
	// Rejected lists attempts that name the node among those they rejected. An attempt names only some of them, so
	// other pods may have been rejected too.
	Rejected []NodeRejection `json:"rejected,omitempty"`
	// Scored lists attempts in which the node was one of the best, or the chosen one.
	Scored []NodeScored `json:"scored,omitempty"`
	// Pods are bound to it, or being bound.
	Pods []PodSummary `json:"pods,omitempty"`
}

// PodAttempt identifies the last attempt of a pod.
type PodAttempt struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Time      time.Time `json:"time"`
	Attempt   int       `json:"attempt"`
}

// NodeRejection is an attempt that rejected the node.
type NodeRejection struct {
	PodAttempt `json:",inline"`
	// Plugin is empty for an extender.
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons"`
	// Nodes is the number of nodes rejected for these reasons, including this one.
	Nodes int `json:"nodes"`
}

// NodeScored is an attempt that scored the node.
type NodeScored struct {
	PodAttempt `json:",inline"`
	// Rank is 1 for the nodes with the highest total. Of is the number of feasible nodes.
	Rank int `json:"rank"`
	Of   int `json:"of"`
	// Total is the node's score, Highest the highest of all nodes.
	Total   int64 `json:"total"`
	Highest int64 `json:"highest"`
	// Chosen reports whether the attempt chose it.
	Chosen bool `json:"chosen"`
}

// Node returns what the last attempt of each pod recorded about a node.
func (r *Recorder) Node(name string) NodeRecord {
	node := NodeRecord{Name: name}
	for _, kept := range r.copy(func(*pod) bool { return true }) {
		if summary := r.summary(kept); summary.Node == name {
			node.Pods = append(node.Pods, summary)
		}
		attempt := kept.last().record()
		of := PodAttempt{Namespace: kept.namespace, Name: kept.name, Time: attempt.Time, Attempt: attempt.Attempt}
		for _, rejection := range attempt.Rejections {
			for _, sample := range rejection.Sample {
				if sample == name {
					node.Rejected = append(node.Rejected, NodeRejection{
						PodAttempt: of, Plugin: rejection.Plugin, Reasons: rejection.Reasons, Nodes: rejection.Nodes,
					})
				}
			}
		}
		rank := 1
		for i, scores := range attempt.Scores {
			if i > 0 && scores.Total < attempt.Scores[i-1].Total {
				rank = i + 1
			}
			if scores.Node == name {
				node.Scored = append(node.Scored, NodeScored{
					PodAttempt: of, Rank: rank, Of: attempt.Feasible,
					Total: scores.Total, Highest: attempt.Scores[0].Total, Chosen: attempt.Node == name,
				})
			}
		}
	}
	return node
}
