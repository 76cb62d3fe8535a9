// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"runtime"
	"strconv"
	"strings"
	"sync"
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

// BenchmarkDecision times whole attempts to schedule pods of the default profile, from the queue to the begin of the
// binding cycle, or back to the queue. Shapes that fit no node have a second benchmark with the same pods again. Run it
// a fixed number of times (-test.benchtime=200x): every attempt adds a pod. In addition to time and allocations it
// reports the CPU time of an attempt, including binding and the garbage collector, in ns.
func BenchmarkDecision(b *testing.B) {
	decision.Quiet(b)
	for i := range shapes {
		for _, nodes := range numbers(b, *nodesFlag) {
			for _, parallelism := range numbers(b, *parallelismFlag) {
				shapes[i].run(b, fmt.Sprintf("nodes=%d/parallelism=%d", nodes, parallelism), nodes, parallelism)
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
		s.run(b, fmt.Sprintf("nodes=%d/pods=%d", s.nodes, s.nodes*s.podsPerNode), s.nodes, 1)
	}
}

func (s *shape) run(b *testing.B, size string, nodes, parallelism int) {
	var c *cluster
	measure := func(suffix string, again bool) {
		b.Run(fmt.Sprintf("shape=%s%s/%s", s.name, suffix, size), func(sub *testing.B) {
			if c == nil {
				// The enclosing benchmark owns the cluster, because this function is called several times.
				c = newCluster(b, s, nodes, parallelism)
			}
			c.measure(sub, again)
		})
	}
	measure("", false)
	if s.fails {
		measure("-again", true)
	}
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
	// written are the conditions of pods that fit no node, as the scheduler has written them.
	mutex   sync.Mutex
	written map[string][]byte
}

func newCluster(tb testing.TB, shape *shape, nodes, parallelism int) *cluster {
	tb.Helper()
	c := &cluster{shape: shape, nodes: shape.cluster(nodes), written: map[string][]byte{}}
	var objects []apiruntime.Object
	if shape.objects != nil {
		objects = shape.objects(mostPods, len(c.nodes))
	}
	c.Scheduler = decision.New(tb, decision.Options{Nodes: c.nodes, Objects: objects, Parallelism: int32(parallelism)})
	// Victims are chosen but stay, so each decision finds the same cluster.
	c.Client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		return true, nil, nil
	})
	// The client takes writes at once.
	c.Client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		return true, &v1.Pod{}, nil
	})
	c.Client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.written[patch.GetName()] = patch.GetPatch()
		return true, &v1.Pod{}, nil
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
		} else if err := c.decide(pod); err != nil {
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

// decide places a pod, without its attempt in the queue.
func (c *cluster) decide(pod *v1.Pod) error {
	node, err := c.Decide(pod)
	if err != nil {
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

// queue creates the next pods in the scheduler's queue.
func (c *cluster) queue(tb testing.TB, n int) []*v1.Pod {
	pods := c.pods(n)
	for _, pod := range pods {
		if err := c.SchedulingQueue.Add(pod); err != nil {
			tb.Fatal(err)
		}
	}
	return pods
}

// requeue has the queue receive the conditions of pods that fit no node, and moves them to its active part.
func (c *cluster) requeue(tb testing.TB, pods []*v1.Pod) {
	active := map[string]*v1.Pod{}
	for i, old := range pods {
		pod := old.DeepCopy()
		// The pod has no status yet, so the patch has all of it.
		if err := json.Unmarshal(c.written[pod.Name], pod); err != nil || len(pod.Status.Conditions) != 1 {
			tb.Fatalf("%s has the status %v after its attempt: %v", pod.Name, pod.Status, err)
		}
		c.List(pod)
		if err := c.SchedulingQueue.Update(old, pod); err != nil {
			tb.Fatal(err)
		}
		pods[i], active[pod.Name] = pod, pod
	}
	c.SchedulingQueue.Activate(active)
}

// attempt makes the scheduler try the queued pods, and checks the results. before is called before each attempt.
func (c *cluster) attempt(tb testing.TB, pods []*v1.Pod, before func()) {
	decisions := c.Attempts(len(pods), before)
	for i, made := range decisions {
		pod := pods[i]
		if made.Pod != pod.Namespace+"/"+pod.Name || (made.Node == "") != c.shape.fails {
			tb.Fatalf("attempt %d: %s is placed on %q, want %s, placed: %v", i, made.Pod, made.Node, pod.Name, !c.shape.fails)
		}
		if pod.Spec.NodeName = made.Node; made.Node != "" {
			c.placed = append(c.placed, pod)
		}
	}
}

// change changes the cluster as its shape does.
func (c *cluster) change(tb testing.TB) {
	if c.shape.churn != nil {
		c.shape.churn(tb, c)
	}
}

func (c *cluster) measure(b *testing.B, again bool) {
	pods := c.queue(b, b.N)
	if again {
		c.attempt(b, pods, func() {})
		c.requeue(b, pods)
	}
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	start, changing := processorTime(b), time.Duration(0)
	c.attempt(b, pods, func() {
		if c.shape.churn != nil {
			b.StopTimer()
			before := processorTime(b)
			c.change(b)
			changing += processorTime(b) - before
			b.StartTimer()
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(processorTime(b)-start-changing)/float64(b.N), "cpu-ns/op")
	if c.shape.nodes > 0 {
		reportAlive(b)
	}
	c.dequeue(b, pods)
}

// dequeue removes the pods that fit no node from the queue.
func (c *cluster) dequeue(tb testing.TB, pods []*v1.Pod) {
	if c.shape.fails {
		for _, pod := range pods {
			if err := c.SchedulingQueue.Delete(pod); err != nil {
				tb.Fatal(err)
			}
		}
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
			pods, change := c.queue(t, 30), func() { c.change(t) }
			c.attempt(t, pods, change)
			if s.fails {
				c.requeue(t, pods)
				c.attempt(t, pods, change)
			}
		})
	}
}
