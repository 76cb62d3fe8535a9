// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bufio"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// ReadWorkloads reads manifests of pods and of their controllers. Pods without a namespace get the one given. Objects
// that do not create pods are left out. The error has type *Error.
func ReadWorkloads(paths []string, namespace string) ([]Workload, error) {
	var workloads []Workload
	err := eachFile(paths, func(name string, content *bufio.Reader) error {
		before := len(workloads)
		err := eachItem(name, content, func(i item) error {
			i.namespace = namespace
			d := decoded{place: i.place}
			if err := d.decode(&i); err != nil {
				return err
			}
			if d.kind.Kind == "DaemonSet" {
				return d.fail("pass a Pod with its template", "%v has a pod on each node, which is not placed", d.key)
			}
			if workload := d.workload(); workload != nil {
				if len(workload.Pod.Spec.Containers) == 0 {
					return d.fail("add a container", "%v has no containers", d.key)
				}
				workloads = append(workloads, *workload)
				return d.check(workload.Pod, workload.Pod.Name)
			}
			return nil
		})
		if err == nil && len(workloads) == before {
			err = place{file: name}.fail("pass a Pod, Deployment, ReplicaSet, StatefulSet, Job or CronJob",
				"there is no object that creates pods")
		}
		return err
	})
	return workloads, err
}

// workload returns the pods of an object, or nil.
func (d *decoded) workload() *Workload {
	if pod, ok := d.object.(*v1.Pod); ok {
		workload := &Workload{Pod: podOf(pod.ObjectMeta, pod.Spec), Later: d.found, Count: 1}
		if owner := metav1.GetControllerOf(pod); owner != nil {
			workload.Owner = owner.Kind + "/" + owner.Name
		}
		return workload
	}
	template, count := templateOf(d.object)
	if template == nil {
		return nil
	}
	meta := template.ObjectMeta
	meta.Namespace, meta.Name = d.namespace, d.name
	workload := &Workload{Pod: podOf(meta, template.Spec), Later: d.found, Owner: d.kind.Kind + "/" + d.name, Count: 1}
	if count != nil {
		workload.Count = int(*count)
	}
	if set, ok := d.object.(*appsv1.StatefulSet); ok {
		workload.Claims = set.Spec.VolumeClaimTemplates
	}
	return workload
}

// NameOf returns the name of a workload's pod.
func (w *Workload) NameOf(i int) string {
	if w.Count > 1 || len(w.Claims) > 0 {
		return fmt.Sprintf("%s-%d", w.Named(), i)
	}
	return w.Named()
}

// Named returns the name of a workload.
func (w *Workload) Named() string {
	if w.Name != "" {
		return w.Name
	}
	return w.Pod.Name
}

// DaemonPod returns the pod of a DaemonSet on a node, or nil if the node is not for it.
func DaemonPod(set *appsv1.DaemonSet, node *v1.Node) *v1.Pod {
	meta := *set.Spec.Template.ObjectMeta.DeepCopy()
	meta.Namespace, meta.Name = set.Namespace, set.Name+"-"+node.Name
	pod := podOf(meta, *set.Spec.Template.Spec.DeepCopy())
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
		return nil
	}
	_, untolerated := corev1.FindMatchingUntoleratedTaint(node.Spec.Taints, pod.Spec.Tolerations, func(taint *v1.Taint) bool {
		return taint.Effect != v1.TaintEffectPreferNoSchedule && taint.Key != v1.TaintNodeUnschedulable
	})
	if untolerated {
		return nil
	}
	pod.UID, pod.Spec.NodeName = types.UID(set.Namespace+"/"+meta.Name), node.Name
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	return pod
}

// templateOf returns the template of a controller, and how many of its pods run at the same time.
func templateOf(object runtime.Object) (*v1.PodTemplateSpec, *int32) {
	job := func(spec *batchv1.JobSpec) (*v1.PodTemplateSpec, *int32) {
		if spec.Completions != nil && spec.Parallelism != nil && *spec.Completions < *spec.Parallelism {
			return &spec.Template, spec.Completions
		}
		return &spec.Template, spec.Parallelism
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template, o.Spec.Replicas
	case *appsv1.ReplicaSet:
		return &o.Spec.Template, o.Spec.Replicas
	case *appsv1.StatefulSet:
		return &o.Spec.Template, o.Spec.Replicas
	case *v1.ReplicationController:
		return o.Spec.Template, o.Spec.Replicas
	case *appsv1.DaemonSet:
		return &o.Spec.Template, nil
	case *batchv1.Job:
		return job(&o.Spec)
	case *batchv1.CronJob:
		return job(&o.Spec.JobTemplate.Spec)
	}
	return nil, nil
}

// podOf returns a pod that waits for a scheduler, with the API server's defaults.
func podOf(meta metav1.ObjectMeta, spec v1.PodSpec) *v1.Pod {
	pod := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Name: meta.Name, Namespace: meta.Namespace, Labels: meta.Labels, Annotations: meta.Annotations}}
	if pod.Namespace == "" {
		pod.Namespace = v1.NamespaceDefault
	}
	stripSpec(&pod.Spec)
	pod.Spec.NodeName = ""
	defaults.Default(pod)
	return pod
}
