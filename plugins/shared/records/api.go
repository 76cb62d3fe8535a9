// SPDX-License-Identifier: Apache-2.0

package records

import "time"

// APIVersion is of all answers.
const APIVersion = "scheduling-records/v1alpha1"

// Paths of the answers. Their paths are also what RBAC names as nonResourceURLs.
const (
	// PodsPath is where pods are listed; a pod is at PodsPath/NAMESPACE/NAME.
	PodsPath = "/scheduling/pods"
	// QueuePath is where the pods that wait are listed, with what they wait for.
	QueuePath = "/scheduling/queue"
	// WhatIfPath says what would become of a pod: GET with the parameter pod=NAMESPACE/NAME for one that waits, POST
	// for one whose manifest (JSON or YAML) is the body. With nodes=all, the answer has each node's verdict.
	WhatIfPath = "/scheduling/what-if"
)

// Result is what came of an attempt.
type Result string

// Results.
const (
	Bound         Result = "Bound"
	Binding       Result = "Binding"
	Unschedulable Result = "Unschedulable"
	Failed        Result = "Error"
	// Gone is of a pod that does not exist any more, and was not bound by this scheduler.
	Gone Result = "Gone"
	// Fits is of a what-if: nodes are feasible.
	Fits Result = "Fits"
)

// Answer is what all answers begin with.
type Answer struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Leader says that this scheduler schedules now. Another one's records are not known here. LeaderIdentity is who
	// does, if the lease says so: the name of a node, "_", and a random part.
	Leader         bool   `json:"leader"`
	LeaderIdentity string `json:"leaderIdentity,omitempty"`
	// Version is of this scheduler; Configuration the first 12 hexadecimal digits of the SHA-256 of its configuration.
	Version       string `json:"version"`
	Configuration string `json:"configuration,omitempty"`
}

// PodList is the answer at PodsPath: pods that wait, and then pods that are bound, those with the latest attempts
// first.
type PodList struct {
	Answer `json:",inline"`
	Items  []PodSummary `json:"items"`
}

// PodSummary is what came of a pod's last attempt.
type PodSummary struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Time      time.Time `json:"time"`
	Attempt   int       `json:"attempt"`
	Result    Result    `json:"result"`
	Node      string    `json:"node,omitempty"`
	// NominatedNode is where pods of lower priority are evicted for it.
	NominatedNode string `json:"nominatedNode,omitempty"`
	// Summary says in a sentence or two what came of it.
	Summary string `json:"summary"`
}

// PodRecord is the answer at PodsPath/NAMESPACE/NAME. If several pods had the name, it is the last one.
type PodRecord struct {
	Answer     `json:",inline"`
	PodSummary `json:",inline"`
	// Permit are the plugins that the pod waits for now, with a node chosen.
	Permit []PermitWait `json:"permit,omitempty"`
	// Attempts are the last ones, the latest first.
	Attempts []AttemptRecord `json:"attempts"`
}

// PermitWait is a Permit plugin that has not let a pod go on yet.
type PermitWait struct {
	Plugin string `json:"plugin"`
	// Since is when the pod began to wait.
	Since time.Time `json:"since"`
}

// AttemptRecord is one attempt to schedule a pod.
type AttemptRecord struct {
	Time time.Time `json:"time"`
	// Attempt is its number, from 1; attempts before this scheduler's start do not count.
	Attempt int    `json:"attempt"`
	Profile string `json:"profile"`
	// QueuedSeconds is how long the pod had waited since it was last put into the queue, SinceFirstSeconds since its
	// first attempt began to wait.
	QueuedSeconds     float64 `json:"queuedSeconds"`
	SinceFirstSeconds float64 `json:"sinceFirstSeconds"`
	// WokenBy is the event that let it be tried again, such as NodeAdd.
	WokenBy string `json:"wokenBy,omitempty"`
	// CycleSeconds is how long the search for a node took; ToEndSeconds how long it took until the pod was bound, or
	// the attempt had failed.
	CycleSeconds float64 `json:"cycleSeconds"`
	ToEndSeconds float64 `json:"toEndSeconds,omitempty"`
	Result       Result  `json:"result"`
	Summary      string  `json:"summary"`
	// Error is what the scheduler said, unless no node fitted. A Permit plugin that rejects a pod is an error, too.
	Error string `json:"error,omitempty"`
	// Steps are the extension points after a node was chosen, in their order.
	Steps    []StepRecord `json:"steps,omitempty"`
	Decision `json:",inline"`
}

// Decision is how nodes were rejected and scored.
type Decision struct {
	// Nodes is how many the cluster had, Evaluated how many were looked at, Feasible how many fitted.
	Nodes      int               `json:"nodes"`
	Evaluated  int               `json:"evaluated"`
	Feasible   int               `json:"feasible"`
	Rejections []RejectionRecord `json:"rejections,omitempty"`
	// Extenders are the calls of extenders, in their order.
	Extenders []ExtenderCall `json:"extenders,omitempty"`
	Node      string         `json:"node,omitempty"`
	// Ties is how many nodes had the highest score: one of them was chosen by lot.
	Ties int `json:"ties,omitempty"`
	// Scores are those of the best nodes and of the chosen one. Without, nothing was scored, because one node fitted.
	Scores []NodeScores `json:"scores,omitempty"`
	// Preemption is what was found when no node fitted.
	Preemption *PreemptionRecord `json:"preemption,omitempty"`
	// Words are what plugins say of their part.
	Words []PluginWords `json:"words,omitempty"`
}

