// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	"k8s.io/utils/pointer"
)

// This file has the owners of a history's pods, and joins them with a snapshot.

// own reads the owners of a pod.
func (h *history) own(r row, w *Workload) error {
	for _, owner := range []string{w.Owner, w.Class} {
		if parts := strings.Split(owner, "/"); owner != "" && (len(parts) != 2 || parts[0] == "" || parts[1] == "" || len(owner) > 320) {
			return r.fail(seeFormat, "an owner is not KIND/NAME")
		}
	}
	if w.Class == "" {
		w.Class = w.Owner
	}
	owner, class := w.Pod.Namespace+"/"+w.Owner, w.Pod.Namespace+"/"+w.Class
	if owner != class {
		if h.workloads[owner] = class; h.workloads[class] == owner {
			return r.fail(seeFormat, "%s is an owner of itself", w.Owner)
		}
	}
	if object := selecting(w); object != nil && !h.owners[owner] {
		h.owners[owner] = true
		h.Owners = append(h.Owners, object)
	}
	return nil
}

// apiVersions are those of the owners that default spreading asks for.
var apiVersions = map[string]string{"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1"}

// OwnerReferences returns the reference to an owner KIND/NAME, or nil.
func OwnerReferences(owner string) []metav1.OwnerReference {
	parts := strings.SplitN(owner, "/", 2)
	if len(parts) != 2 {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: apiVersions[parts[0]], Kind: parts[0], Name: parts[1], Controller: pointer.Bool(true)}}
}

// selecting returns an owner with a selector for its pods: their labels without those that differ between them. Nil if
// default spreading does not ask for it.
func selecting(w *Workload) runtime.Object {
	labels := map[string]string{}
	for key, value := range w.Pod.Labels {
		if key != appsv1.StatefulSetPodNameLabel && key != appsv1.ControllerRevisionHashLabelKey {
			labels[key] = value
		}
	}
	references := OwnerReferences(w.Owner)
	if len(references) == 0 || len(labels) == 0 {
		return nil
	}
	of := references[0]
	kind, meta := metav1.TypeMeta{APIVersion: of.APIVersion, Kind: of.Kind}, metav1.ObjectMeta{Namespace: w.Pod.Namespace, Name: of.Name}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	switch of.Kind {
	case "ReplicaSet":
		return &appsv1.ReplicaSet{TypeMeta: kind, ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector}}
	case "StatefulSet":
		return &appsv1.StatefulSet{TypeMeta: kind, ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}}
	case "ReplicationController":
		return &v1.ReplicationController{TypeMeta: kind, ObjectMeta: meta, Spec: v1.ReplicationControllerSpec{Selector: labels}}
	}
	return nil
}

// Onto returns the cluster with which a history begins: its nodes and pods, and all other objects of a snapshot, which may
// be nil.
func (t *Trace) Onto(snapshot *Cluster) *Cluster {
	c := &Cluster{Ignored: map[string]int{}, Later: map[types.UID]*laterfields.Found{}}
	if snapshot != nil {
		c.Objects, c.Custom, c.EvictUnhealthy, c.Ignored = snapshot.Objects, snapshot.Custom, snapshot.EvictUnhealthy, snapshot.Ignored
		c.Warnings = snapshot.Warnings
	}
	has := map[string]bool{}
	name := func(of runtime.Object) string {
		meta := of.(metav1.Object)
		return fmt.Sprintf("%T %s/%s", of, meta.GetNamespace(), meta.GetName())
	}
	for _, object := range c.Objects {
		has[name(object)] = true
	}
	for _, object := range t.Owners {
		if !has[name(object)] {
			c.Objects = append(c.Objects, object)
		}
	}
	c.Nodes, c.Pods, c.Running, c.Taken = t.Nodes, t.Pods, t.Running, t.Start
	for uid, of := range t.Running {
		if of.Later != nil {
			c.Later[uid] = of.Later
		}
	}
	return c
}
