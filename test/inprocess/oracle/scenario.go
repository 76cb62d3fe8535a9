// SPDX-License-Identifier: Apache-2.0

// Package oracle tells whether two schedulers place pods alike. A scenario is a cluster and what happens to it, made
// from a number alone; running it gives a trace of all that the scheduler decided. Compiled with stock Kubernetes and
// with the patched tree, the same scenarios must give the same traces. It imports nothing but upstream's packages.
//
// A pod is tried again by Retry alone, never because of an event: what handles an event of a pod changes the
// scheduler's cache first and its queue afterwards, and nothing tells from outside that it has done the second, so
// which pods come back before the next is tried would depend on time.
package oracle

import (
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Scenario is a cluster, a scheduler's configuration, and what happens.
type Scenario struct {
	// Seed is that of the scheduler's random source.
	Seed int64 `json:"seed"`
	// Config is a KubeSchedulerConfiguration. In it, extenderAddress stands for where the extenders answer.
	Config string `json:"config"`
	// Features are feature gates that are not as they are by default.
	Features   map[string]bool                 `json:"features,omitempty"`
	Nodes      []*v1.Node                      `json:"nodes"`
	Namespaces []*v1.Namespace                 `json:"namespaces"`
	Services   []*v1.Service                   `json:"services"`
	Budgets    []*policyv1.PodDisruptionBudget `json:"budgets"`
	Classes    []*storagev1.StorageClass       `json:"classes,omitempty"`
	Claims     []*v1.PersistentVolumeClaim     `json:"claims,omitempty"`
	Volumes    []*v1.PersistentVolume          `json:"volumes,omitempty"`
	CSINodes   []*storagev1.CSINode            `json:"csiNodes,omitempty"`
	Steps      []Step                          `json:"steps"`
}

// Step is one thing that happens; only one field of it is set.
type Step struct {
	// Place creates a pod that has a node.
	Place *v1.Pod `json:"place,omitempty"`
	// Schedule creates pods in this order, and has the scheduler try each of them once.
	Schedule []*v1.Pod `json:"schedule,omitempty"`
	// Retry has the scheduler try all pods again that have no node.
	Retry bool `json:"retry,omitempty"`
	// PutNode creates or changes a node.
	PutNode *v1.Node `json:"putNode,omitempty"`
	// DeleteNode and DeletePod name what goes; a pod with its namespace. What is not there is passed over.
	DeleteNode string `json:"deleteNode,omitempty"`
	DeletePod  string `json:"deletePod,omitempty"`
}

// objects are what is in the cluster from the first.
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
