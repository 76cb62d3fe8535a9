// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const (
	cores = 16
	// waiting is how many overcommitting pods wait, at least once in a minute.
	waiting = 6
	step    = time.Minute
)

// sizes are the requests of pods in cores.
var sizes = []float64{4, 2, 1, 0.5}

// amounts are equal lists of resources, by thousandths of cores: traces share them.
var amounts = map[int64]corev1.ResourceList{}

func amount(share float64) corev1.ResourceList {
	milli := 10 * int64(math.Round(100*share))
	if amounts[milli] == nil {
		amounts[milli] = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
	}
	return amounts[milli]
}

// generator makes pods from random numbers. They use CPU in shares of their requests, if nothing else is said:
//
//   - Nodes of 16 cores are full by requests of 4, 2, 1 and 0.5 cores.
//   - Pods of 20 services use a mean that is log-normal with the median 0.35 and the deviation 0.5, from 0.05 to 0.9, and
//     by day 0.1 to 0.6 more and less, with the peak at 14:00 ± 2 h.
//   - Bursts of a service, of all its pods at once: 2 a day, 1.5 to 3 times, for 20 min in the mean. Bursts of a pod: 4 a
//     day, 1.5 to 4 times, 10 min. Noise of a pod: 0.15 of its use, correlated over 5 min. A pod never uses more than twice
//     its request.
//   - A quarter of the requests are jobs of 2 h in the mean, at least 10 min, which follow each other and use 0.4 to 1.
//   - Overcommitting pods use all of their 0.5 cores, for 30 min in the mean (5 min to 2 h); 6 of them always wait.
type generator struct {
	*rand.Rand
	length time.Duration
}

// between returns a number of a range.
func (g generator) between(least, most float64) float64 { return least + (most-least)*g.Float64() }

// lasting returns a time of a mean within limits.
func (g generator) lasting(mean, least, most time.Duration) time.Duration {
	return min(max(time.Duration(g.ExpFloat64()*float64(mean)), least), most).Round(time.Second)
}

// bursts returns the factor of bursts for each step.
func (g generator) bursts(perDay, most float64, mean time.Duration) []float64 {
	factors := slices.Repeat([]float64{1}, int(g.length/step))
	for at := 0.0; ; {
		at += g.ExpFloat64() * 24 * 60 / perDay
		if int(at) >= len(factors) {
			return factors
		}
		factor, lasts := g.between(1.5, most), int(g.lasting(mean, step, 4*time.Hour)/step)
		for i := int(at); i < min(len(factors), int(at)+lasts); i++ {
			factors[i] = max(factors[i], factor)
		}
	}
}

// day returns the use of a service for each step.
func (g generator) day() []float64 {
	mean := min(max(0.35*math.Exp(0.5*g.NormFloat64()), 0.05), 0.9)
	swing, top := g.between(0.1, 0.6), 14+2*g.NormFloat64()
	use := g.bursts(2, 3, 20*time.Minute)
	for i := range use {
		hour := float64(i) * step.Hours()
		use[i] *= mean * (1 + swing*math.Cos(2*math.Pi*(hour-top)/24))
	}
	return use
}

// noise returns what a pod's use is multiplied by, for each step.
func (g generator) noise() []float64 {
	factors, value := g.bursts(4, 4, 10*time.Minute), g.NormFloat64()
	keep := math.Exp(-float64(step) / float64(5*time.Minute))
	for i := range factors {
		value = keep*value + math.Sqrt(1-keep*keep)*g.NormFloat64()
		factors[i] *= max(0, 1+0.15*value)
	}
	return factors
}

// pod returns a pod of a node that uses shares of its request from a step on.
func pod(name, node string, request float64, at, lasts time.Duration, share func(step int) float64) input.Event {
	of := st.MakePod().Namespace("default").Name(name).SchedulerName("default-scheduler").
		NodeSelector(map[string]string{corev1.LabelHostname: node}).
		Req(map[corev1.ResourceName]string{"cpu": fmt.Sprint(request), "memory": "1Gi"}).Obj()
	w := &input.Workload{Pod: of, Count: 1, Duration: lasts}
	for i := range int((lasts + step - 1) / step) {
		w.Use = append(w.Use, input.Use{After: time.Duration(i) * step, Resources: amount(request * min(2, share(i+int(at/step))))})
	}
	return input.Event{At: at, Pods: w}
}

// generate returns the ordinary pods of nodes.
func (g generator) generate(nodes int) (pods []input.Event) {
	services := make([][]float64, 20)
	for i := range services {
		services[i] = g.day()
	}
	return g.fill(nodes, func(name, node string, request float64) {
		if g.Float64() < 0.25 {
			for at := time.Duration(0); at < g.length; at += 2 * time.Second {
				lasts, use, noise := g.lasting(2*time.Hour, 10*time.Minute, 24*time.Hour), g.between(0.4, 1), g.noise()
				pods = append(pods, pod(fmt.Sprint(name, "-", at.Seconds()), node, request, at, min(lasts, g.length-at),
					func(i int) float64 { return use * noise[min(i, len(noise)-1)] }))
				at += lasts
			}
			return
		}
		use, noise := services[g.IntN(len(services))], g.noise()
		pods = append(pods, pod(name, node, request, 0, g.length, func(i int) float64 { return use[i] * noise[i] }))
	}, &pods)
}

// fill adds pods that request all of the nodes, a quarter of each in every size.
func (g generator) fill(nodes int, add func(name, node string, request float64), pods *[]input.Event) []input.Event {
	for n := range nodes {
		for _, size := range sizes {
			for i := range int(cores / float64(len(sizes)) / size) {
				add(fmt.Sprintf("ordinary-%02d-%v-%d", n, size, i), nodeName(n), size)
			}
		}
	}
	slices.SortStableFunc(*pods, func(a, b input.Event) int { return int(a.At - b.At) })
	return *pods
}

func nodeName(number int) string { return fmt.Sprintf("node-%02d", number) }

// batch returns an overcommitting pod, and batchOf one that asks for thousandths of cores.
func (g generator) batch(number int) *input.Workload {
	return batchOf(number, 500, g.lasting(30*time.Minute, 5*time.Minute, 2*time.Hour))
}

func batchOf(number int, milli int64, lasts time.Duration) *input.Workload {
	asked := *resource.NewQuantity(milli, resource.DecimalSI)
	of := st.MakePod().Namespace("default").Name(fmt.Sprint("batch-", number)).SchedulerName("default-scheduler").Container("batch").Obj()
	of.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("0"), "memory": resource.MustParse("1Gi"), config.OvercommitResource: asked},
		Limits:   corev1.ResourceList{"cpu": *resource.NewMilliQuantity(milli, resource.DecimalSI), config.OvercommitResource: asked},
	}
	return &input.Workload{Pod: of, Count: 1, Duration: lasts,
		Use: []input.Use{{Resources: amount(float64(milli) / 1000)}}}
}

// byHand returns two ordinary pods of a node, and overcommitting pods that stay.
func (g generator) byHand() ([]input.Event, func(int) *input.Workload) {
	steady := func(int) float64 { return 0.5 }
	rising := func(i int) float64 {
		if time.Duration(i)*step < g.length/2 {
			return 0.25
		}
		return 0.75
	}
	return []input.Event{pod("ordinary-a", nodeName(0), 8, 0, g.length, steady), pod("ordinary-b", nodeName(0), 8, 0, g.length, rising)},
		func(number int) *input.Workload { return batchOf(number, 2000, 0) }
}
