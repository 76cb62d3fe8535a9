// SPDX-License-Identifier: Apache-2.0

package openb

import (
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
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	randomPolicy, bestFit = "Random", "BestFit"
	// arriving is how many GPUs the pods ask for in all, in percent of those of the nodes.
	arriving = 130
)

// run is one simulation of a policy of the paper.
type run struct {
	Policy string
	Seed   uint64
}

// do runs a simulation on the nodes with GPUs, and returns the percentage of GPUs that are allocated when all pods have come.
func (r run) do() (float64, error) {
	cluster, err := input.ReadCluster([]string{filepath.Join(os.Getenv(openB), "openb_node_list_all_node.csv")})
	if err != nil {
		return 0, err
	}
	trace, err := input.ReadTrace(filepath.Join(os.Getenv(openB), "openb_pod_list_default.csv"))
	if err != nil {
		return 0, err
	}
	cluster.Nodes = slices.DeleteFunc(cluster.Nodes, func(n *corev1.Node) bool {
		return n.Status.Allocatable.Name(gpu, "").IsZero()
	})
	sharing := newSharing(cluster.Nodes, r.Policy, r.Seed)
	var list []*corev1.Pod
	for _, event := range trace.Events {
		list = append(list, event.Pods.Pod)
	}
	object, version, err := scheme.Codecs.UniversalDecoder().Decode([]byte(config), nil, nil)
	if err != nil {
		return 0, err
	}
	decoded := object.(*schedulerconfig.KubeSchedulerConfiguration)
	decoded.TypeMeta.APIVersion = version.GroupVersion().String()
	s, err := replay.New(context.Background(), replay.Options{
		Config: decoded, Cluster: cluster, Seed: int64(r.Seed), Registry: frameworkruntime.Registry{gpuSharing: sharing.new},
	})
	if err != nil {
		return 0, err
	}
	return fill(s, arrivals(list, sharing.all, r.Seed), sharing), nil
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

// fill creates the pods, one after the other. They never end, and are tried once. As published, the result is the mean of
// what rounds to the percentage that arrives in all.
func fill(s *replay.Simulation, pods []*input.Workload, of *sharing) (allocated float64) {
	s.Expect(pods, 0)
	arrived, count := int64(0), 0.0
	for _, pod := range pods {
		s.Create(pod)
		s.Settle()
		arrived += requestOf(pod.Pod).gpu()
		if math.Round(100*float64(arrived)/float64(of.all)) == arriving {
			count++
			allocated += (of.allocated() - allocated) / count
		}
	}
	return allocated
}

// allocated returns the percentage of all GPUs that are used, which knows parts of GPUs.
func (s *sharing) allocated() float64 {
	free := int64(0)
	for _, n := range s.nodes {
		free += n.free()
	}
	return 100 - 100*float64(free)/float64(s.all)
}
