// SPDX-License-Identifier: Apache-2.0

// Package oracle checks whether two schedulers place pods identically. A scenario is a cluster and a series of
// events, generated from a number alone; running it returns a trace of all the scheduler's decisions. Compiled with
// stock Kubernetes and with the patched tree, the same scenarios must return the same traces. The package only
// imports upstream's packages and Overcommit.
//
// Only Retry retries pods, never an event: the handler of a pod's event changes the scheduler's cache first and its
// queue afterwards, and the second step cannot be observed from outside, so the pods in the queue would depend on
// timing.
package oracle

import (
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Scenario is a cluster, a scheduler's configuration, and a series of events.
type Scenario struct {
	// Seed is the seed of the scheduler's random source.
	Seed int64 `json:"seed"`
	// Config is a KubeSchedulerConfiguration, with extenderAddress instead of the extenders' real address.
	Config string `json:"config"`
	// Features are the feature gates with other values than the defaults.
	Features   map[string]bool                 `json:"features,omitempty"`
	Nodes      []*v1.Node                      `json:"nodes"`
	Namespaces []*v1.Namespace                 `json:"namespaces"`
	Services   []*v1.Service                   `json:"services"`
	Budgets    []*policyv1.PodDisruptionBudget `json:"budgets"`
	Classes    []*storagev1.StorageClass       `json:"classes,omitempty"`
	Claims     []*v1.PersistentVolumeClaim     `json:"claims,omitempty"`
	Volumes    []*v1.PersistentVolume          `json:"volumes,omitempty"`
	CSINodes   []*storagev1.CSINode            `json:"csiNodes,omitempty"`
	// Graceful makes preempted pods terminate until they vanish.
	Graceful bool   `json:"graceful,omitempty"`
	Steps    []Step `json:"steps"`
	// Overcommits makes some pods overcommit: see overcommit.go. Outcomes are those of their cycles, in this order, in the
	// scheduler that has the plugin; without them this scheduler has it.
	Overcommits bool     `json:"overcommits,omitempty"`
	Outcomes    []string `json:"outcomes,omitempty"`
}

// Step is one event; only one field is set.
type Step struct {
	// Place creates a pod on a node.
	Place *v1.Pod `json:"place,omitempty"`
	// Schedule creates pods in this order, and schedules each of them once. They replace pods with the same names.
	Schedule []*v1.Pod `json:"schedule,omitempty"`
	// Retry schedules all pods without a node again.
	Retry bool `json:"retry,omitempty"`
	// PutPod changes the labels of a pod, and its UID if it has one; with a deletion timestamp it terminates.
	PutPod *v1.Pod `json:"putPod,omitempty"`
	// Vanish deletes the pods that terminate.
	Vanish bool `json:"vanish,omitempty"`
	// PutNode creates or changes a node; one with another UID is deleted first.
	PutNode *v1.Node `json:"putNode,omitempty"`
	// DeleteNode and DeletePod name the deleted object; a pod with its namespace. Missing objects are ignored.
	DeleteNode string `json:"deleteNode,omitempty"`
	DeletePod  string `json:"deletePod,omitempty"`
	// PutNamespace, PutVolume and PutClaim create or change an object.
	PutNamespace *v1.Namespace             `json:"putNamespace,omitempty"`
	PutVolume    *v1.PersistentVolume      `json:"putVolume,omitempty"`
	PutClaim     *v1.PersistentVolumeClaim `json:"putClaim,omitempty"`
}

// objects are the objects that exist from the start.
func (s *Scenario) objects() []runtime.Object {
	var objects []runtime.Object
	objects = add(objects, s.Namespaces)
	objects = add(objects, s.Services)
	objects = add(objects, s.Budgets)
	objects = add(objects, s.Classes)
	objects = add(objects, s.Claims)
	objects = add(objects, s.Volumes)
	return add(objects, s.CSINodes)
}

func add[T runtime.Object](objects []runtime.Object, more []T) []runtime.Object {
	for _, object := range more {
		objects = append(objects, object)
	}
	return objects
}
