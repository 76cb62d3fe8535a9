// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"flag"
	"fmt"
	"math/rand"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"kube-scheduler-fork/test/inprocess/decision"
)

var (
	nodesFlag       = flag.String("nodes", "5000", "numbers of nodes, separated by commas")
	parallelismFlag = flag.String("parallelism", "1", "how many workers filter and score: numbers, separated by commas")
	runningFlag     = flag.Int("running", 1000, "how many pods are placed before the first decision is measured")
)

// mostPods bounds the pods of a shape whose pods need additional objects.
const mostPods = 5000

// BenchmarkDecision times decisions of the default profile. Run it a fixed number of times (-test.benchtime=200x):
// every decision adds a pod. In addition to time and allocations it reports the CPU time of a decision, including the
// garbage collector, in ns.
func BenchmarkDecision(b *testing.B) {
	decision.Quiet(b)
	for i := range shapes {
		for _, nodes := range numbers(b, *nodesFlag) {
			for _, parallelism := range numbers(b, *parallelismFlag) {
				name := fmt.Sprintf("shape=%s/nodes=%d/parallelism=%d", shapes[i].name, nodes, parallelism)
				shapes[i].run(b, name, nodes, parallelism)
			}
		}
	}
}

// BenchmarkAdversary is BenchmarkDecision for adversaries, which have a number of nodes each. It also reports the live
// bytes.
func BenchmarkAdversary(b *testing.B) {
	decision.Quiet(b)
	for i := range adversaries {
		s := &adversaries[i]
		s.run(b, fmt.Sprintf("shape=%s/nodes=%d/pods=%d", s.name, s.nodes, s.nodes*s.podsPerNode), s.nodes, 1)
	}
}

func (s *shape) run(b *testing.B, name string, nodes, parallelism int) {
	var c *cluster
	b.Run(name, func(sub *testing.B) {
		if c == nil {
			// The enclosing benchmark owns the cluster, because this function is called several times.
			c = newCluster(b, s, nodes, parallelism)
		}
		c.measure(sub)
	})
	if c != nil {
		c.Stop()
	}
}

func numbers(tb testing.TB, list string) []int {
	var numbers []int
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			tb.Fatalf("%q is not a number of nodes or workers", text)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// cluster is a scheduler with the nodes and pods of a shape.
type cluster struct {
	*decision.Scheduler
	shape *shape
	nodes []*v1.Node
	// made is the number of pods so far, and placed are the pods that may be removed again.
	made   int
	placed []*v1.Pod
	// changes is the number of changes of the cluster between decisions.
	changes int
}

func newCluster(tb testing.TB, shape *shape, nodes, parallelism int) *cluster {
	tb.Helper()
	c := &cluster{shape: shape, nodes: shape.cluster(nodes)}
	var objects []apiruntime.Object
	if shape.objects != nil {
		objects = shape.objects(mostPods, len(c.nodes))
	}
	c.Scheduler = decision.New(tb, decision.Options{Nodes: c.nodes, Objects: objects, Parallelism: int32(parallelism)})
	// Victims are chosen but stay, so each decision finds the same cluster.
	c.Client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		return true, nil, nil
	})
	rand.Seed(1) //lint:ignore SA1019 the scheduler draws from the global source, which nothing else can seed
	running, count := shape.running, *runningFlag
	if running == nil {
		running = shape.decided()
	}
	if shape.podsPerNode > 0 {
		count = nodes * shape.podsPerNode
	}
	for ; c.made < count; c.made++ {
		pod := c.Complete(running(c.made, nodes))[0]
		if shape.podsPerNode > 0 {
			pod.Spec.NodeName = nodeName(c.made % nodes)
			if err := c.SchedulerCache.AddPod(pod); err != nil {
				tb.Fatal(err)
			}
			c.placed = append(c.placed, pod)
		} else if err := c.decide(pod, false); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

// decided returns a function that creates the pods to schedule.
func (s *shape) decided() func(i, nodes int) *v1.Pod {
	if s.pod == nil {
		return basic
	}
	return s.pod
}

// decide schedules a pod, and returns an error if the result is of an unexpected kind.
func (c *cluster) decide(pod *v1.Pod, fails bool) error {
	node, err := c.Decide(pod)
	switch {
	case fails && err == nil:
		return fmt.Errorf("%s is placed on %s, want no node", pod.Name, node)
	case fails:
		pod.Spec.NodeName = node
		return nil
	case err != nil:
		return err
	}
	pod.Spec.NodeName = node
	c.placed = append(c.placed, pod)
	return nil
}

// pods creates the next pods.
func (c *cluster) pods(n int) []*v1.Pod {
	var pods []*v1.Pod
	for i := 0; i < n; i++ {
		pod := c.Complete(c.shape.decided()(c.made, len(c.nodes)))[0]
		if c.shape.fails {
			c.List(pod)
		}
		pods = append(pods, pod)
		c.made++
	}
	return pods
}

func (c *cluster) measure(b *testing.B) {
	pods := c.pods(b.N)
	runtime.GC()
	var spent time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for _, pod := range pods {
		if c.shape.churn != nil {
			b.StopTimer()
			c.shape.churn(b, c)
			b.StartTimer()
		}
		before := processorTime(b)
		if err := c.decide(pod, c.shape.fails); err != nil {
			b.Fatal(err)
		}
		spent += processorTime(b) - before
	}
	b.StopTimer()
	b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
	if c.shape.nodes > 0 {
		reportAlive(b)
	}
}

// changeSome deletes a pod, and sometimes removes a node or adds it again.
func changeSome(tb testing.TB, c *cluster) {
	oldest := c.placed[0]
	c.placed = c.placed[1:]
	if err := c.SchedulerCache.RemovePod(oldest); err != nil {
		tb.Fatal(err)
	}
	const every = 20
	node := c.nodes[c.changes/every%len(c.nodes)]
	switch c.changes % every {
	case 0:
		if err := c.SchedulerCache.RemoveNode(node); err != nil {
			tb.Fatal(err)
		}
	case every / 2:
		c.SchedulerCache.AddNode(node)
	}
	c.changes++
}

// processorTime returns the CPU time of all threads of this process, including those of the garbage collector.
func processorTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestEachShapeDecides checks that each shape has the result that its benchmark is meant to measure.
func TestEachShapeDecides(t *testing.T) {
	running := *runningFlag
	*runningFlag = 40
	defer func() { *runningFlag = running }()
	for _, s := range append(append([]shape(nil), shapes...), adversaries...) {
		s := s
		t.Run(s.name, func(t *testing.T) {
			nodes := 150
			if 0 < s.nodes && s.nodes < nodes {
				nodes = s.nodes
			}
			c := newCluster(t, &s, nodes, 1)
			for _, pod := range c.pods(60) {
				if s.churn != nil {
					s.churn(t, c)
				}
				if err := c.decide(pod, s.fails); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
