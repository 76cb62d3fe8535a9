// SPDX-License-Identifier: Apache-2.0

package loadtrace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
	"kube-scheduler-fork/test/inprocess/decision"
)

const (
	// waitTimeout limits every wait. Only a failing test reaches it.
	waitTimeout = 3 * time.Minute
	// parallelism is upstream's default.
	parallelism = 16
	// batch is the number of changes before the test waits for the scheduler: a fake watch holds 100 events.
	batch = 40
	// again is the time until an unschedulable pod is retried.
	again = time.Second
	// inNamespace is the prefix of pod names in decisions.
	inNamespace = metav1.NamespaceDefault + "/"
)

// cluster runs a trace with one way of scheduling.
type cluster struct {
	way
	t          *testing.T
	scheduler  *decision.Scheduler
	reality    *reality
	prometheus *prometheus // nil if the way needs no measurements

	coming  []job                    // pods to be created
	waiting map[string]job           // created pods without a node, by name
	started map[string]time.Duration // start times of running pods
	running []placement
	tried   time.Duration // last retry of pending pods

	asked   int           // queries before the trace began
	decided int           // scheduling cycles
	busy    time.Duration // their duration
}

// newCluster returns a cluster in the state before the trace.
func newCluster(t *testing.T, way way, tr trace) *cluster {
	t.Helper()
	c := &cluster{
		way: way, t: t, reality: newReality(tr.nodes, time.Now()), coming: slices.Clone(tr.pods),
		waiting: make(map[string]job), started: make(map[string]time.Duration),
	}
	options := decision.Options{Parallelism: parallelism, Seed: 1}
	for _, node := range tr.nodes {
		made := st.MakeNode().Name(node.name).Label(corev1.LabelHostname, node.name)
		if node.zone != "" {
			made.Label(corev1.LabelTopologyZone, node.zone).Label(corev1.LabelTopologyRegion, "region")
		}
		options.Nodes = append(options.Nodes, made.
			Capacity(map[corev1.ResourceName]string{
				corev1.ResourceCPU:    fmt.Sprint(node.cores),
				corev1.ResourceMemory: fmt.Sprintf("%dGi", 4*node.cores),
				corev1.ResourcePods:   "110",
			}).Obj())
	}
	url := ""
	if way.measures {
		c.prometheus = newPrometheus(t, c.reality)
		url = c.prometheus.url
	}
	if way.config != nil {
		options.Config = way.config(url)
	}
	if way.plugins != nil {
		options.Plugins = way.plugins(t, c.prometheus)
	}
	c.scheduler = decision.New(t, options)
	return c
}

// await waits for a condition.
func (c *cluster) await(what string, done func() bool) {
	c.t.Helper()
	if err := wait.PollImmediate(time.Millisecond, waitTimeout, func() (bool, error) { return done(), nil }); err != nil {
		c.t.Fatalf("%s: timed out after %v waiting for %s", c.name, waitTimeout, what)
	}
}

// warm waits until Prometheus has the nodes' loads, and a plugin that refreshes by itself has read them.
func (c *cluster) warm() {
	c.t.Helper()
	if c.prometheus == nil {
		return
	}
	err := wait.PollImmediate(step, waitTimeout, func() (bool, error) { return c.prometheus.warm(c.t.Context()), nil })
	if err != nil {
		c.t.Fatalf("%s: after %v Prometheus has no measurement of some nodes", c.name, waitTimeout)
	}
	c.asked = c.prometheus.queries(c.t)
	if !c.refreshes {
		return
	}
	// The first of two queries may have been answered before that.
	c.await("the plugin's next two requests", func() bool { return c.prometheus.queries(c.t) >= c.asked+2 })
	c.asked = c.prometheus.queries(c.t)
}

