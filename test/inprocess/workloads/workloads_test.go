// SPDX-License-Identifier: Apache-2.0

// Package workloads compares ways of scheduling by their results for a workload: pods
// that are created and end over hours or days, in virtual time. Nothing sleeps, so a day
// takes seconds, and there is one worker, so each run of a trace gives the same figures.
package workloads

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"kube-scheduler-fork/test/inprocess/decision"
)

const (
	// waitTimeout limits every wait. Only a failing test reaches it.
	waitTimeout = time.Minute
	// batch is the number of changes before the test waits for the scheduler: a fake watch holds 100 events.
	batch = 40
	// binPacking fills a node before it uses another.
	binPacking = "bin-packing.yaml"
)

// manifest reads a configuration of manifests/config, so that the published configurations are compared.
func manifest(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "manifests", "config", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// trace is the input that is independent of scheduling.
type trace struct {
	// length is its duration, and step its time step.
	length, step time.Duration
	nodes        []*corev1.Node
	// pods are in any order.
	pods []visit
}

// visit is a pod with its creation and, unless it stays, its end.
type visit struct {
	pod *corev1.Pod
	// comes is its creation time.
	comes time.Duration
	// runs is the time on its node after which it ends; 0 means no limit.
	runs time.Duration
	// ends is the time when it ends, with or without a node; 0 means none.
	ends time.Duration
}

// way is a way of scheduling.
type way struct {
	name string
	// config is a KubeSchedulerConfiguration; empty is the default one.
	config string
	// plugins are plugins that are not compiled into the scheduler.
	plugins frameworkruntime.Registry
}

// cluster runs a trace.
type cluster struct {
	way
	t         *testing.T
	scheduler *decision.Scheduler
	// now is the trace's time.
	now time.Duration
	// placed are the pods with a node, by namespace/name. The node is in their spec.
	placed map[string]*corev1.Pod

	coming  []visit
	waiting map[string]visit // created, without a node
	ending  map[string]time.Duration
	decided int           // scheduling cycles
	busy    time.Duration // their duration, including bindings
}

// play runs a trace with a scheduler, and calls after with the state
// after each step. It returns the cluster in its final state.
func play(t *testing.T, way way, tr trace, after func(*cluster)) *cluster {
	t.Helper()
	c := &cluster{
		way: way, t: t, coming: slices.Clone(tr.pods), placed: map[string]*corev1.Pod{}, waiting: map[string]visit{}, ending: map[string]time.Duration{},
		scheduler: decision.New(t, decision.Options{Config: way.config, Plugins: way.plugins, Nodes: tr.nodes, Seed: 1}),
	}
	slices.SortStableFunc(c.coming, func(a, b visit) int { return int(a.comes - b.comes) })
	for ; c.now < tr.length; c.now += tr.step {
		c.end()
		c.retry()
		due := 0
		for due < len(c.coming) && c.coming[due].comes <= c.now {
			due++
		}
		for some := range slices.Chunk(c.coming[:due], batch) {
			c.create(some)
		}
		c.coming = c.coming[due:]
		after(c)
	}
	c.scheduler.Stop()
	return c
}

// podsPerSecond returns the number of scheduling cycles per second.
func (c *cluster) podsPerSecond() float64 { return float64(c.decided) / c.busy.Seconds() }

// podsOn returns the pods of each node that has pods.
func (c *cluster) podsOn() map[string][]*corev1.Pod {
	on := map[string][]*corev1.Pod{}
	for _, pod := range c.placed {
		on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
	}
	return on
}

// create creates and schedules pods.
func (c *cluster) create(visits []visit) {
	c.t.Helper()
	var pods []*corev1.Pod
	for _, v := range visits {
		v.pod = c.scheduler.Complete(v.pod)[0]
		pods = append(pods, v.pod)
		c.waiting[key(v.pod)] = v
	}
	c.scheduler.Create(pods...)
	c.decide(func() []decision.Decision { return c.scheduler.Next(len(pods)) })
}

// retry retries the pending pods.
func (c *cluster) retry() {
	c.t.Helper()
	if len(c.waiting) == 0 {
		return
	}
	var names []string
	for name := range c.waiting {
		names = append(names, name)
	}
	slices.Sort(names)
	c.decide(func() []decision.Decision { return c.scheduler.Retry(names...) })
}

// decide measures scheduling cycles, and records the placed pods.
func (c *cluster) decide(cycles func() []decision.Decision) {
	c.t.Helper()
	began := time.Now()
	decisions := cycles()
	c.scheduler.Settle()
	c.busy += time.Since(began)
	c.decided += len(decisions)
	for _, d := range decisions {
		if d.Node == "" {
			continue
		}
		v := c.waiting[d.Pod]
		delete(c.waiting, d.Pod)
		pod := v.pod.DeepCopy()
		pod.Spec.NodeName = d.Node
		c.placed[d.Pod] = pod
		if v.runs > 0 {
			c.ending[d.Pod] = c.now + v.runs
		}
		if v.ends > 0 && (v.runs == 0 || v.ends < c.ending[d.Pod]) {
			c.ending[d.Pod] = v.ends
		}
	}
}

// end deletes the pods that have ended.
func (c *cluster) end() {
	c.t.Helper()
	var over []*corev1.Pod
	for name, at := range c.ending {
		if at <= c.now {
			over = append(over, c.placed[name])
			delete(c.ending, name)
			delete(c.placed, name)
		}
	}
	for name, v := range c.waiting {
		if v.ends > 0 && v.ends <= c.now {
			c.scheduler.DeletePod(name)
			delete(c.waiting, name)
		}
	}
	slices.SortFunc(over, func(a, b *corev1.Pod) int {
		if key(a) < key(b) {
			return -1
		}
		return 1
	})
	for some := range slices.Chunk(over, batch) {
		for _, pod := range some {
			if err := c.scheduler.Client.CoreV1().Pods(pod.Namespace).Delete(c.t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
				c.t.Fatal(err)
			}
		}
		gone := func() (bool, error) {
			return !slices.ContainsFunc(some, func(pod *corev1.Pod) bool {
				_, err := c.scheduler.SchedulerCache.GetPod(pod)
				return err == nil
			}), nil
		}
		if err := wait.PollImmediate(time.Millisecond, waitTimeout, gone); err != nil {
			c.t.Fatalf("%s: after %v the scheduler still has pods that are deleted", c.name, waitTimeout)
		}
	}
}

func key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
