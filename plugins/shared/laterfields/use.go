// SPDX-License-Identifier: Apache-2.0

package laterfields

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// countSidecars moves restartable init containers to the containers, next to which they run. Each other init container
// runs next to the sidecars before it, and needs what they need too: the formula of KEP-753. A resource that it does not
// need itself is left out: all sidecars together need as much.
func countSidecars(pod *v1.Pod, fields *later) {
	before := v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}
	ordinary := pod.Spec.InitContainers[:0]
	for i, c := range pod.Spec.InitContainers {
		if i < len(fields.Spec.InitContainers) && fields.Spec.InitContainers[i].RestartPolicy == "Always" {
			pod.Spec.Containers = append(pod.Spec.Containers, c)
			add(before.Requests, c.Resources.Requests)
			add(before.Limits, c.Resources.Limits)
			continue
		}
		addToNeeded(c.Resources.Requests, before.Requests)
		addToNeeded(c.Resources.Limits, before.Limits)
		ordinary = append(ordinary, c)
	}
	pod.Spec.InitContainers = ordinary
}

// countResizes counts each container of a bound pod as the largest of what it asks for, what kubelet has allocated, and
// what runs. What it asks for does not count if kubelet said that the node can never give it.
func countResizes(containers []v1.Container, statuses []v1.ContainerStatus, uses []laterUse, infeasible bool) {
	for i := range containers {
		for j := 0; j < len(statuses) && j < len(uses); j++ {
			if statuses[j].Name == containers[i].Name {
				requests := &containers[i].Resources.Requests
				use := larger(uses[j].AllocatedResources, uses[j].Resources.Requests)
				if !infeasible || len(use) == 0 {
					use = larger(use, *requests)
				}
				*requests = use
			}
		}
	}
}

// countBound counts what a bound pod uses: what its devices take of the node's CPU and memory, and what kubelet says
// of the whole pod (both are said as overhead), and the requests at pod level, which replace the containers' sum.
func countBound(pod *v1.Pod, fields *later) {
	infeasible := false
	for _, c := range pod.Status.Conditions {
		infeasible = infeasible || c.Type == "PodResizePending" && c.Reason == "Infeasible"
	}
	countResizes(pod.Spec.Containers, pod.Status.ContainerStatuses, fields.Status.Containers, infeasible)
	countResizes(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, fields.Status.InitContainers, infeasible)
	countSidecars(pod, fields)
	extra := takenByClaims(fields.Status.Claims)
	requests := v1.ResourceList{}
	for _, c := range pod.Spec.Containers {
		add(requests, c.Resources.Requests)
	}
	for _, c := range pod.Spec.InitContainers {
		raise(requests, c.Resources.Requests)
	}
	status := larger(fields.Status.AllocatedResources, fields.Status.Resources.Requests)
	for name, quantity := range status {
		quantity.Sub(pod.Spec.Overhead[name]) // kubelet adds it
		status[name] = quantity
	}
	for name, quantity := range status {
		rest := quantity.DeepCopy()
		if rest.Sub(requests[name]); rest.Cmp(extra[name]) > 0 {
			extra[name] = rest
		}
	}
	sums := v1.ResourceList{}
	for name, quantity := range fields.Spec.Resources.Requests {
		if s, ok := status[name]; ok && (infeasible || s.Cmp(quantity) > 0) {
			quantity = s
		}
		delete(extra, name)
		sums[name] = quantity
	}
	if len(sums) > 0 {
		replaceSums(pod, sums)
	}
	if len(extra) > 0 {
		add(extra, pod.Spec.Overhead)
		pod.Spec.Overhead = extra
	}
}

// takenByClaims returns what the pod's devices take: the sum over its claims.
func takenByClaims(claims []laterClaim) v1.ResourceList {
	taken := v1.ResourceList{}
	for _, claim := range claims {
		add(taken, claim.Resources)
		for _, m := range claim.Mapping {
			add(taken, v1.ResourceList{m.Name: m.Quantity})
		}
		for _, o := range claim.Overhead {
			add(taken, v1.ResourceList{o.Name: o.PerPod})
			for n, times := len(claim.Containers), o.PerContainer.DeepCopy(); n > 0; n /= 2 {
				if n%2 == 1 {
					add(taken, v1.ResourceList{o.Name: times})
				}
				times.Add(times.DeepCopy())
			}
		}
	}
	return taken
}

// replaceSums makes the containers' sums of these resources the quantities. All but the first request 0, which scores do
// not take for the absence of a request for CPU or memory.
func replaceSums(pod *v1.Pod, sums v1.ResourceList) {
	first := sums
	for _, containers := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			requests := larger(containers[i].Resources.Requests, v1.ResourceList{v1.ResourceCPU: {}, v1.ResourceMemory: {}})
			for name := range requests {
				if _, ok := sums[name]; ok {
					requests[name] = resource.Quantity{}
				} else if _, ok := containers[i].Resources.Requests[name]; !ok {
					delete(requests, name)
				}
			}
			add(requests, first)
			containers[i].Resources.Requests, first = requests, nil
		}
	}
}

// What follows takes time and memory in proportion to its lists: pods can have long ones.

// add adds a list to a total.
func add(total, list v1.ResourceList) {
	for name, quantity := range list {
		q := total[name]
		q.Add(quantity)
		total[name] = q
	}
}

// addToNeeded adds what other containers need of the resources in a list.
func addToNeeded(list, others v1.ResourceList) {
	for name, quantity := range list {
		quantity.Add(others[name])
		list[name] = quantity
	}
}

// raise sets the largest quantity of each resource.
func raise(largest, list v1.ResourceList) {
	for name, quantity := range list {
		if q, ok := largest[name]; !ok || quantity.Cmp(q) > 0 {
			largest[name] = quantity.DeepCopy()
		}
	}
}

// larger returns a new list with the largest quantity of each resource.
func larger(lists ...v1.ResourceList) v1.ResourceList {
	largest := v1.ResourceList{}
	for _, list := range lists {
		raise(largest, list)
	}
	return largest
}