// play handles a time step of the trace: it deletes pods whose time is over, and creates and schedules new ones.
func (c *cluster) play(now time.Duration) {
	c.t.Helper()
	c.reality.move(now, time.Now())
	c.end(now)
	var due []job
	c.coming = slices.DeleteFunc(c.coming, func(j job) bool {
		since, runs := c.started[j.after]
		if is := (j.after == "" || runs) && since+j.arrives <= now; !is {
			return false
		}
		due = append(due, j)
		return true
	})
	if len(c.waiting) > 0 && c.tried+again <= now {
		c.tried = now
		var names []string
		for name := range c.waiting {
			names = append(names, inNamespace+name)
		}
		slices.Sort(names)
		c.count(func() []decision.Decision { return c.scheduler.Retry(names...) })
	}
	for some := range slices.Chunk(due, batch) {
		var pods []*corev1.Pod
		for _, j := range some {
			c.waiting[j.name] = j
			pod := newPod(j)
			if c.change != nil {
				c.change(pod)
			}
			pods = append(pods, pod)
		}
		c.scheduler.Create(pods...)
		c.count(func() []decision.Decision { return c.scheduler.Next(len(pods)) })
	}
}

// count measures scheduling cycles, and starts the placed pods on their nodes.
func (c *cluster) count(cycles func() []decision.Decision) {
	c.t.Helper()
	began := time.Now()
	decisions := cycles()
	c.busy += time.Since(began)
	c.decided += len(decisions)
	c.scheduler.Settle()
	now := time.Now()
	var placed []decision.Decision
	for _, d := range decisions {
		if d.Node == "" {
			continue
		}
		placed = append(placed, d)
		name := strings.TrimPrefix(d.Pod, inNamespace)
		j := c.waiting[name]
		delete(c.waiting, name)
		node := slices.IndexFunc(c.reality.nodes, func(m machine) bool { return m.name == d.Node })
		p := c.reality.place(j, node, now)
		c.running = append(c.running, p)
		c.started[name] = p.from
	}
	for some := range slices.Chunk(placed, batch) {
		c.run(some, now)
	}
}

// run starts new pods like the kubelets.
func (c *cluster) run(placed []decision.Decision, now time.Time) {
	c.t.Helper()
	var pods []*corev1.Pod
	for _, d := range placed {
		api := c.scheduler.Client.CoreV1().Pods(metav1.NamespaceDefault)
		pod, err := api.Get(c.t.Context(), strings.TrimPrefix(d.Pod, inNamespace), metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		// An API server stores times in whole seconds.
		since := metav1.NewTime(now).Rfc3339Copy()
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &since
		for _, container := range pod.Spec.Containers {
			running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
				corev1.ContainerStatus{Name: container.Name, Ready: true, State: running})
		}
		pod, err = api.UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		pods = append(pods, pod)
	}
	c.await("the scheduler to see that pods run", func() bool {
		return !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
			seen, err := c.scheduler.SchedulerCache.GetPod(pod)
			return err != nil || seen.Status.Phase != corev1.PodRunning
		})
	})
}

// end deletes the pods that have ended.
func (c *cluster) end(now time.Duration) {
	c.t.Helper()
	var over []placement
	c.running = slices.DeleteFunc(c.running, func(p placement) bool {
		if p.to > now {
			return false
		}
		over = append(over, p)
		return true
	})
	for some := range slices.Chunk(over, batch) {
		for _, p := range some {
			err := c.scheduler.Client.CoreV1().Pods(metav1.NamespaceDefault).Delete(c.t.Context(), p.name, metav1.DeleteOptions{})
			if err != nil {
				c.t.Fatal(err)
			}
		}
		c.await("the scheduler to see that pods are gone", func() bool {
			return !slices.ContainsFunc(some, func(p placement) bool {
				_, err := c.scheduler.SchedulerCache.GetPod(c.scheduler.Complete(newPod(p.job))[0])
				return err == nil
			})
		})
	}
}

func newPod(j job) *corev1.Pod {
	pod := st.MakePod().Namespace(metav1.NamespaceDefault).Name(j.name).Req(map[corev1.ResourceName]string{
		corev1.ResourceCPU:    fmt.Sprintf("%dm", j.request),
		corev1.ResourceMemory: fmt.Sprintf("%dMi", 2*j.request),
	})
	if j.component != "" {
		pod.Label("app", j.owner).Label("component", j.component)
		return pod.Obj()
	}
	// Pods with equal requests come from one CronJob.
	made := pod.Obj()
	made.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: fmt.Sprintf("requests-%d-1", j.request), Controller: pointer.Bool(true)}}
	return made
}
