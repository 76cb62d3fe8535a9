// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bufio"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
				return d.check(workload.Pod)
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
		workload := &Workload{Pod: podOf(pod.ObjectMeta, pod.Spec), Count: 1}
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
	workload := &Workload{Pod: podOf(meta, template.Spec), Owner: d.kind.Kind + "/" + d.name, Count: 1}
	if count != nil {
		workload.Count = int(*count)
	}
	return workload
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
