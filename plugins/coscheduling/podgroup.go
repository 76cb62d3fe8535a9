// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
)

// These annotations of a PodGroup override the arguments requiredTopologyKey and preferredTopologyKey. An empty value
// is no key.
const (
	requiredAnnotation  = "coscheduling.scheduler/required-topology-key"
	preferredAnnotation = "coscheduling.scheduler/preferred-topology-key"
)

var resource = schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// podGroup is what the plugin needs of a PodGroup. It is immutable, except for the status.
type podGroup struct {
	created      time.Time
	minMember    int
	minResources v1.ResourceList
	// required and preferred are the values of annotations, or nil.
	required, preferred *string
	// reason is why no pod of it can be scheduled; empty for a valid one.
	reason string
	// phase and started are of its status.
	phase   string
	started bool
}

// fields are those of a PodGroup. scheduleTimeoutSeconds is not used, because no pod waits on a node.
type fields struct {
	Spec struct {
		MinMember    int32           `json:"minMember"`
		MinResources v1.ResourceList `json:"minResources"`
	} `json:"spec"`
	Status struct {
		Phase             string      `json:"phase"`
		ScheduleStartTime metav1.Time `json:"scheduleStartTime"`
	} `json:"status"`
}

func decode(object *unstructured.Unstructured) *podGroup {
	var of fields
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &of)
	group := &podGroup{
		created: object.GetCreationTimestamp().Time, minMember: int(of.Spec.MinMember), minResources: of.Spec.MinResources,
		phase: of.Status.Phase, started: !of.Status.ScheduleStartTime.IsZero(),
	}
	if err != nil || group.minMember < 1 {
		group.reason = badMinMember
	}
	annotations := object.GetAnnotations()
	for annotation, to := range map[string]**string{requiredAnnotation: &group.required, preferredAnnotation: &group.preferred} {
		if key, found := annotations[annotation]; found {
			*to = &key
			if key != "" && len(validation.IsQualifiedName(key)) > 0 {
				group.reason = badTopologyKey
			}
		}
	}
	return group
}

// same reports whether nothing that concerns the plugin has changed but the status.
func same(before, after *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"]) &&
		equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations())
}

// or returns the value of an annotation, or that of the argument.
func or(annotation *string, argument string) string {
	if annotation != nil {
		return *annotation
	}
	return argument
}

// groupOf returns the namespace and name of a pod's PodGroup, and whether it has one.
func groupOf(pod *v1.Pod) (types.NamespacedName, bool) {
	name := pod.Labels[gangs.Label]
	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, name != ""
}

// Reasons of rejections. They are constant, so that a condition of a pod does not change while it waits.
const (
	noPodGroup     = "the pod's PodGroup does not exist"
	badMinMember   = "the pod's PodGroup has no valid spec: minMember must be at least 1"
	badTopologyKey = "the pod's PodGroup has an annotation with a topology key that is not a label key"
	ofOthers       = "pod(s) of the gang are too few: those with another schedulerName only count when they are bound"
	unpatched      = "Coscheduling only works in a scheduler that decides gangs as one, which this one does not"
)

// maxMembers bounds the pods of a gang, and so the time to find them.
const maxMembers = 10000

var tooMany = fmt.Sprintf("pod(s) of the gang are more than %d", maxMembers)
