// SPDX-License-Identifier: Apache-2.0

package openb

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodefilter"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// run is one simulation.
type run struct {
	// Name is a policy of the paper, or a configuration.
	Name string
	// Config is a KubeSchedulerConfiguration.
	Config string
	// AllNodes adds the nodes without GPUs.
	AllNodes bool
	Seed     uint64
}

// hasGPU is the label of gpu.yaml, which GPU feature discovery sets.
const hasGPU = "nvidia.com/gpu.present"

// paper reports whether it is a policy of the paper.
func (r run) paper() bool { return r.Name == randomPolicy || r.Name == bestFit }

const (
	randomPolicy, bestFit = "Random", "BestFit"
	// arriving is how many GPUs the pods ask for in all, in percent of those of the nodes.
	arriving = 130
)

// outcome is the result of a run.
type outcome struct {
	Pods int
	// Allocated and Fragmented are in percent of all GPUs, when requests of so many percent have arrived.
	Allocated, Fragmented map[int]float64
	// Waits is what was allocated when the first pod with GPUs fitted no node.
	Waits float64
	// Large is how many of the pods with eight GPUs, in percent, have a node at the end.
	Large float64
}

// gauge measures GPUs in percent.
type gauge interface {
	allocated() float64
	fragmented() float64
}

// do runs a simulation.
func (r run) do() (*outcome, error) {
	cluster, err := input.ReadCluster([]string{filepath.Join(os.Getenv(openB), "openb_node_list_all_node.csv")})
	if err != nil {
		return nil, err
	}
	trace, err := input.ReadTrace(filepath.Join(os.Getenv(openB), "openb_pod_list_default.csv"))
	if err != nil {
		return nil, err
	}
	if !r.AllNodes {
		cluster.Nodes = slices.DeleteFunc(cluster.Nodes, func(n *corev1.Node) bool {
			return n.Status.Allocatable.Name(gpu, "").IsZero()
		})
	}
	for _, n := range cluster.Nodes {
		if !n.Status.Allocatable.Name(gpu, "").IsZero() {
			n.Labels[hasGPU] = "true"
		}
	}
	sharing := newSharing(cluster.Nodes, r.Name, r.Seed)
	var list []*corev1.Pod
	for _, event := range trace.Events {
		if r.paper() || event.Pods.Pod.Annotations[gpuMilli] == "" {
			list = append(list, event.Pods.Pod)
		}
	}
	config, version, err := scheme.Codecs.UniversalDecoder().Decode([]byte(r.Config), nil, nil)
	if err != nil {
		return nil, err
	}
	decoded := config.(*schedulerconfig.KubeSchedulerConfiguration)
	decoded.TypeMeta.APIVersion = version.GroupVersion().String()
	registry := frameworkruntime.Registry{gpuSharing: sharing.new}
	// The patched tree has it already.
	if _, inTree := plugins.NewInTreeRegistry()[nodefilter.Name]; !inTree {
		registry[nodefilter.Name] = nodefilter.New
	}
	s, err := replay.New(context.Background(), replay.Options{
		Config: decoded, Cluster: cluster, Seed: int64(r.Seed), Registry: registry,
	})
	if err != nil {
		return nil, err
	}
	pods := arrivals(list, sharing.all, r.Seed)
	if r.paper() {
		return fill(s, pods, sharing.all, paper{sharing, typical(list)})
	}
	return fill(s, pods, sharing.all, simulated{s})
}

// arrivals returns the pods of the list in random order, followed by pods that are drawn from it.
func arrivals(list []*corev1.Pod, all int64, seed uint64) (pods []*input.Workload) {
	random, sum := rand.New(rand.NewPCG(seed, 0)), int64(0)
	add := func(of *corev1.Pod) bool {
		sum += requestOf(of).gpu()
		named := *of
		named.Name = fmt.Sprintf("pod-%05d", len(pods))
		pods = append(pods, &input.Workload{Pod: &named, Count: 1})
		return sum*100 <= all*arriving
	}
	for _, i := range random.Perm(len(list)) {
		add(list[i])
	}
	for add(list[random.IntN(len(list))]) {
	}
	return pods[:len(pods)-1]
}

// fill creates the pods, one after the other. They never end, and are tried once.
func fill(s *replay.Simulation, pods []*input.Workload, all int64, of gauge) (*outcome, error) {
	s.Expect(pods, 0)
	o := &outcome{Pods: len(pods), Allocated: map[int]float64{}, Fragmented: map[int]float64{}}
	arrived, counts, large, placed := int64(0), map[int]float64{}, 0.0, 0.0
	for _, pod := range pods {
		before := of.allocated()
		s.Create(pod)
		s.Settle()
		gpus, after := requestOf(pod.Pod).gpu(), of.allocated()
		if gpus > 0 && before == after && o.Waits == 0 {
			o.Waits = after
		}
		if gpus == mostGPU {
			large++
			if before != after {
				placed++
			}
		}
		arrived += gpus
		// As published, the mean of what rounds to a percent.
		percent := int(math.Round(100 * float64(arrived) / float64(all)))
		counts[percent]++
		o.Allocated[percent] += (after - o.Allocated[percent]) / counts[percent]
		if slices.Contains(fragmentedAt, percent) {
			o.Fragmented[percent] += (of.fragmented() - o.Fragmented[percent]) / counts[percent]
		}
	}
	o.Large = 100 * placed / large
	return o, nil
}

// simulated is the simulator's own measurement.
type simulated struct{ *replay.Simulation }

func (s simulated) allocated() float64 {
	return s.Current()[`allocation_percent{resource="nvidia.com/gpu"}`]
}
func (s simulated) fragmented() float64 {
	return s.Current()[`fragmentation_percent{resource="nvidia.com/gpu"}`]
}

// paper is the paper's measurement, which knows parts of GPUs.
type paper struct {
	*sharing
	targets map[request]float64
}

func (p paper) allocated() float64 {
	free := int64(0)
	for _, n := range p.nodes {
		free += n.free()
	}
	return 100 - 100*float64(free)/float64(p.all)
}

// fragmented weighs what is free on a node, and cannot be used by a pod, by the pod's frequency.
func (p paper) fragmented() float64 {
	sum := 0.0
	for _, n := range p.nodes {
		for r, share := range p.targets {
			useless := n.free()
			if r.gpus > 0 && n.cpu >= r.cpu && n.fits(r) {
				for _, number := range n.candidates(r) {
					useless -= n.gpus[number]
				}
			}
			sum += share * float64(useless)
		}
	}
	return 100 * sum / float64(p.all)
}

// typical returns the most frequent requests, of 95 % of the pods together, with their shares.
func typical(list []*corev1.Pod) map[request]float64 {
	counts := map[request]float64{}
	for _, pod := range list {
		counts[requestOf(pod)]++
	}
	var requests []request
	for r := range counts {
		requests = append(requests, r)
	}
	slices.SortFunc(requests, func(a, b request) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]),
			cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.each, a.each), cmp.Compare(b.gpus, a.gpus))
	})
	targets, sum := map[request]float64{}, 0.0
	for _, r := range requests {
		if sum >= 0.95*float64(len(list)) {
			break
		}
		targets[r] = counts[r]
		sum += counts[r]
	}
	for r := range targets {
		targets[r] /= sum
	}
	return targets
}
