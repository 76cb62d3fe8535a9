// SPDX-License-Identifier: Apache-2.0

// Package input reads clusters, workloads and traces from files.
package input

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

// Cluster is the state with which a simulation begins.
type Cluster struct {
	// Nodes and Pods are in the order of the files. Pods that have ended are left out. Pods share parts: copy a pod before
	// you change it.
	Nodes []*v1.Node
	Pods  []*v1.Pod
	// Objects are the other objects that scheduling depends on, with their types: volumes, claims, storage classes, CSI
	// objects, disruption budgets, priority classes, namespaces, services, and the owners of pods.
	Objects []runtime.Object
	// Custom are objects of groups that Kubernetes itself does not have, such as PodGroup.
	Custom []*unstructured.Unstructured
	// Later are the later fields of Pods, by UID, as far as the pods themselves do not have them.
	Later map[types.UID]*laterfields.Found
	// EvictUnhealthy has the namespace/name of each PodDisruptionBudget whose unhealthyPodEvictionPolicy is AlwaysAllow.
	EvictUnhealthy map[string]bool
	// PodUse and NodeUse are the measured use (metrics.k8s.io) by namespace/name, or by name.
	PodUse, NodeUse map[string]v1.ResourceList
	// Running is what a history knows of Pods, by UID; nil without a history.
	Running map[types.UID]*Workload
	// Taken is the latest time in the objects.
	Taken time.Time
	// Ignored counts the objects that are not used, by kind.
	Ignored map[string]int
	// Warnings have file and line.
	Warnings []string
}

// Trace is what happens to a cluster.
type Trace struct {
	// History is whether the trace is the history of a cluster. Only a history has the fields until Owners, and Real in
	// its workloads. Its events have no Where, because all names in them are known.
	History bool
	// Start is when the history begins, and Length is the time until its end.
	Start  time.Time
	Length time.Duration
	// Nodes are those at the start, and Pods those that have a node then. Events at time 0 create those that wait.
	Nodes []*v1.Node
	Pods  []*v1.Pod
	// Running has the owner, the class, the use and the later fields of Pods, by UID.
	Running map[types.UID]*Workload
	// Gaps is how many gaps the history has, and GapTime their total length.
	Gaps    int
	GapTime time.Duration
	// Owners are the owners of pods as far as default spreading depends on them: their names, and selectors of the pods.
	Owners []runtime.Object
	// Events are sorted by time; those of the same time keep their order.
	Events []Event
	// Warnings have file and line.
	Warnings []string
}

// Event is one line of a trace: pods are created, a pod is deleted, or a node changes.
type Event struct {
	// At is the time since the start.
	At time.Duration
	// Where is FILE:LINE.
	Where string `json:",omitempty"`
	// Pods are created if it is not nil.
	Pods *Workload `json:",omitempty"`
	// Delete is the namespace/name of a pod to delete, or empty.
	Delete string `json:",omitempty"`
	// Node is the name of a node that changes, or empty.
	Node string `json:",omitempty"`
	// Change is what happens to it.
	Change NodeChange `json:",omitempty"`
	// NodeObject is the node to add, which replaces one of its name, or nil for that of the snapshot.
	NodeObject *v1.Node `json:",omitempty"`
	// Grace is how long the deleted pod still holds its resources; nil for the pod's own grace period.
	Grace *time.Duration `json:",omitempty"`
}

// NodeChange is an event of a node.
type NodeChange string

const (
	// AddNode adds a node like the snapshot's node Event.Node if it is gone or has failed, and otherwise makes it
	// schedulable.
	AddNode NodeChange = "add"
	// CordonNode makes the node unschedulable, and DrainNode evicts its pods, too.
	CordonNode NodeChange = "cordon"
	DrainNode  NodeChange = "drain"
	// FailNode makes the node unreachable.
	FailNode NodeChange = "fail"
	// RemoveNode deletes the node and its pods.
	RemoveNode NodeChange = "remove"
)

// Workload is a number of equal pods.
type Workload struct {
	// Pod is the template, which workloads of equal pods share. Its name counts if Name is empty.
	Pod *v1.Pod `json:",omitempty"`
	// Name is the name of the only pod, or else its beginning: "-" and the number follow.
	Name string `json:",omitempty"`
	// Later are the later fields of each pod, or nil.
	Later *laterfields.Found `json:",omitempty"`
	// Owner is KIND/NAME of the pods' controller, or empty.
	Owner string `json:",omitempty"`
	// Class is KIND/NAME of what pods with similar run times have in common: the owner's owner, or else Owner.
	Class string `json:",omitempty"`
	// Real is what happened to the pod in the cluster; nil if that is unknown. Only a history has it.
	Real  *Real `json:",omitempty"`
	Count int
	// Claims are the templates of a StatefulSet's claims. With any, the name of the only pod ends with -0, too.
	Claims []v1.PersistentVolumeClaim `json:",omitempty"`
	// GangSize is how many pods of the gang in the label pod-group.scheduling.sigs.k8s.io must run together; 0: no gang.
	GangSize int `json:",omitempty"`
	// Duration is how long each pod runs; 0: for ever.
	Duration time.Duration `json:",omitempty"`
	// StartDelay is the time from the binding until it runs.
	StartDelay time.Duration `json:",omitempty"`
	// Use is what each pod uses, sorted by After; empty if it is unknown.
	Use []Use `json:",omitempty"`
}

// Real is what happened to a pod of a history.
type Real struct {
	// Node is its node, or empty if it was never bound.
	Node string
	// Waited is the time from its event until it was bound, or until it or the history ended without.
	Waited time.Duration
}

// Use is a pod's use from a time on.
type Use struct {
	// After is the time since the pod runs.
	After     time.Duration
	Resources v1.ResourceList
}
