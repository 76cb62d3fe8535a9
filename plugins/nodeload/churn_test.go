// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/utils/pointer"
)

// job is a pod of a trace. Times are in seconds.
type job struct {
	owner string
	// request is in thousandths of a core.
	request       int64
	arrives, ends int
	// use is the share of the request that is used at an age.
	use func(age int) float64
}

// played is a pod on a node of a trace.
type played struct {
	*v1.Pod
	job
}

// deviations are the differences between predictions and the true load of the node, in shares of the capacity.
type deviations struct {
	count, closed, closedCool int
	absolute, sum, load       float64
	// lowest is the lowest true load at which the prediction is above the threshold.
	lowest float64
}

func (e *deviations) add(predicted, actual, threshold float64) {
	e.count++
	e.absolute += math.Abs(predicted - actual)
	e.sum += predicted - actual
	e.load += actual
	if predicted > threshold {
		e.closed++
		if e.closed == 1 || actual < e.lowest {
			e.lowest = actual
		}
		if actual < threshold-0.1 {
			e.closedCool++
		}
	}
}

func (e *deviations) String() string {
	lowest := "never"
	if e.closed > 0 {
		lowest = fmt.Sprintf("%.0f %%", 100*e.lowest)
	}
	return fmt.Sprintf("%.1f | %+.1f | %.1f %% | %s", 100*e.absolute/float64(e.count), 100*e.sum/float64(e.count),
		100*float64(e.closedCool)/float64(e.count), lowest)
}

// play places the jobs of a trace on nodes, each on the one with the least requests, in virtual time. Every 30 seconds
// the plugin gets the true means over 5 minutes. It returns the deviations of the plugin's predictions, and those of
// predictions that only add new pods, with the factor.
func play(t *testing.T, jobs []job, count int, cores float64) (before, after deviations) {
	const step, refresh, window = 5, 30, 300
	resource := cpu(80)
	resource.Estimator.Factor = pointer.Int32(85)
	all := nodes(count)
	for _, n := range all {
		n.Status.Capacity[v1.ResourceCPU] = *apiresource.NewMilliQuantity(int64(1000*cores), apiresource.DecimalSI)
		n.Status.Allocatable = n.Status.Capacity
	}
	w := newWorld(t, arguments(resource), all)
	random := rand.New(rand.NewSource(1))
	placed, requested := make([][]played, count), make([]int64, count)
	// history has the true loads of each node for each step.
	history := make([][]float64, count)
	length := 0
	for _, j := range jobs {
		if j.arrives > length {
			length = j.arrives
		}
	}
	for now, next := 0, 0; now < length; now += step {
		w.clock.SetTime(epoch.Add(time.Duration(now) * time.Second))
		for n := range placed {
			var left []played
			for _, p := range placed[n] {
				if p.ends > now {
					left = append(left, p)
					continue
				}
				requested[n] -= p.request
				w.plugin.podEnded(p.Pod)
			}
			placed[n] = left
		}
		for ; next < len(jobs) && jobs[next].arrives <= now; next++ {
			least := 0
			for n := range requested {
				if requested[n] < requested[least] {
					least = n
				}
			}
			requested[least] += jobs[next].request
			placed[least] = append(placed[least], played{podOf(jobs[next], next, all[least].Name, now), jobs[next]})
		}
		for n := range placed {
			// What runs outside of pods uses 5 %, with a standard deviation of 2 %.
			load := math.Max(0, 0.05+0.02*random.NormFloat64())
			for _, p := range placed[n] {
				load += float64(p.request) / 1000 * p.use(now-p.arrives) / cores
			}
			history[n] = append(history[n], load)
		}
		if now%refresh == 0 && now >= window+20 {
			w.refresh(placed, history, window/step, random.Intn(4), step)
		}
		if now < 2*window {
			continue
		}
		v := w.plugin.current()
		for n := range placed {
			info := plugintest.NodeInfo(all[n])
			old := v.measured[n][0].now()
			for _, p := range placed[n] {
				info.AddPod(p.Pod)
				old += Lacking(StartOf(p.Pod, v.window, v.made), Running, v.measured[n][0].at, v.window) * float64(p.request) / 1000 * 0.85 / cores
			}
			actual := history[n][len(history[n])-1]
			before.add(old, actual, 0.8)
			after.add(v.loads(info)[0].now(), actual, 0.8)
		}
	}
	return before, after
}

