// SPDX-License-Identifier: Apache-2.0

package noderesources

import (
	"math"
	"sort"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/saturating"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

var (
	_ framework.PreparedFilterPlugin = &Fit{}
	_ framework.BatchScorePlugin     = &Fit{}
	_ framework.BatchScorePlugin     = &BalancedAllocation{}
)

// PrepareFilter reads the pod's requests once, and creates one status for all nodes that lack the same resources.
func (f *Fit) PrepareFilter(state *framework.CycleState, _ *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	s, err := getPreFilterState(state)
	if err != nil {
		failure := framework.AsStatus(err).WithFailedPlugin(FitName)
		return func(*framework.NodeInfo) *framework.Status { return failure }
	}
	request := *s
	const (
		pods = 1 << iota
		cpu
		memory
		ephemeralStorage
		firstScalar
	)
	scalars := f.scalarsOf(s)
	if len(scalars) > 32 {
		return func(nodeInfo *framework.NodeInfo) *framework.Status { return f.reject(s, nodeInfo) }
	}
	// A pod with requests does not fit a node that is already overcommitted.
	empty := request.MilliCPU == 0 && request.Memory == 0 && request.EphemeralStorage == 0 && len(request.ScalarResources) == 0
	var statuses sync.Map // keyed by the missing resources
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		lacking := 0
		allocatable, requested := nodeInfo.Allocatable, nodeInfo.Requested
		if len(nodeInfo.Pods)+1 > allocatable.AllowedPodNumber {
			lacking |= pods
		}
		if !empty {
			if request.MilliCPU > allocatable.MilliCPU-requested.MilliCPU {
				lacking |= cpu
			}
			if request.Memory > allocatable.Memory-requested.Memory {
				lacking |= memory
			}
			if request.EphemeralStorage > allocatable.EphemeralStorage-requested.EphemeralStorage {
				lacking |= ephemeralStorage
			}
		}
		for i := range scalars {
			if scalars[i].request > allocatable.ScalarResources[scalars[i].name]-requested.ScalarResources[scalars[i].name] {
				lacking |= firstScalar << i
			}
		}
		if lacking == 0 {
			return nil
		}
		if status, ok := statuses.Load(lacking); ok {
			return status.(*framework.Status)
		}
		status := f.reject(s, nodeInfo).WithFailedPlugin(FitName)
		statuses.Store(lacking, status)
		return status
	}
}

// scalarsOf returns the scalar resources that a pod requests, except ignored ones.
func (f *Fit) scalarsOf(s *preFilterState) []podResource {
	var scalars []podResource
	for name, request := range s.ScalarResources {
		if v1helper.IsExtendedResourceName(name) {
			group := ""
			if f.ignoredResourceGroups.Len() > 0 {
				group = strings.Split(string(name), "/")[0]
			}
			if f.ignoredResources.Has(string(name)) || f.ignoredResourceGroups.Has(group) {
				continue
			}
		}
		scalars = append(scalars, podResource{name: name, request: request})
	}
	return scalars
}

// reject returns the status of Filter for the requests that PreFilter computed.
func (f *Fit) reject(s *preFilterState, nodeInfo *framework.NodeInfo) *framework.Status {
	insufficient := fitsRequest(s, nodeInfo, f.ignoredResources, f.ignoredResourceGroups)
	if len(insufficient) == 0 {
		return nil
	}
	reasons := make([]string, 0, len(insufficient))
	for i := range insufficient {
		reasons = append(reasons, insufficient[i].Reason)
	}
	return framework.NewStatus(framework.Unschedulable, reasons...)
}

// ScoreNodes sets the same scores as Score, and computes the pod's requests once.
func (f *Fit) ScoreNodes(_ *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	return f.resourceAllocationScorer.scoreNodes(pod, nodes, scores)
}

// ScoreNodes sets the same scores as Score, and computes the pod's requests once.
func (ba *BalancedAllocation) ScoreNodes(_ *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	return ba.resourceAllocationScorer.scoreNodes(pod, nodes, scores)
}

// podResource is the pod's request of a resource that counts in its score.
type podResource struct {
	name    v1.ResourceName
	request int64
	weight  int64
}

