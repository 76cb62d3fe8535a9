// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
)

// This file has the sentences of the answers' summaries.

// summary returns the result of the last attempt, updated with the current state of the pod in the cluster.
func (r *Recorder) summary(p pod) PodSummary {
	last := p.last()
	summary := PodSummary{
		Namespace: p.namespace, Name: p.name, UID: string(p.uid), Time: last.began, Attempt: last.number,
		Result: last.result(), Summary: last.summary(),
	}
	if summary.Result == Bound || summary.Result == Binding {
		summary.Node = last.node
	}
	if r.Sources.Pods == nil {
		return summary // of a Draft
	}
	seen, err := r.Sources.Pods.Pods(p.namespace).Get(p.name)
	switch {
	case err != nil || seen.UID != p.uid:
		if summary.Result == Bound {
			summary.Summary = fmt.Sprintf("It was bound to node %s, and has ended or no longer exists.", last.node)
		} else {
			summary.Summary = "It no longer exists. Its last attempt: " + summary.Summary
		}
		summary.Result, summary.Node = Gone, ""
		if err == nil {
			summary.Summary += " " + r.newer(seen)
		}
	case summary.Result == Bound:
	case seen.Spec.NodeName != "":
		summary.Result, summary.Node = Bound, seen.Spec.NodeName
		if summary.Summary = bound(seen.Spec.NodeName); last.node != seen.Spec.NodeName {
			summary.Summary += " The recorded attempts did not bind it."
		}
	case seen.Status.NominatedNodeName != "":
		summary.NominatedNode = seen.Status.NominatedNodeName
		summary.Summary += fmt.Sprintf(" Pods of lower priority are evicted from node %s for it.", summary.NominatedNode)
	}
	if summary.Result != Gone && seen.Labels[gangs.NewerLabel] != "" && seen.Labels[gangs.Label] == "" {
		summary.Summary += fmt.Sprintf(" Its label %s has no effect: it is scheduled without its gang, whose label here is %s.",
			gangs.NewerLabel, gangs.Label)
	}
	return summary
}

// newer returns a sentence about a pod with the name of a recorded one.
func (r *Recorder) newer(seen *v1.Pod) string {
	r.mutex.Lock()
	_, tried := r.pods[seen.UID]
	r.mutex.Unlock()
	switch {
	case seen.Spec.NodeName != "":
		return fmt.Sprintf("A newer pod of this name is bound to node %s.", seen.Spec.NodeName)
	case tried:
		return "A newer pod of this name waits."
	}
	return "A newer pod of this name waits and has not been tried."
}

func bound(node string) string { return fmt.Sprintf("It is bound to node %s.", node) }

func (a *Attempt) result() Result {
	switch {
	case a.bound:
		return Bound
	case a.unschedulable:
		return Unschedulable
	case a.failed:
		return Failed
	}
	return Binding
}

// summary returns the result of the attempt in a sentence.
func (a *Attempt) summary() string {
	switch a.result() {
	case Bound:
		return bound(a.node)
	case Binding:
		return fmt.Sprintf("Node %s is chosen, and the pod waits for Permit plugins, or is being bound.", a.node)
	case Failed:
		text := strings.TrimSuffix(a.message, ".") + "."
		if a.node != "" {
			text = fmt.Sprintf("Node %s was chosen, and then: %s", a.node, text)
		}
		return text
	}
	if a.node != "" {
		return fmt.Sprintf("Node %s fits the pod, but its gang does not fit as a whole.", a.node)
	}
	return noneFits(a.nodes, a.evaluated, a.rejectionRecords())
}

// reasonsOfSummary limits the reasons in a summary, which is in a list of pods, too.
const reasonsOfSummary = 5

// noneFits returns a sentence with the reasons why no node fits.
func noneFits(nodes, evaluated int, rejections []RejectionRecord) string {
	if nodes == 0 && len(rejections) == 0 {
		return "The cluster has no nodes."
	}
	reasons := make([]string, 0, len(rejections))
	for i, r := range rejections {
		if i == reasonsOfSummary {
			reasons = append(reasons, fmt.Sprintf("… (%d more)", len(rejections)-i))
			break
		}
		reason := strings.Join(r.Reasons, ", ")
		if evaluated > 0 {
			reason = fmt.Sprintf("%d: %s", r.Nodes, reason)
		}
		reasons = append(reasons, reason)
	}
	why := strings.TrimSuffix(strings.Join(reasons, "; "), ".")
	switch {
	case evaluated == 0:
		return fmt.Sprintf("It is rejected before any node is evaluated: %s.", why)
	case evaluated < nodes:
		return fmt.Sprintf("None of the %d evaluated nodes fits; %s.", evaluated, why)
	}
	return fmt.Sprintf("None of %s fits; %s.", counted(nodes, "node"), why)
}

// Summarize sets the summary of a dry run.
func (w *WhatIf) Summarize() {
	switch {
	case w.Result == Failed:
		return
	case w.Result != Fits:
		w.Summary = noneFits(w.Nodes, w.Evaluated, w.Rejections)
		if p := w.Preemption; p != nil && p.Node != "" {
			w.Summary += fmt.Sprintf(" Preemption would evict %s from node %s.", counted(p.VictimCount, "pod"), p.Node)
		}
		return
	case w.Ties > 1:
		w.Summary = fmt.Sprintf("It would go to one of %d nodes with the same score, such as %s.", w.Ties, w.Node)
	default:
		w.Summary = fmt.Sprintf("It would go to node %s.", w.Node)
	}
	w.Summary += fmt.Sprintf(" %d of %s would take it.", w.Feasible, counted(w.Nodes, "node"))
}

// counted returns a number and a noun, which is in the plural unless the number is 1.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
