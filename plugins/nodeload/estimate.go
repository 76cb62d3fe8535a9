// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/overcommitting"
)

// estimator estimates how much of a resource a pod will use, in the unit of its capacity: cores, bytes, bytes per
// second, devices.
type estimator struct {
	config.NodeLoadEstimator
	// factor multiplies the request or limit. otherwise is the use of a container without requests and limits.
	factor, otherwise float64
	// extended reports whether only pods that request the resource use it.
	extended bool
}

func newEstimator(args config.NodeLoadEstimator) estimator {
	return estimator{args, float64(*args.Factor) / 100, args.Default.AsApproximateFloat64(), strings.Contains(string(args.Resource), "/")}
}

// concerns reports whether the pod uses the resource.
func (e *estimator) concerns(pod *v1.Pod) bool {
	return !e.extended || asksFor(pod.Spec.Containers, e.Resource) || asksFor(pod.Spec.InitContainers, e.Resource)
}

func asksFor(containers []v1.Container, name v1.ResourceName) bool {
	for i := range containers {
		resources := &containers[i].Resources
		for _, list := range [...]v1.ResourceList{resources.Requests, resources.Limits} {
			if quantity, found := list[name]; found && !quantity.IsZero() {
				return true
			}
		}
	}
	return false
}

// yields reports whether a pod leaves the resource to ordinary pods whenever they need it: then its use is no load.
func (e *estimator) yields(pod *v1.Pod) bool {
	return e.Resource == v1.ResourceCPU && overcommitting.Yields(pod)
}

// use is the use of a resource: measured, or else estimated. plain is the estimate with the scale 1; 0 if the pod's
// annotation has the estimate. known is the share of the amount, from 0 to 1, that is taken off when the pod has ended.
type use struct{ amount, plain, known float64 }

// use returns the estimated use of a pod.
func (e *estimator) use(pod *v1.Pod, scale float64) use {
	of := use{amount: e.estimate(pod, scale)}
	if _, found := e.annotated(pod); found {
		return of
	}
	if of.plain = of.amount; scale != 1 {
		of.plain = e.estimate(pod, 1)
	}
	return of
}

// annotated returns the estimate in the pod's annotation; false if there is no valid one.
func (e *estimator) annotated(pod *v1.Pod) (float64, bool) {
	if e.Annotation == "" {
		return 0, false
	}
	text, found := pod.Annotations[e.Annotation]
	amount, ok := collector.ParseQuantity(text)
	return amount, found && ok
}

// estimate returns the estimated use of a pod: the value of its annotation if valid, or else the sum over its
// containers and the overhead of its runtime class. Init containers do not count: they end before the pod reaches full
// use. The scale multiplies requests and limits, like the factor.
func (e *estimator) estimate(pod *v1.Pod, scale float64) float64 {
	if !e.concerns(pod) || e.yields(pod) {
		return 0
	}
	if amount, found := e.annotated(pod); found {
		return amount
	}
	sum, _ := e.amount(pod.Spec.Overhead)
	if e.Resource == v1.ResourceCPU {
		sum /= 1000
	}
	for i := range pod.Spec.Containers {
		sum += e.container(&pod.Spec.Containers[i].Resources, scale)
	}
	return sum
}

// container returns round(request x factor x scale), at most the limit; by limits round(limit x factor x scale). As
// everywhere in Kubernetes, a missing request equals the limit. CPU is rounded to thousandths of a core, everything
// else to whole units.
func (e *estimator) container(resources *v1.ResourceRequirements, scale float64) float64 {
	if e.Resource == "" {
		return e.otherwise * scale
	}
	amount, requests := e.amount(resources.Requests)
	limit, _ := e.amount(resources.Limits)
	if !requests || e.By == config.NodeLoadEstimateLimits && limit > amount {
		amount = limit
	}
	unit := 1.0
	if e.Resource == v1.ResourceCPU {
		unit = 1000
	}
	estimate := math.Floor(amount*e.factor*scale + 0.5)
	if amount <= 0 {
		estimate = e.otherwise * scale * unit
	}
	if limit > 0 && estimate > limit {
		estimate = limit
	}
	return estimate / unit
}

// amount returns the amount of the resource in a list, for CPU in thousandths of a core, and whether the list has it.
func (e *estimator) amount(list v1.ResourceList) (amount float64, found bool) {
	quantity, found := list[e.Resource]
	if !found {
		return 0, false
	}
	if e.Resource == v1.ResourceCPU {
		return float64(quantity.MilliValue()), true
	}
	return float64(quantity.Value()), true
}

// requested returns the amount that the pods of a node request, and the allocatable amount; false if the node has none.
// For a container without a CPU or memory request, it uses the same defaults as the default plugins.
func (e *estimator) requested(nodeInfo *framework.NodeInfo) (requested, allocatable float64, known bool) {
	switch e.Resource {
	case "":
		return 0, 0, false
	case v1.ResourceCPU:
		requested, allocatable = float64(nodeInfo.NonZeroRequested.MilliCPU)/1000, float64(nodeInfo.Allocatable.MilliCPU)/1000
	case v1.ResourceMemory:
		requested, allocatable = float64(nodeInfo.NonZeroRequested.Memory), float64(nodeInfo.Allocatable.Memory)
	case v1.ResourceEphemeralStorage:
		requested, allocatable = float64(nodeInfo.Requested.EphemeralStorage), float64(nodeInfo.Allocatable.EphemeralStorage)
	default:
		requested = float64(nodeInfo.Requested.ScalarResources[e.Resource])
		allocatable = float64(nodeInfo.Allocatable.ScalarResources[e.Resource])
	}
	return requested, allocatable, allocatable > 0
}
