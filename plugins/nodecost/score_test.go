// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"math"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// one is a price of 1 per hour.
const one int64 = 1000000000

const gibibyte = 1 << 30

func TestShare(t *testing.T) {
	tests := []struct {
		name                          string
		price, requested, allocatable int64
		want                          int64
	}{
		{name: "a quarter: 1 × 500/2000", price: one, requested: 500, allocatable: 2000, want: one / 4},
		{name: "nothing", price: one, requested: 0, allocatable: 2000, want: 0},
		{name: "all", price: one, requested: 2000, allocatable: 2000, want: one},
		{name: "more than all is all", price: one, requested: 4000, allocatable: 2000, want: one},
		{name: "of a node that has none of it, all", price: one, requested: 0, allocatable: 0, want: one},
		{name: "of a free node", price: 0, requested: 500, allocatable: 2000, want: 0},
		{name: "a third of a billionth is no free share: rounded up", price: 1, requested: 1, allocatable: 3, want: 1},
		{name: "a third of 1: 333,333,333.3, rounded up", price: one, requested: 1, allocatable: 3, want: 333333334},
		{name: "the largest price and 8 of 16 PiB, whose product has 113 bits", price: maxPrice, requested: 1 << 53, allocatable: 1 << 54, want: maxPrice / 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := share(tt.price, tt.requested, tt.allocatable); got != tt.want {
				t.Errorf("share(%d, %d, %d) = %d, want %d", tt.price, tt.requested, tt.allocatable, got, tt.want)
			}
		})
	}
}

