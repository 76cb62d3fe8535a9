// SPDX-License-Identifier: Apache-2.0

package result

// Placement is a pod with its node, or with the reason why it waits.
type Placement struct {
	Pod    string `json:"pod"`
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Fit is how many pods of a workload fit in addition.
type Fit struct {
	Workload string `json:"workload"`
	Count    int    `json:"count"`
	// Reason is why the next one does not fit; empty if the limit was reached.
	Reason string `json:"reason,omitempty"`
	// On counts them by node.
	On map[string]int `json:"on,omitempty"`
}

// Blocked is a pod whose eviction a PodDisruptionBudget does not allow.
type Blocked struct {
	Pod    string `json:"pod"`
	Budget string `json:"budget"`
	// Several is whether these are several budgets: then Kubernetes 1.23 never evicts the pod.
	Several bool `json:"several,omitempty"`
}

// Drain is where the pods of nodes would go.
type Drain struct {
	Nodes []string    `json:"nodes"`
	Moved []Placement `json:"moved,omitempty"`
	// Wait are pods that would have no node.
	Wait    []Placement `json:"wait,omitempty"`
	Blocked []Blocked   `json:"blocked,omitempty"`
	// Lost are pods that no owner makes again.
	Lost []string `json:"lost,omitempty"`
	// Stay is the number of pods that a drain leaves: those of DaemonSets, and static pods.
	Stay int `json:"stay,omitempty"`
	// Kept is why the nodes were not drained; empty if they were.
	Kept string `json:"kept,omitempty"`
}

// Free reports whether nothing prevents the drain, and every pod has a new node.
func (d *Drain) Free() bool { return len(d.Wait)+len(d.Blocked)+len(d.Lost) == 0 && d.Kept == "" }

// Shrink has the nodes that can go, in order, and those that cannot.
type Shrink struct {
	Remove []Drain `json:"remove"`
	Keep   []Drain `json:"keep"`
}

// Grow is the number of nodes to add.
type Grow struct {
	// Before is the number of pods that wait without new nodes.
	Before int `json:"before"`
	Nodes  int `json:"nodes"`
	// Wait are the pods that further nodes do not help.
	Wait []Placement `json:"wait,omitempty"`
}

// Lose is the effect of losing nodes.
type Lose struct {
	Nodes int `json:"nodes"`
	// Pods ran on them; Placed of those that their owners made again have a node, and Gone have no owner.
	Pods   int      `json:"pods"`
	Placed int      `json:"placed"`
	Gone   []string `json:"gone,omitempty"`
	// Before is the number of pods that waited before, and Wait are those that wait now.
	Before int         `json:"before"`
	Wait   []Placement `json:"wait,omitempty"`
}

// Check is how many pods stand where the scheduler would place them again.
type Check struct {
	Pods int `json:"pods"`
	// Same is the number of pods placed on the same node, and Equal of those whose real node had the same score.
	Same  int `json:"same"`
	Equal int `json:"equal"`
	// Others are the remaining pods, by reason.
	Others map[string][]string `json:"others,omitempty"`
	// Kept is the number of pods that were left where they are: those of DaemonSets, and static pods.
	Kept int `json:"kept"`
}
