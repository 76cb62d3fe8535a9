// SPDX-License-Identifier: Apache-2.0

package scheduling

import "time"

// The scheduler's paths, and the fields of its answers that are printed; plugins/shared/records/api.go documents the
// fields. -o json and -o yaml print the answers unchanged.
const (
	podsPath   = "/scheduling/pods"
	queuePath  = "/scheduling/queue"
	whatIfPath = "/scheduling/what-if"
	// reasonStandby is the reason in the Status of a scheduler that does not lead.
	reasonStandby = "Standby"
	// nextCommand is the cause in a Status whose message is the next command.
	nextCommand = "NextCommand"
)

// answer has the fields of all answers.
type answer struct {
	Leader                                 bool
	LeaderIdentity, Version, Configuration string
}

type podList struct {
	answer
	Items []podSummary
}

type podSummary struct {
	Namespace, Name, UID, Result, Node, NominatedNode, Summary string
	Time                                                       time.Time
	Attempt                                                    int
}

type podRecord struct {
	answer
	podSummary
	Permit   []permitWait
	Attempts []attempt
}

type permitWait struct {
	Plugin string
	Since  time.Time
}

type attempt struct {
	Time                                     time.Time
	Attempt                                  int
	Profile, WokenBy, Result, Error, Summary string
	QueuedSeconds, SinceFirstSeconds         float64
	CycleSeconds, ToEndSeconds               float64
	Steps                                    []step
	decision
}

type step struct {
	ExtensionPoint, Status string
	Seconds                float64
}

type decision struct {
	Nodes, Evaluated, Feasible, Ties int
	Node                             string
	Rejections                       []rejection
	Extenders                        []extenderCall
	Scores                           []nodeScores
	Preemption                       *preemption
	Words                            []pluginWords
}

type rejection struct {
	Plugin  string
	Reasons []string
	Nodes   int
	Sample  []string
}

type extenderCall struct {
	URL, Verb, Error  string
	Seconds           float64
	NodesIn, NodesOut int
}

type nodeScores struct {
	Node             string
	Total, Extenders int64
	Plugins          []pluginScore
}

type pluginScore struct {
	Name                              string
	Raw, Normalized, Weight, Weighted int64
}

type preemption struct {
	Candidates, VictimCount int
	Node, WhyNot            string
	Sample, Victims         []string
}

type pluginWords struct{ Plugin, Text string }

type whatIf struct {
	answer
	Namespace, Name, Profile, Result, Summary string
	Lacks                                     []string
	Seconds                                   float64
	decision
	Verdicts []verdict
	Gang     *gang
}

type gang struct {
	Domains []gangDomain
	Pods    []gangPod
	Unfit   string
	Victims []gangVictims
}

type gangDomain struct {
	Domain string
	Found  int
}

type gangPod struct{ Name, Node string }

type gangVictims struct {
	Node string
	Pods []string
}

type verdict struct {
	Node       string
	Fits       bool
	Total      int64
	Rejections []rejection
}

type queue struct {
	answer
	Items []queuedPod
	// Lengths also count pods that are not in Items.
	Lengths queueLengths
}

type queueLengths struct{ Active, Backoff, Unschedulable, Permit int }

type queuedPod struct {
	Namespace, Name, Profile, Where, NominatedNode, Summary string
	Priority                                                int32
	Since, First                                            time.Time
	Until                                                   *time.Time
	Attempts                                                int
	WaitsFor                                                []string
}
