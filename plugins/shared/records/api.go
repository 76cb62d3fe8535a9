// SPDX-License-Identifier: Apache-2.0

package records

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIVersion is the version of all answers.
const APIVersion = "scheduling-records/v1alpha1"

// Paths of the answers. RBAC uses the same paths as nonResourceURLs.
const (
	// PodsPath is the path of the list of pods; PodsPath/NAMESPACE/NAME is that of one pod.
	PodsPath = "/scheduling/pods"
	// QueuePath is the path of the list of pending pods, with the plugins that they wait for.
	QueuePath = "/scheduling/queue"
	// WhatIfPath is the path of dry-run scheduling: GET with the parameter pod=NAMESPACE/NAME for a pending pod, POST
	// with a manifest (JSON) as the body for another pod. With nodes=all, the answer has a verdict for each
	// node. A pending pod of a gang stands for its whole gang. The manifest of a gang is a List of its Pods, before
	// which its PodGroup may stand; a Pod with the annotation CopiesAnnotation stands for several.
	WhatIfPath = "/scheduling/what-if"
	// OpenAPIPath has the schema of all answers, in OpenAPI 2.
	OpenAPIPath = "/scheduling/openapi"
)

// ReasonStandby is the reason in the metav1.Status of a standby, whose details name the holder of the lease.
const ReasonStandby metav1.StatusReason = "Standby"

// Result is the result of an attempt.
type Result string

// Results.
const (
	Bound         Result = "Bound"
	Binding       Result = "Binding"
	Unschedulable Result = "Unschedulable"
	Failed        Result = "Error"
	// Gone pods no longer exist, and were not bound by this scheduler.
	Gone Result = "Gone"
	// Fits is the result of a dry run with feasible nodes.
	Fits Result = "Fits"
)

// Answer has the fields that all answers begin with.
type Answer struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Leader reports whether this scheduler is the leader. It does not know the records of others. LeaderIdentity is
	// the leader, if the lease names one: the name of a node, "_", and a random part.
	Leader         bool   `json:"leader"`
	LeaderIdentity string `json:"leaderIdentity,omitempty"`
	// Version is this scheduler's version. Configuration is the first 12 hexadecimal digits of the SHA-256 of its
	// configuration.
	Version       string `json:"version"`
	Configuration string `json:"configuration,omitempty"`
}

// PodList is the answer at PodsPath: pending pods, then bound pods, each with the latest attempts first.
type PodList struct {
	Answer `json:",inline"`
	Items  []PodSummary `json:"items"`
	// Continue is set if the parameter limit has cut off items: the parameter continue with this value returns the next
	// ones. A list may change between the requests.
	Continue string `json:"continue,omitempty"`
}

// PodSummary is the result of a pod's last attempt.
type PodSummary struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Time      time.Time `json:"time"`
	Attempt   int       `json:"attempt"`
	Result    Result    `json:"result"`
	Node      string    `json:"node,omitempty"`
	// NominatedNode is the node on which pods of lower priority are evicted for it.
	NominatedNode string `json:"nominatedNode,omitempty"`
	// Summary describes the result in a sentence or two.
	Summary string `json:"summary"`
}

// PodRecord is the answer at PodsPath/NAMESPACE/NAME. If several pods had the name, it describes the last one.
type PodRecord struct {
	Answer     `json:",inline"`
	PodSummary `json:",inline"`
	// Permit lists the plugins that the pod waits for now, after a node was chosen.
	Permit []PermitWait `json:"permit,omitempty"`
	// Attempts are the last attempts, the latest first.
	Attempts []AttemptRecord `json:"attempts"`
}

// PermitWait is a Permit plugin that has not allowed a pod yet.
type PermitWait struct {
	Plugin string `json:"plugin"`
	// Since is when the wait began.
	Since time.Time `json:"since"`
}

// AttemptRecord is one attempt to schedule a pod.
type AttemptRecord struct {
	Time time.Time `json:"time"`
	// Attempt is its number, from 1; attempts before this scheduler's start are not counted.
	Attempt int    `json:"attempt"`
	Profile string `json:"profile"`
	// QueuedSeconds is the time since the pod was last added to the queue, SinceFirstSeconds the time since it was
	// first added.
	QueuedSeconds     float64 `json:"queuedSeconds"`
	SinceFirstSeconds float64 `json:"sinceFirstSeconds"`
	// WokenBy is the event that triggered the retry, such as NodeAdd.
	WokenBy string `json:"wokenBy,omitempty"`
	// CycleSeconds is the duration of the search for a node; ToEndSeconds the time until the pod was bound or the
	// attempt had failed.
	CycleSeconds float64 `json:"cycleSeconds"`
	ToEndSeconds float64 `json:"toEndSeconds,omitempty"`
	Result       Result  `json:"result"`
	Summary      string  `json:"summary"`
	// Error is the scheduler's error, unless no node fitted. Rejection by a Permit plugin is also an error.
	Error string `json:"error,omitempty"`
	// Steps are the extension points after the choice of a node, in order.
	Steps    []StepRecord `json:"steps,omitempty"`
	Decision `json:",inline"`
}