// refresh measures the means over some steps until some steps ago.
func (w *world) refresh(placed [][]played, history [][]float64, steps, ago, step int) {
	samples := map[string][]collector.Sample{}
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	for n := range placed {
		mean := 0.0
		last := len(history[n]) - ago
		for _, load := range history[n][last-steps : last] {
			mean += load / float64(steps)
		}
		samples[fmt.Sprintf("node-%d", n)] = []collector.Sample{w.sample(mean, time.Duration(ago*step)*time.Second)}
		for _, p := range placed[n] {
			_ = pods.Add(p.Pod)
		}
	}
	w.plugin.pods = corelisters.NewPodLister(pods)
	w.measure(samples)
}

// podOf returns the pod of a job's trace that runs on a node.
func podOf(j job, number int, node string, since int) *v1.Pod {
	name := fmt.Sprint(j.owner, "-", number)
	return of(on(pod(name, fmt.Sprintf("%dm", j.request)), node, since), "Job", name)
}

// shortJobs returns jobs of some owners that run for 20 to 120 s, and together use a share of some nodes' cores.
func shortJobs(load, used, cores float64) (jobs []job) {
	random := rand.New(rand.NewSource(1))
	shares := []float64{0.5 * used, used, 1.5 * used}
	for at := 0.0; at < 3600; {
		owner, lives := random.Intn(len(shares)), 20+random.Intn(101)
		request, share := int64(500+500*random.Intn(3)), math.Max(0, shares[owner]*(1+0.3*random.NormFloat64()))
		jobs = append(jobs, job{owner: fmt.Sprint("owner-", owner), request: request, arrives: int(at), ends: int(at) + lives,
			use: func(int) float64 { return share }})
		// On average a job uses one core times the share for 70 s.
		at += random.ExpFloat64() * 70 * used / (load * cores)
	}
	return jobs
}

// TestChurn checks that nodes with short jobs are hardly ever closed far below the threshold, whatever the pods use of
// their requests. Jobs that have just started use 30 % more or less than the owner's others, so it can happen.
func TestChurn(t *testing.T) {
	for _, used := range []float64{0.85, 0.3} {
		t.Run(fmt.Sprintf("used %.0f %%", 100*used), func(t *testing.T) {
			before, after := play(t, shortJobs(0.45, used, 100), 10, 10)
			t.Logf("before: %v; after: %v", &before, &after)
			if before.closedCool < before.count/2 {
				t.Errorf("without the correction, nodes are closed at less than 70 %% only %d times of %d", before.closedCool, before.count)
			}
			if after.closedCool > after.count/100 {
				t.Errorf("nodes are closed at less than 70 %% %d times of %d", after.closedCool, after.count)
			}
		})
	}
}

