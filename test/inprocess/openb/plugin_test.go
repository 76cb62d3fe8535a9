// SPDX-License-Identifier: Apache-2.0

package openb

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	// gpuSharing is the plugin's name.
	gpuSharing = "GPUSharing"
	gpu        = corev1.ResourceName("nvidia.com/gpu")
	// gpuMilli is the annotation of a pod that asks for a part of a GPU, in thousandths.
	gpuMilli = "simulation/gpu-milli"
	whole    = 1000
	// mostCPU and mostGPU are what the largest nodes have, in thousandths; the paper's BestFit divides by them.
	mostCPU, mostGPU = 128_000, 8 * whole
)

// request is what a pod asks for: CPU, a number of GPUs, and how much of each of them, in thousandths.
type request struct{ cpu, gpus, each int64 }

func (r request) gpu() int64 { return r.gpus * r.each }

func requestOf(pod *corev1.Pod) request {
	asked := pod.Spec.Containers[0].Resources.Requests
	r := request{cpu: asked.Cpu().MilliValue(), each: whole}
	if count, ok := asked[gpu]; ok {
		r.gpus = count.Value()
	} else if part, err := strconv.ParseInt(pod.Annotations[gpuMilli], 10, 64); err == nil {
		r.gpus, r.each = 1, part
	}
	return r
}

// node is what is free on a node, in thousandths.
type node struct {
	cpu  int64
	gpus []int64
}

func (n *node) free() (sum int64) {
	for _, free := range n.gpus {
		sum += free
	}
	return sum
}

// candidates returns the GPUs that a pod could use.
func (n *node) candidates(r request) (numbers []int) {
	for number, free := range n.gpus {
		if free >= r.each {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

func (n *node) fits(r request) bool { return int64(len(n.candidates(r))) >= r.gpus }

// sharing schedules like the FGD paper's Random and BestFit. It keeps which GPUs of each node are used.
type sharing struct {
	nodes map[string]*node
	// order is that of nodes with equal scores: random, and the same for each pod.
	order map[string]int
	all   int64
	// random chooses nodes and GPUs; nil for BestFit.
	random *rand.Rand
	// used are the GPUs of each pod.
	used map[types.UID][]int
}

var (
	_ framework.FilterPlugin    = &sharing{}
	_ framework.ScorePlugin     = &sharing{}
	_ framework.ScoreExtensions = &sharing{}
	_ framework.ReservePlugin   = &sharing{}
)

func newSharing(nodes []*corev1.Node, policy string, seed uint64) *sharing {
	random := rand.New(rand.NewPCG(seed, 1))
	s := &sharing{nodes: map[string]*node{}, order: map[string]int{}, used: map[types.UID][]int{}}
	for i, position := range random.Perm(len(nodes)) {
		count := nodes[i].Status.Allocatable[gpu]
		n := &node{nodes[i].Status.Allocatable.Cpu().MilliValue(), slices.Repeat([]int64{whole}, int(count.Value()))}
		s.nodes[nodes[i].Name], s.order[nodes[i].Name] = n, position
		s.all += n.free()
	}
	if policy == randomPolicy {
		s.random = random
	}
	return s
}

// new is the plugin's factory.
func (s *sharing) new(runtime.Object, framework.Handle) (framework.Plugin, error) { return s, nil }

// Name implements framework.Plugin.
func (s *sharing) Name() string { return gpuSharing }

// Filter implements framework.FilterPlugin. NodeResourcesFit checks CPU and memory.
func (s *sharing) Filter(_ context.Context, _ *framework.CycleState, pod *corev1.Pod,
	info *framework.NodeInfo) *framework.Status {
	if !s.nodes[info.Node().Name].fits(requestOf(pod)) {
		return framework.NewStatus(framework.Unschedulable, "node(s) had too few free GPUs")
	}
	return nil
}

// Score implements framework.ScorePlugin. It is random, or BestFit: the less is left of CPU and GPUs, the better.
func (s *sharing) Score(_ context.Context, _ *framework.CycleState, pod *corev1.Pod,
	name string) (int64, *framework.Status) {
	if s.random != nil {
		return s.random.Int64N(math.MaxInt64), nil
	}
	n, r := s.nodes[name], requestOf(pod)
	left := float64(n.cpu-r.cpu)/mostCPU + float64(n.free()-r.gpu())/mostGPU
	return int64((1 - left/2) * float64(framework.MaxNodeScore)), nil
}

// ScoreExtensions implements framework.ScorePlugin.
func (s *sharing) ScoreExtensions() framework.ScoreExtensions { return s }

// NormalizeScore implements framework.ScoreExtensions: only the best node has points, because upstream's scheduler
// chooses among equal ones in another way than the paper's.
func (s *sharing) NormalizeScore(_ context.Context, _ *framework.CycleState, _ *corev1.Pod,
	scores framework.NodeScoreList) *framework.Status {
	best := slices.MaxFunc(scores, func(a, b framework.NodeScore) int {
		if a.Score == b.Score {
			return s.order[b.Name] - s.order[a.Name]
		}
		return int(min(max(a.Score-b.Score, -1), 1))
	})
	for i := range scores {
		scores[i].Score = framework.MinNodeScore
		if scores[i].Name == best.Name {
			scores[i].Score = framework.MaxNodeScore
		}
	}
	return nil
}

// Reserve implements framework.ReservePlugin. A part comes from the GPU with the least left, or from a random one.
func (s *sharing) Reserve(_ context.Context, _ *framework.CycleState, pod *corev1.Pod, name string) *framework.Status {
	n, r := s.nodes[name], requestOf(pod)
	numbers := n.candidates(r)
	switch {
	case r.each == whole:
	case s.random != nil:
		s.random.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	default:
		slices.SortStableFunc(numbers, func(i, j int) int { return int(n.gpus[i] - n.gpus[j]) })
	}
	s.used[pod.UID] = numbers[:r.gpus]
	s.take(pod, name, 1)
	return nil
}

// Unreserve implements framework.ReservePlugin.
func (s *sharing) Unreserve(_ context.Context, _ *framework.CycleState, pod *corev1.Pod, name string) {
	s.take(pod, name, -1)
	delete(s.used, pod.UID)
}

// take takes a pod's resources, or gives them back.
func (s *sharing) take(pod *corev1.Pod, name string, sign int64) {
	n, r := s.nodes[name], requestOf(pod)
	n.cpu -= sign * r.cpu
	for _, number := range s.used[pod.UID] {
		n.gpus[number] -= sign * r.each
	}
}
