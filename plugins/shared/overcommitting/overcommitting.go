// SPDX-License-Identifier: Apache-2.0

// Package overcommitting knows the pods that ask for CPU which other pods have requested and do not use.
package overcommitting

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// most is the most that a container may ask for, in thousandths of a core: sums do not overflow.
const most = 1e9

// Asked returns what the pod's containers ask for together, in thousandths of a core; 0 for an ordinary pod.
func Asked(pod *v1.Pod) int64 {
	var sum int64
	for i := range pod.Spec.Containers {
		if amount, found := pod.Spec.Containers[i].Resources.Requests[config.OvercommitResource]; found {
			if value := amount.Value(); value <= most {
				sum += value
			} else {
				sum += most
			}
		}
	}
	return sum
}

// Yields reports whether a pod leaves CPU to ordinary pods whenever they need it. A pod with a mistake may not, if it was
// bound without the plugin.
func Yields(pod *v1.Pod) bool { return Asked(pod) > 0 && Mistake(pod) == "" }

// Mistake returns why a pod that asks for the resource cannot overcommit; empty if it can, and for an ordinary pod. A
// kubelet starts such a pod although no node publishes the resource, because it drops what its node does not publish
// from the requests of containers, but not from those of init containers.
func Mistake(pod *v1.Pod) string {
	const asks = "the pod asks for " + string(config.OvercommitResource)
	for i := range pod.Spec.InitContainers {
		if _, found := pod.Spec.InitContainers[i].Resources.Requests[config.OvercommitResource]; found {
			return asks + " in an init container, which no kubelet starts"
		}
	}
	if Asked(pod) == 0 {
		return ""
	}
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Resources.Requests.Cpu().Sign() != 0 {
				return asks + ` and requests CPU: write cpu: "0" in the requests of each container`
			}
		}
	}
	for i := range pod.Spec.Containers {
		resources := &pod.Spec.Containers[i].Resources
		switch asked := resources.Requests[config.OvercommitResource]; {
		case asked.Sign() == 0:
		case asked.Value() > most:
			return asks + " in a container that asks for more than a million cores"
		case resources.Limits.Cpu().IsZero():
			return asks + " in a container without a CPU limit"
		case resources.Limits.Cpu().MilliValue() < asked.Value():
			return asks + " in a container whose CPU limit is lower"
		case resources.Requests.Memory().IsZero():
			return asks + " in a container without a memory request"
		}
	}
	return ""
}