// TestEndedPod checks that a pod that ends is taken off from the next cycle on, until the mean no longer contains it.
func TestEndedPod(t *testing.T) {
	// Each pod has run for longer than a window before the measurement, and counts with its request in it: 20 %.
	controlled := func(pod *v1.Pod) *v1.Pod { return of(pod, "Job", "job") }
	deleted, succeeded := controlled(on(pod("deleted", "2"), "node-0", -1000)), controlled(on(pod("succeeded", "2"), "node-0", -1000))
	w := newWorld(t, arguments(cpu(0)), nodes(1), deleted, succeeded)
	info := plugintest.NodeInfo(node("node-0"))
	predicted := func() string { return w.predicted(info) }
	want := func(load string) {
		t.Helper()
		plugintest.WaitFor(t, "predicted "+load, func() bool { return predicted() == load })
	}
	w.measureLoads(0.5)
	w.know("job", 1)
	want("50 %")

	api := w.Client.CoreV1().Pods("test")
	if err := api.Delete(context.Background(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want("30 %")
	over := succeeded.DeepCopy()
	over.Status.Phase = v1.PodSucceeded
	if _, err := api.UpdateStatus(context.Background(), over, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want("10 %")
	// Its deletion after that changes nothing: both are taken off once.
	if err := api.Delete(context.Background(), "succeeded", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Two of five minutes later the mean still contains 60 % of both, which is 24 %.
	w.clock.SetTime(epoch.Add(2 * time.Minute))
	w.measureLoads(0.34)
	want("10 %")
	w.clock.SetTime(epoch.Add(5 * time.Minute))
	w.measureLoads(0.1)
	want("10 %")
	w.clock.SetTime(epoch.Add(time.Hour))
	w.measureLoads(0.1)
	w.clock.Step(time.Minute)
	w.measureLoads(0.1)
	if got := len(w.plugin.ended.runs); got != 0 {
		t.Errorf("%d ended pods are remembered after an hour", got)
	}
	for i := 0; i < 2*mostEnded; i++ {
		w.plugin.podEnded(controlled(on(pod("small", "0"), "node-0", 0)))
	}
	if got := len(w.plugin.ended.runs); got != mostEnded {
		t.Errorf("%d ended pods are remembered, want %d", got, mostEnded)
	}
	// Nothing corrects the estimate of a pod without a controller.
	w.plugin.podEnded(on(pod("large", "9"), "node-0", 0))
	want("10 %")
	// What ended pods are estimated to have used is not more than what was measured: a pod that begins counts.
	w.plugin.podEnded(controlled(on(pod("large", "9"), "node-0", 0)))
	want("0 %")
	info.AddPod(on(pod("begins", "2"), "node-0", 3700))
	want("20 %")
}

// predicted returns the predicted load of a node.
func (w *world) predicted(info *framework.NodeInfo) string {
	return fmt.Sprintf("%.0f %%", 100*w.plugin.current().loads(info)[0].now())
}

// know sets how well the use of a Job's pods is known, from 0 to 1.
func (w *world) know(job string, share float64) {
	scales := w.plugin.current().scales.see(owner{"test", "Job", job}, 1, 0)
	for r := range scales.each {
		scales.each[r].variance = uncertain * (1 - share)
	}
}

// TestHotNodeStaysClosed checks that a node which is just above its threshold of 70 % is not opened by what a pod that
// ended is estimated to have used for half of the window, unless it is known well that it used that.
func TestHotNodeStaysClosed(t *testing.T) {
	began, resource := after(-1000), cpu(70)
	resource.Estimator.Annotation = "example.com/cpu"
	annotate := func(pod *v1.Pod) { pod.Annotations = map[string]string{"example.com/cpu": "2"} }
	for _, test := range []struct {
		name   string
		known  float64
		change func(*v1.Node, *v1.Pod)
		want   string
	}{
		{"its owner's pods are known: 10 % are taken off", 1, func(*v1.Node, *v1.Pod) {}, "62 %"},
		{"half known: 5 %", 0.5, func(*v1.Node, *v1.Pod) {}, "67 %"},
		{"not known", 0, func(*v1.Node, *v1.Pod) {}, "72 %"},
		{"no owner", 1, func(_ *v1.Node, pod *v1.Pod) { pod.OwnerReferences = nil }, "72 %"},
		{"nothing is learned of its annotation", 1, func(_ *v1.Node, pod *v1.Pod) { annotate(pod) }, "72 %"},
		{"its use was measured", 0, func(_ *v1.Node, pod *v1.Pod) { annotate(pod); pod.Name = "measured" }, "62 %"},
		{"it crashed", 1, func(_ *v1.Node, pod *v1.Pod) {
			pod.Status.StartTime = &began
			pod.Status.ContainerStatuses[0] = v1.ContainerStatus{RestartCount: 7, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}}
		}, "72 %"},
		{"its images were pulled for long, and it has been stopped", 1, func(_ *v1.Node, pod *v1.Pod) {
			pod.Status.StartTime = &began
			pod.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{StartedAt: after(-150)}}
		}, "62 %"},
		{"it ran on an earlier node with this name", 1, func(node *v1.Node, _ *v1.Pod) { node.CreationTimestamp = after(-100) }, "72 %"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, ends := node("node-0"), of(on(pod("ends", "2"), "node-0", -150), "Job", "job")
			test.change(n, ends)
			w := newWorld(t, arguments(resource), []*v1.Node{n})
			w.measureLoads(0.72)
			w.plugin.current().usedByPods[0] = map[string]collector.Sample{"test/measured": w.sample(1, 0)}
			w.know("job", test.known)
			w.plugin.podEnded(ends)
			if got := w.predicted(plugintest.NodeInfo(n)); got != test.want {
				t.Errorf("predicted %s, want %s", got, test.want)
			}
		})
	}
}

// TestSameName checks a pod of a lower priority that has replaced one with the same name: the measured use under this
// name is that of both, so it is not known how much of it is the new pod's, until it has run for a window.
func TestSameName(t *testing.T) {
	before, now := of(on(pod("db-0", "2"), "node-0", -1000), "StatefulSet", "db"), of(on(pod("db-0", "2"), "node-0", -90), "StatefulSet", "db")
	now.UID = "new"
	w := newWorld(t, arguments(cpu(70)), nodes(1))
	w.measureLoads(0.5)
	v := w.plugin.current()
	v.usedByPods[0] = map[string]collector.Sample{"test/db-0": w.sample(2, 0)}
	used := func(pod *v1.Pod) float64 { return v.used(pod, StartOf(pod, v.window, v.made), 0) }
	w.plugin.podEnded(before)
	if got := used(now); got >= 0 {
		t.Errorf("the new pod's use is %v, want unknown", got)
	}
	now.Status.ContainerStatuses[0] = runs(-300, 0)
	if got := used(now); got != 2 {
		t.Errorf("after a window: got %v, want 2", got)
	}
	// The name of the last one that ended is remembered as long as this one.
	w.clock.Step(time.Minute)
	w.plugin.podEnded(now)
	w.clock.Step(8*time.Minute - time.Second)
	w.measure(nil)
	if ended, _ := w.plugin.ended.last(nameOf(now)); ended != now.UID {
		t.Errorf("got %v", ended)
	}
}

// TestEndedPodsInAnOutage checks that ended pods are forgotten while nothing is measured, also those of nodes on which
// no pod ends any more, and that the pods themselves are not kept.
func TestEndedPodsInAnOutage(t *testing.T) {
	w := newWorld(t, arguments(cpu(0)), nodes(20))
	w.measure(nil)
	var collected int32
	const ends = 3600
	for i := 0; i < ends; i++ {
		w.clock.SetTime(epoch.Add(time.Duration(i) * time.Second))
		node := i % 20
		if i > 600 {
			node %= 10
		}
		p := of(on(pod(fmt.Sprint("pod-", i), "1"), fmt.Sprint("node-", node), i-60), "Job", "job")
		runtime.SetFinalizer(p, func(*v1.Pod) { atomic.AddInt32(&collected, 1) })
		w.plugin.podEnded(p)
	}
	uids := 0
	w.plugin.ended.uids.Range(func(_, _ interface{}) bool { uids++; return true })
	// maxSampleAge and the window are 8 minutes.
	if got := len(w.plugin.ended.runs); got != 481 || uids != got {
		t.Errorf("%d ended pods and %d UIDs are remembered after an hour, want 481", got, uids)
	}
	plugintest.WaitFor(t, "the pods are not referenced", func() bool {
		runtime.GC()
		return atomic.LoadInt32(&collected) == ends
	})
}

// TestEndInMidCycle checks a pod that has ended and that the NodeInfo still contains. It used 20 % of the node for a
// quarter of the window: what the mean contains of it is taken off once, and nothing is added.
func TestEndInMidCycle(t *testing.T) {
	ends := of(on(pod("ends", "2"), "node-0", -75), "Job", "job")
	w := newWorld(t, arguments(cpu(80)), nodes(1), ends)
	w.measureLoads(0.83)
	info, incoming := w.Node(t, "node-0"), pod("incoming", "1")
	predicted := func() string { return w.predicted(info) }
	if got := predicted(); got != "98 %" {
		t.Errorf("predicted %s while it runs, want 98 %%", got)
	}
	w.know("job", 1)
	w.plugin.podEnded(ends)
	if got := predicted(); got != "78 %" {
		t.Errorf("predicted %s after its end, want 78 %%", got)
	}
	// Preemption does not take it off again: 76 % would be below the threshold.
	w.measureLoads(0.86)
	w.plugin.current().usedByPods[0] = map[string]collector.Sample{"test/ends": w.sample(0.5, 0)}
	state := begin(w, incoming)
	w.plugin.RemovePod(context.Background(), state, incoming, framework.NewPodInfo(ends), info)
	if status := w.plugin.Filter(context.Background(), state, incoming, info); status.IsSuccess() {
		t.Error("a pod that has ended is taken off twice: 81 % pass")
	}
}

func BenchmarkEnded(b *testing.B) {
	w := newWorld(b, arguments(five()...), nodes(1))
	measureAll(w, nodes(1))
	for i := 0; i < 3000; i++ {
		w.plugin.podEnded(of(on(pod(fmt.Sprint("pod-", i), "1"), "node-0", -i), "Job", "job"))
	}
	info := plugintest.NodeInfo(node("node-0"), on(pod("runs", "1"), "node-0", -10))
	plugintest.PerNode(b, 1, func(i int) {
		info.Generation = int64(i + 1)
		w.plugin.current().loads(info)
	})
}