func (r *resourceAllocationScorer) scoreNodes(pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	var score func(requested, allocatable []int64, resources []podResource) int64
	switch r.Name {
	case string(config.LeastAllocated):
		score = weightedMean(leastRequestedScore)
	case string(config.MostAllocated):
		score = weightedMean(mostRequestedScore)
	case BalancedAllocationName:
		score = balancedAllocation
	}
	if score == nil || r.resourceToWeightMap == nil || klog.V(10).Enabled() {
		for i, nodeInfo := range nodes {
			var status *framework.Status
			if scores[i].Score, status = r.score(pod, nodeInfo); !status.IsSuccess() {
				return status
			}
		}
		return nil
	}
	resources := r.podResources(pod)
	requested, allocatable := make([]int64, len(resources)), make([]int64, len(resources))
	counted := make([]podResource, len(resources))
	for i, nodeInfo := range nodes {
		n := 0
		for j := range resources {
			if alloc, req := r.onNode(nodeInfo, &resources[j]); alloc != 0 {
				allocatable[n], requested[n], counted[n] = alloc, req, resources[j]
				n++
			}
		}
		scores[i].Score = score(requested[:n], allocatable[:n], counted[:n])
	}
	return nil
}

// podResources returns the resources that count for a pod, sorted by name. Extended resources that the pod does not
// request are left out.
func (r *resourceAllocationScorer) podResources(pod *v1.Pod) []podResource {
	resources := make([]podResource, 0, len(r.resourceToWeightMap))
	for name, weight := range r.resourceToWeightMap {
		request := r.calculatePodResourceRequest(pod, name)
		if request == 0 && schedutil.IsScalarResourceName(name) {
			continue
		}
		resources = append(resources, podResource{name: name, request: request, weight: weight})
	}
	sort.Slice(resources, func(i, j int) bool { return resources[i].name < resources[j].name })
	return resources
}

// onNode returns a node's allocatable amount of a resource, and the amount requested there including the pod.
func (r *resourceAllocationScorer) onNode(nodeInfo *framework.NodeInfo, resource *podResource) (int64, int64) {
	requested := nodeInfo.NonZeroRequested
	if r.useRequested {
		requested = nodeInfo.Requested
	}
	switch resource.name {
	case v1.ResourceCPU:
		return nodeInfo.Allocatable.MilliCPU, saturating.Add(requested.MilliCPU, resource.request)
	case v1.ResourceMemory:
		return nodeInfo.Allocatable.Memory, saturating.Add(requested.Memory, resource.request)
	case v1.ResourceEphemeralStorage:
		return nodeInfo.Allocatable.EphemeralStorage, saturating.Add(nodeInfo.Requested.EphemeralStorage, resource.request)
	}
	return nodeInfo.Allocatable.ScalarResources[resource.name],
		saturating.Add(nodeInfo.Requested.ScalarResources[resource.name], resource.request)
}

func weightedMean(score func(requested, capacity int64) int64) func(requested, allocatable []int64, resources []podResource) int64 {
	return func(requested, allocatable []int64, resources []podResource) int64 {
		var sum, weights int64
		for i := range resources {
			sum += score(requested[i], allocatable[i]) * resources[i].weight
			weights += resources[i].weight
		}
		if weights == 0 {
			return 0
		}
		return sum / weights
	}
}

// balancedAllocation is balancedResourceScorer without maps and with a fixed order of resources: for more than two
// resources, stock adds up fractions in the order of a map.
func balancedAllocation(requested, allocatable []int64, resources []podResource) int64 {
	fraction := func(i int) float64 { return math.Min(float64(requested[i])/float64(allocatable[i]), 1) }
	std := 0.0
	if len(resources) == 2 {
		std = math.Abs((fraction(0) - fraction(1)) / 2)
	} else if len(resources) > 2 {
		var total, sum float64
		for i := range resources {
			total += fraction(i)
		}
		mean := total / float64(len(resources))
		for i := range resources {
			sum += (fraction(i) - mean) * (fraction(i) - mean)
		}
		std = math.Sqrt(sum / float64(len(resources)))
	}
	return int64((1 - std) * float64(framework.MaxNodeScore))
}
