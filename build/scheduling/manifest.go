// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"kube-scheduler-fork/build/nextstep"
)

const (
	// groupLabel is the label of the pods of a gang.
	groupLabel = "pod-group.scheduling.sigs.k8s.io"
	// copiesAnnotation is the annotation of a pod in the manifest of a gang that stands for several.
	copiesAnnotation = "scheduling-records/copies"
)

// manifest returns the body of a request for the objects of a file: a Pod, or a List with the Pods of a gang and before
// them its PodGroup. Of an object with a template, the pods are asked for. Other objects, such as Services, are left out.
func (o *options) manifest(ctx context.Context, file string) ([]byte, error) {
	namespace, explicit, err := o.namespace()
	if err != nil {
		return nil, err
	}
	infos, err := resource.NewBuilder(o.flags).Unstructured().Local().
		FilenameParam(false, &resource.FilenameOptions{Filenames: []string{file}}).Flatten().Do().Infos()
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the manifest of a pod: %w", err), "kubectl create --dry-run=client --filename %s", argument(file))
	}
	var groups, pods []*unstructured.Unstructured
	gang := false
	for _, info := range infos {
		object := info.Object.(*unstructured.Unstructured)
		pod, copies := templatePod(object)
		isGroup := object.GetKind() == "PodGroup"
		if pod == nil && !isGroup {
			continue
		}
		if own := object.GetNamespace(); explicit && own != "" && own != namespace {
			return nil, nextstep.With(fmt.Errorf("%s has the namespace %s, but --namespace is %s", file, own, namespace), "leave --namespace out")
		}
		if isGroup {
			object.SetNamespace(cmp.Or(object.GetNamespace(), namespace))
			groups, gang = append(groups, object), true
			continue
		}
		pod.SetNamespace(cmp.Or(object.GetNamespace(), namespace))
		if err := o.admit(ctx, pod); err != nil {
			return nil, nextstep.With(fmt.Errorf("the API server does not accept the pod: %w", err),
				"correct it; kubectl --namespace %s create --dry-run=server --filename %s checks it", argument(pod.GetNamespace()), argument(file))
		}
		if copies != 1 && pod.GetLabels()[groupLabel] != "" {
			annotations := pod.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[copiesAnnotation] = strconv.FormatInt(copies, 10)
			pod.SetAnnotations(annotations)
			gang = true
		}
		pods = append(pods, pod)
	}
	switch {
	case len(pods) == 0 || len(groups) > 1 || !gang && len(pods) > 1 && pods[0].GetLabels()[groupLabel] == "":
		return nil, nextstep.With(fmt.Errorf("%s has %s and %s; expected one Pod, or those of one gang", file, counted(len(groups), "PodGroup"),
			counted(len(pods), "object")+" with pods"), "put each pod or gang into its own file; the pods of a gang have the label %s", groupLabel)
	case len(pods) == 1 && !gang:
		return pods[0].MarshalJSON()
	}
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": append(groups, pods...)})
}

// templatePod returns a pod of an object that is one or has a template, and how many there are at the same time; nil for
// another object.
func templatePod(object *unstructured.Unstructured) (pod *unstructured.Unstructured, copies int64) {
	if object.GetKind() == "Pod" {
		return object, 1
	}
	template, found, _ := unstructured.NestedMap(object.Object, "spec", "template")
	if !found {
		return nil, 0
	}
	pod = &unstructured.Unstructured{Object: template}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetName(object.GetName())
	copies = 1
	if object.GetKind() == "Job" {
		copies, _, _ = unstructured.NestedInt64(object.Object, "spec", "parallelism")
		copies = cmp.Or(copies, 1)
		if completions, found, _ := unstructured.NestedInt64(object.Object, "spec", "completions"); found {
			copies = min(copies, completions)
		}
	} else if replicas, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); found {
		copies = replicas
	}
	return pod, copies
}

// admit makes a pod what the API server would make of it, by a dry run of its creation: that checks its namespace, its
// service account and quotas, and sets its priority. A pod of a user who may not create pods stays as it is.
func (o *options) admit(ctx context.Context, pod *unstructured.Unstructured) error {
	client, err := o.pods(pod.GetNamespace())
	if err != nil {
		return err
	}
	// A pod with that name may exist.
	like := pod.DeepCopy()
	like.SetName("")
	like.SetGenerateName(cmp.Or(pod.GetName(), pod.GetGenerateName()) + "-")
	admitted, err := client.Create(ctx, like, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"):
		return nil
	case err != nil:
		return err
	}
	admitted.SetName(pod.GetName())
	admitted.SetGenerateName(pod.GetGenerateName())
	admitted.SetManagedFields(nil)
	*pod = *admitted
	return nil
}