// Decision describes how nodes were rejected and scored.
type Decision struct {
	// Nodes is the number of nodes in the cluster, Evaluated the number of evaluated nodes, and Feasible the number of
	// feasible nodes.
	Nodes      int               `json:"nodes"`
	Evaluated  int               `json:"evaluated"`
	Feasible   int               `json:"feasible"`
	Rejections []RejectionRecord `json:"rejections,omitempty"`
	// Extenders are the calls to extenders, in order.
	Extenders []ExtenderCall `json:"extenders,omitempty"`
	Node      string         `json:"node,omitempty"`
	// Ties is the number of nodes with the highest score; one of them was chosen at random.
	Ties int `json:"ties,omitempty"`
	// Scores are those of the best nodes and of the chosen one. They are empty if only one node fitted, because then
	// nothing is scored.
	Scores []NodeScores `json:"scores,omitempty"`
	// Preemption is the result of preemption if no node fitted.
	Preemption *PreemptionRecord `json:"preemption,omitempty"`
	// Words are the plugins' explanations.
	Words []PluginWords `json:"words,omitempty"`
}

// StepRecord is one extension point: Reserve, Permit, WaitOnPermit, PreBind or Bind.
type StepRecord struct {
	ExtensionPoint string  `json:"extensionPoint"`
	Seconds        float64 `json:"seconds"`
	// Status is its status code, such as Success.
	Status string `json:"status"`
}

// ExtenderCall is one request to an extender.
type ExtenderCall struct {
	// URL is the configured URL, without user and password.
	URL     string  `json:"url"`
	Verb    string  `json:"verb"`
	Seconds float64 `json:"seconds"`
	// NodesIn is the number of nodes sent, NodesOut the number returned.
	NodesIn  int    `json:"nodesIn"`
	NodesOut int    `json:"nodesOut"`
	Error    string `json:"error,omitempty"`
}

// PreemptionRecord is the result of preemption.
type PreemptionRecord struct {
	// Candidates is the number of evaluated nodes on which evicting pods would make room; Sample names some of them.
	Candidates int      `json:"candidates"`
	Sample     []string `json:"sample,omitempty"`
	// Node is the chosen node. Victims are the pods to be evicted from it, as NAMESPACE/NAME; VictimCount is their
	// number, also if not all are named.
	Node        string   `json:"node,omitempty"`
	Victims     []string `json:"victims,omitempty"`
	VictimCount int      `json:"victimCount,omitempty"`
	// WhyNot explains why nothing is evicted.
	WhyNot string `json:"whyNot,omitempty"`
}

// PluginWords is a plugin's explanation of its part in a decision.
type PluginWords struct {
	Plugin string `json:"plugin"`
	Text   string `json:"text"`
}

// RejectionRecord describes nodes that were rejected for the same reasons.
type RejectionRecord struct {
	// Plugin is empty for an extender.
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons"`
	Nodes   int      `json:"nodes"`
	// Sample names some of the nodes.
	Sample []string `json:"sample,omitempty"`
}

// NodeScores are the scores of one node.
type NodeScores struct {
	Node  string `json:"node"`
	Total int64  `json:"total"`
	// Extenders is the part of Total that extenders added to the plugins' scores.
	Extenders int64         `json:"extenders,omitempty"`
	Plugins   []PluginScore `json:"plugins,omitempty"`
}

// PluginScore is one plugin's score: as returned by Score, normalized to 0 to 100, and multiplied by its weight.
type PluginScore struct {
	Name       string `json:"name"`
	Raw        int64  `json:"raw"`
	Normalized int64  `json:"normalized"`
	Weight     int64  `json:"weight"`
	Weighted   int64  `json:"weighted"`
}

