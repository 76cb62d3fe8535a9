// SPDX-License-Identifier: Apache-2.0

package simulation

import "strings"

// actor is a part of Kubernetes other than the scheduler that changes a cluster, with what the simulator does in its place.
type actor struct {
	Name string
	// Modelled is simulated. Warned is not, and each answer ends with it. Refused is an error, or a reason of an answer.
	Modelled, Warned, Refused string
}

// actors are all of them. docs/simulate.md has the same table.
var actors = []actor{
	{"eviction API", "a budget without disruptions left, a pod that does not run or is not ready, and an empty selector, as in 1.23; unhealthyPodEvictionPolicy",
		"its rate limits", "a pod that several budgets select: 1.23 never evicts it"},
	{"disruption controller", "a budget allows one disruption less until the pod that replaces the disrupted one runs",
		"changes of desiredHealthy", ""},
	{"ReplicaSet controller and Job controller", "another pod at once, under another name; other kinds of owners are taken for these", "limits of retries", ""},
	{"StatefulSet controller", "the same name once the old pod is gone, and claims from templates", "one pod after the other", ""},
	{"DaemonSet controller", "its pods stay in a drain, and come with a new node", "updates", ""},
	{"ephemeral-volume controller", "a claim for each pod, which is made again with the pod", "", ""},
	{"volume controllers and CSI drivers", "the default class, and a volume where the pod's node reaches it, or for immediate binding where the class allows",
		"capacity that volumes take, attaching, limits of volumes on new nodes", ""},
	{"garbage collector", "pods of nodes that are gone, claims of ephemeral volumes, and volumes that are to be deleted", "replacements of pods of gone nodes, other owners", ""},
	{"node lifecycle controller", "the taints of unreachable nodes, and evictions after what pods tolerate", "its rate limits", ""},
	{"kubelet", "grace periods, running at once or after start_delay, and the end after duration", "its refusals, image pulls, probes, evictions for pressure", ""},
	{"admission", "priorities, and defaults of the API server", "other admission, and quotas without a plugin", ""},
	{"autoscalers and people", "what a trace says", "autoscalers of nodes and of pods, descheduler, changes of Deployments", ""},
	{"extenders", "with --extender, their answers to filter, prioritize and preempt", "", "a configuration with extenders, without --extender"},
}

// notModelled returns what is not simulated, in one line.
func notModelled() string {
	var warned []string
	for _, of := range actors {
		if of.Warned != "" {
			warned = append(warned, of.Name+": "+of.Warned)
		}
	}
	return strings.Join(warned, "; ") + "; the duration of decisions."
}