// StepRecord is one extension point: Reserve, Permit, WaitOnPermit, PreBind or Bind.
type StepRecord struct {
	ExtensionPoint string  `json:"extensionPoint"`
	Seconds        float64 `json:"seconds"`
	// Status is the code that it ended with, such as Success.
	Status string `json:"status"`
}

// ExtenderCall is one request to an extender.
type ExtenderCall struct {
	// URL is that of the configuration, without user and password.
	URL     string  `json:"url"`
	Verb    string  `json:"verb"`
	Seconds float64 `json:"seconds"`
	// NodesIn is how many nodes it got, NodesOut how many of them it left.
	NodesIn  int    `json:"nodesIn"`
	NodesOut int    `json:"nodesOut"`
	Error    string `json:"error,omitempty"`
}

// PreemptionRecord is what preemption found.
type PreemptionRecord struct {
	// Candidates is on how many of the nodes that were looked at the eviction of pods would make room; Sample are some
	// of them.
	Candidates int      `json:"candidates"`
	Sample     []string `json:"sample,omitempty"`
	// Node is the chosen one, and Victims are the pods to be evicted from it, as NAMESPACE/NAME; VictimCount is how
	// many, if not all are named.
	Node        string   `json:"node,omitempty"`
	Victims     []string `json:"victims,omitempty"`
	VictimCount int      `json:"victimCount,omitempty"`
	// WhyNot says why nothing is evicted.
	WhyNot string `json:"whyNot,omitempty"`
}

// PluginWords are what a plugin says of its part in a decision.
type PluginWords struct {
	Plugin string `json:"plugin"`
	Text   string `json:"text"`
}

// RejectionRecord are nodes that were rejected for the same reasons.
type RejectionRecord struct {
	// Plugin is empty for an extender.
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons"`
	Nodes   int      `json:"nodes"`
	// Sample are some of the nodes.
	Sample []string `json:"sample,omitempty"`
}

// NodeScores are the scores of one node.
type NodeScores struct {
	Node  string `json:"node"`
	Total int64  `json:"total"`
	// Extenders is what extenders added to the plugins' scores.
	Extenders int64         `json:"extenders,omitempty"`
	Plugins   []PluginScore `json:"plugins,omitempty"`
}

// PluginScore is what one plugin scored: as it said, from 0 to 100, and times its weight.
type PluginScore struct {
	Name       string `json:"name"`
	Raw        int64  `json:"raw"`
	Normalized int64  `json:"normalized"`
	Weight     int64  `json:"weight"`
	Weighted   int64  `json:"weighted"`
}

// WhatIf is the answer at WhatIfPath: what an attempt to schedule a pod would come to now. Nothing is reserved, bound
// or evicted for it. All filters see all nodes, so a node may be counted in several rejections.
type WhatIf struct {
	Answer    `json:",inline"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Profile   string `json:"profile"`
	// Result is Fits, Unschedulable or Error.
	Result  Result `json:"result"`
	Summary string `json:"summary"`
	// Seconds is for how long scheduling waited for the answer.
	Seconds  float64 `json:"seconds"`
	Decision `json:",inline"`
	// Verdicts are of all nodes: those that fit first, the best ones first. Only with nodes=all.
	Verdicts []NodeVerdict `json:"verdicts,omitempty"`
}

// NodeVerdict is what would become of a pod on one node.
type NodeVerdict struct {
	Node string `json:"node"`
	Fits bool   `json:"fits"`
	// Total is its score, if it fits.
	Total int64 `json:"total,omitempty"`
	// Rejections are by all plugins, or by an extender, that reject it; Nodes is 1.
	Rejections []RejectionRecord `json:"rejections,omitempty"`
}

// Where says in which part of the queue a pod is.
type Where string

// Parts of the queue.
const (
	// InActive pods are tried next.
	InActive Where = "Active"
	// InBackoff pods have failed not long ago, and are tried again when their backoff ends.
	InBackoff Where = "Backoff"
	// InUnschedulable pods wait for an event that may make them schedulable, or for a minute.
	InUnschedulable Where = "Unschedulable"
	// InPermit pods have a node, and wait for Permit plugins.
	InPermit Where = "Permit"
)

// Queue is the answer at QueuePath: pods that wait, in the order of the parts, and of the time they have waited.
type Queue struct {
	Answer `json:",inline"`
	// Lengths are those of now. Items are at most 5,000 of the pods.
	Lengths QueueLengths `json:"lengths"`
	Items   []QueuedPod  `json:"items"`
	// History are the lengths of the parts in the last hour, the oldest first.
	History []QueueLengths `json:"history"`
}

// QueuedPod is a pod that waits.
type QueuedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Profile   string `json:"profile"`
	Priority  int32  `json:"priority"`
	Where     Where  `json:"where"`
	// Since is when it came into the queue the last time, First when it did so the first time.
	Since time.Time `json:"since"`
	First time.Time `json:"first"`
	// Until is when its backoff ends.
	Until    *time.Time `json:"until,omitempty"`
	Attempts int        `json:"attempts"`
	// WaitsFor are the plugins that rejected it, or that a pod in Permit waits for: an event that matters to one of
	// them lets it be tried again.
	WaitsFor []string `json:"waitsFor,omitempty"`
	// NominatedNode is where pods of lower priority are evicted for it.
	NominatedNode string `json:"nominatedNode,omitempty"`
	// Summary is that of its last attempt, if it is recorded.
	Summary string `json:"summary,omitempty"`
}

// QueueLengths is how many pods each part of the queue had.
type QueueLengths struct {
	Time          time.Time `json:"time"`
	Active        int       `json:"active"`
	Backoff       int       `json:"backoff"`
	Unschedulable int       `json:"unschedulable"`
	Permit        int       `json:"permit"`
}