// WhatIf is the answer at WhatIfPath: the result of scheduling a pod now. Nothing is reserved, bound or evicted. All
// filters evaluate all nodes, so a node may be counted in several rejections.
type WhatIf struct {
	Answer    `json:",inline"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Profile   string `json:"profile"`
	// Result is Fits, Unschedulable or Error.
	Result  Result `json:"result"`
	Summary string `json:"summary"`
	// Lacks are sentences about what no node has for it.
	Lacks []string `json:"lacks,omitempty"`
	// Seconds is the time for which the request paused scheduling.
	Seconds  float64 `json:"seconds"`
	Decision `json:",inline"`
	// Verdicts cover all nodes: feasible nodes first, by descending score, then those that fewest plugins reject. Only
	// with nodes=all.
	Verdicts []NodeVerdict `json:"verdicts,omitempty"`
	// Gang is set if the pod is of a gang that is decided as one. Then Result and Summary are the gang's, and Decision
	// is that of its pod that fits nowhere.
	Gang *GangWhatIf `json:"gang,omitempty"`
}

// GangWhatIf is the result of scheduling a gang now, or after preemption.
type GangWhatIf struct {
	// Name is NAMESPACE/NAME.
	Name string `json:"name"`
	// Result is Fits or Unschedulable. Profile is that of its pods.
	Result  Result `json:"-"`
	Profile string `json:"-"`
	// Reason is why the gang cannot run whatever the nodes have, such as a missing PodGroup.
	Reason string `json:"reason,omitempty"`
	// Running is the number of its pods that have nodes, Needed the number of others that must get nodes now, and Found
	// the most of them that do in one domain.
	Running int `json:"running"`
	Needed  int `json:"needed"`
	Found   int `json:"found"`
	// Domain is where Found is: KEY=VALUE, or empty for all nodes. Domains are others that were tried, the best first.
	Domain  string       `json:"domain,omitempty"`
	Domains []GangDomain `json:"domains,omitempty"`
	// Pods are those that wait, with the nodes that they would get in Domain.
	Pods []GangPod `json:"pods,omitempty"`
	// Unfit is NAMESPACE/NAME of the pod that fits nowhere in Domain, and Decision is how nodes reject it.
	Unfit    string   `json:"unfit,omitempty"`
	Decision Decision `json:"-"`
	// Victims are the pods whose eviction makes room for the gang, by node.
	Victims []GangVictims `json:"victims,omitempty"`
	// WhyNot explains why nothing is evicted.
	WhyNot string `json:"whyNot,omitempty"`
}

// GangDomain is a domain in which a gang was tried.
type GangDomain struct {
	// Domain is KEY=VALUE of a node label.
	Domain string `json:"domain"`
	// Found is the number of pods that get nodes there.
	Found int `json:"found"`
}

// GangPod is a pod of a gang in a dry run.
type GangPod struct {
	Name string `json:"name"`
	// Node is empty for a pod that does not fit, or was not tried.
	Node string `json:"node,omitempty"`
}

// GangVictims are the pods of a node that preemption for a gang evicts.
type GangVictims struct {
	Node string `json:"node"`
	// Pods are their names, as NAMESPACE/NAME.
	Pods []string `json:"pods"`
}

// NodeVerdict is the result for a pod on one node.
type NodeVerdict struct {
	Node string `json:"node"`
	Fits bool   `json:"fits"`
	// Total is its score, if it is feasible.
	Total int64 `json:"total,omitempty"`
	// Rejections are those of all plugins, or of an extender, that reject it; Nodes is 1.
	Rejections []RejectionRecord `json:"rejections,omitempty"`
}

// Where is a part of the queue.
type Where string

// Parts of the queue.
const (
	// InActive pods are scheduled next.
	InActive Where = "Active"
	// InBackoff pods failed recently, and are retried when their backoff ends.
	InBackoff Where = "Backoff"
	// InUnschedulable pods wait for an event that may make them schedulable, or for a minute.
	InUnschedulable Where = "Unschedulable"
	// InPermit pods have a node and wait for Permit plugins.
	InPermit Where = "Permit"
)

// Queue is the answer at QueuePath: pending pods, ordered by part and then by waiting time.
type Queue struct {
	Answer `json:",inline"`
	// Lengths are the current lengths. Items are at most 5,000 of the pods.
	Lengths QueueLengths `json:"lengths"`
	Items   []QueuedPod  `json:"items"`
	// Continue is as in a PodList.
	Continue string `json:"continue,omitempty"`
}

// QueuedPod is a pending pod.
type QueuedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Profile   string `json:"profile"`
	Priority  int32  `json:"priority"`
	Where     Where  `json:"where"`
	// Since is when it was last added to the queue, First when it was first added.
	Since time.Time `json:"since"`
	First time.Time `json:"first"`
	// Until is the end of its backoff.
	Until    *time.Time `json:"until,omitempty"`
	Attempts int        `json:"attempts"`
	// WaitsFor are the plugins that rejected it, or that a pod in Permit waits for. An event that matters to one of
	// them triggers a retry.
	WaitsFor []string `json:"waitsFor,omitempty"`
	// NominatedNode is the node on which pods of lower priority are evicted for it.
	NominatedNode string `json:"nominatedNode,omitempty"`
	// Summary describes its last attempt, if that is recorded.
	Summary string `json:"summary,omitempty"`
}

// QueueLengths is the number of pods in each part of the queue.
type QueueLengths struct {
	Active        int `json:"active"`
	Backoff       int `json:"backoff"`
	Unschedulable int `json:"unschedulable"`
	Permit        int `json:"permit"`
}