func TestCost(t *testing.T) {
	shares := cycle{unpriced: 2 * one, share: true, cpu: 1000, memory: gibibyte}
	tests := []struct {
		name        string
		cycle       cycle
		node        node
		cpu, memory int64
		want        int64
	}{
		{name: "the whole node", node: node{price: one, from: table}, cpu: 4000, memory: gibibyte, want: one},
		{name: "no price: the median", cycle: cycle{unpriced: 7}, want: 7},
		{name: "a price of 0 is one", cycle: cycle{unpriced: 7}, node: node{from: label}, want: 0},
		{name: "CPU is the larger share: 1 × 1/4, not 1/16", cycle: shares, node: node{price: one, from: table}, cpu: 4000, memory: 16 * gibibyte, want: one / 4},
		{name: "memory is the larger share: 1 × 1/2, not 1/8", cycle: shares, node: node{price: one, from: table}, cpu: 8000, memory: 2 * gibibyte, want: one / 2},
		{name: "the median of nodes, of which 1/4 counts", cycle: shares, cpu: 4000, memory: 16 * gibibyte, want: one / 2},
		{name: "spot that the pod leaves", cycle: cycle{leaveSpot: true}, node: node{price: one, from: table, spot: true}, want: left},
		{name: "no spot", cycle: cycle{leaveSpot: true}, node: node{price: one, from: table}, want: one},
		{name: "spot for all", node: node{price: one, from: table, spot: true}, want: one},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.cycle.cost(tt.node, tt.cpu, tt.memory); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestNormaliseCosts(t *testing.T) {
	tests := []struct {
		name        string
		costs, want []int64
	}{
		{name: "no nodes"},
		{name: "one node", costs: []int64{17}, want: []int64{100}},
		{name: "equal costs", costs: []int64{96, 96, 96}, want: []int64{100, 100, 100}},
		{name: "proportion is kept: 100 × 1/1, 1/2, 1/4", costs: []int64{10, 20, 40}, want: []int64{100, 50, 25}},
		{name: "1 % more costs a point and not all: 100 × 100/101 = 99.0", costs: []int64{100, 101}, want: []int64{100, 99}},
		{name: "rounded to the nearest: 100 × 3/8 = 37.5 up, 100 × 3/9 = 33.3 down", costs: []int64{3, 8, 9}, want: []int64{100, 38, 33}},
		{name: "a thousand times the cost: 0.1, and at least 1", costs: []int64{1, 1000, 100}, want: []int64{100, 1, 1}},
		{name: "a free node, the lowest of the others as if twice as dear: 50 × 10/10 and 10/20", costs: []int64{10, 0, 20}, want: []int64{50, 100, 25}},
		{name: "all are free", costs: []int64{0, 0}, want: []int64{100, 100}},
		{name: "what is left to others does not change the scale", costs: []int64{left, 10, 20}, want: []int64{0, 100, 50}},
		{name: "beside free nodes, too", costs: []int64{left, 0, 20}, want: []int64{0, 100, 50}},
		{name: "all are left to others", costs: []int64{left, left}, want: []int64{0, 0}},
		{name: "the largest prices there are", costs: []int64{maxPrice, maxPrice / 2, 1}, want: []int64{1, 1, 100}},
		{name: "and near to each other: 100 × 0.5/1", costs: []int64{maxPrice, maxPrice / 2}, want: []int64{50, 100}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var scores framework.NodeScoreList
			for _, cost := range tt.costs {
				scores = append(scores, framework.NodeScore{Score: cost})
			}
			normaliseCosts(scores)
			var got []int64
			for i := range scores {
				got = append(got, scores[i].Score)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestNormaliseCostsKeepsTheOrder: a lower cost never scores less, whatever the numbers.
func TestNormaliseCostsKeepsTheOrder(t *testing.T) {
	for _, lowest := range []int64{1, 7, 96000000, one, maxPrice / 3, maxPrice} {
		last := int64(math.MaxInt64)
		for cost := lowest; cost <= maxPrice; cost += cost/97 + 1 {
			got := score(cost, lowest, framework.MaxNodeScore)
			if got > last || got < 1 || got > framework.MaxNodeScore {
				t.Fatalf("a cost of %d scores %d beside a lowest of %d, and the cost before scored %d", cost, got, lowest, last)
			}
			last = got
		}
	}
}

func TestRequests(t *testing.T) {
	container := func(cpu, memory string) v1.Container {
		c := v1.Container{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}
		if cpu != "" {
			c.Resources.Requests[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			c.Resources.Requests[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return c
	}
	const mebibyte = 1 << 20
	tests := []struct {
		name        string
		spec        v1.PodSpec
		cpu, memory int64
	}{
		{name: "the sum of containers", spec: v1.PodSpec{Containers: []v1.Container{container("1", "1Gi"), container("250m", "1Gi")}}, cpu: 1250, memory: 2 * gibibyte},
		{name: "nothing: 100m and 200 MiB for each container", spec: v1.PodSpec{Containers: []v1.Container{container("", ""), container("1", "")}}, cpu: 1100, memory: 400 * mebibyte},
		{name: "a sum that exceeds an int64", spec: v1.PodSpec{Containers: []v1.Container{container("5P", "5E"), container("5P", "5E")}}, cpu: math.MaxInt64, memory: math.MaxInt64},
		{name: "zero of one counts as zero", spec: v1.PodSpec{Containers: []v1.Container{container("0", "1Gi")}}, memory: gibibyte},
		{name: "zero of both does not: the node is not free", spec: v1.PodSpec{Containers: []v1.Container{container("0", "0")}}, cpu: 100, memory: 200 * mebibyte},
		{
			name: "an init container that needs more",
			spec: v1.PodSpec{InitContainers: []v1.Container{container("2", "100Mi")}, Containers: []v1.Container{container("1", "1Gi")}},
			cpu:  2000, memory: gibibyte,
		},
		{
			name: "overhead", cpu: 1100, memory: gibibyte,
			spec: v1.PodSpec{Containers: []v1.Container{container("1", "1Gi")}, Overhead: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod := &v1.Pod{Spec: tt.spec}
			if cpu, memory := requests(pod); cpu != tt.cpu || memory != tt.memory {
				t.Errorf("got %dm and %d bytes, want %dm and %d", cpu, memory, tt.cpu, tt.memory)
			}
		})
	}
}

func TestTolerates(t *testing.T) {
	for name, test := range map[string]struct {
		toleration v1.Toleration
		want       bool
	}{
		"the key, whatever the value and the effect": {v1.Toleration{Key: "spot", Value: "x", Effect: v1.TaintEffectNoExecute}, true},
		"the key, if it exists":                      {v1.Toleration{Key: "spot", Operator: v1.TolerationOpExists}, true},
		"every key":                                  {v1.Toleration{Operator: v1.TolerationOpExists}, true},
		"another key":                                {v1.Toleration{Key: "gpu", Operator: v1.TolerationOpExists}, false},
		"no key, which is not valid":                 {v1.Toleration{Operator: v1.TolerationOpEqual}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := st.MakePod().Obj()
			if tolerates(pod, "spot") {
				t.Error("a pod without tolerations tolerates spot")
			}
			pod.Spec.Tolerations = []v1.Toleration{{Key: "first", Operator: v1.TolerationOpExists}, test.toleration}
			if got := tolerates(pod, "spot"); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
