// SPDX-License-Identifier: Apache-2.0

package schedulers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	// queuedPods are pending pods that do not fit, a quarter for each reason.
	queuedPods = 5000
	// arrivals is the number of pods that fit and are created each second, and of those that end; lifetime is theirs.
	arrivals, lifetime = 20, 5 * time.Second
	// heartbeat is the interval in which the status of each node changes.
	heartbeat = 10 * time.Second
	// settling and measuring are the phases after all queued pods have been tried.
	settling, measuring = 20 * time.Second, time.Minute
	// writes are the series of a scheduler's requests that write.
	writes = `rest_client_requests_total\{.*method="(?:POST|PUT|PATCH)".*\}`
)

// BenchmarkQueue measures how long a pod that fits waits, from its creation until it is bound, while pods that do not fit
// are pending, pods end, and the status of nodes changes: make bench NAME=queue.
func BenchmarkQueue(b *testing.B) {
	b.Run("nodes=1000", func(b *testing.B) { measureQueue(b, 1000) })
}

func measureQueue(b *testing.B, count int) {
	s := &stand{Cluster: shared.Get(b)}
	var nodes []*corev1.Node
	for i := range count {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3)},
		}})
	}
	s.CreateNodes(b, nodes...)
	config := cluster.WriteConfig(b, "clientConnection: {qps: 1000, burst: 2000}\n")
	scheduler := s.StartScheduler(b, cluster.Program(b, "KUBE_SCHEDULER"), config, localcluster.SchedulerOptions{Name: "scheduler"})

	// One in each zone, which the anti-affinity of others excludes.
	for zone := range 3 {
		pod := localcluster.NewPod(fmt.Sprintf("blocker-%d", zone), corev1.DefaultSchedulerName)
		pod.Labels = map[string]string{"app": "blocker"}
		pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", zone)}
		s.AwaitBound(b, s.CreatePod(b, pod))
	}
	s.createAll(b, queuedPods, doesNotFit)
	if err := wait.PollImmediate(time.Second, 15*time.Minute, func() (bool, error) {
		return s.tried(b) == queuedPods, nil
	}); err != nil {
		b.Fatalf("%d of %d pods have been tried: %v", s.tried(b), queuedPods, err)
	}

	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { s.beat(ctx, nodes) })
	waits := &waits{created: map[string]time.Time{}}
	running.Go(func() { waits.watch(ctx, b, s) })
	running.Go(func() { s.arrive(ctx, b, waits) })
	time.Sleep(settling)
	waits.reset()
	began, used, servers, written := time.Now(), s.processorTime(b, "scheduler"), s.processorTime(b, "kube-apiserver", "etcd"), s.metric(b, scheduler, writes)
	time.Sleep(measuring)
	took := time.Since(began).Seconds()
	all := waits.take()
	reportWaits(b, all)
	b.ReportMetric(float64(len(all))/took, "arrived/s")
	b.ReportMetric(100*(s.processorTime(b, "scheduler")-used).Seconds()/took, "scheduler-%")
	b.ReportMetric(100*(s.processorTime(b, "kube-apiserver", "etcd")-servers).Seconds()/took, "servers-%")
	b.ReportMetric((s.metric(b, scheduler, writes)-written)/took, "writes/s")
}

// doesNotFit returns a pod that no node takes: for its size, a label that no node has, an extended resource that no node
// has, or anti-affinity to a pod in each zone.
func doesNotFit(i int) *corev1.Pod {
	pod := localcluster.NewPod(fmt.Sprintf("queued-%d", i), corev1.DefaultSchedulerName)
	switch i % 4 {
	case 0:
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("9")
	case 1:
		pod.Spec.NodeSelector = map[string]string{"disk": "none"}
	case 2:
		one := corev1.ResourceList{"example.com/device": resource.MustParse("1")}
		pod.Spec.Containers[0].Resources.Limits = one
		pod.Spec.Containers[0].Resources.Requests["example.com/device"] = one["example.com/device"]
	case 3:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "blocker"}},
			}},
		}}
	}
	return pod
}

func (s *stand) createAll(b *testing.B, count int, pod func(int) *corev1.Pod) {
	workqueue.ParallelizeUntil(b.Context(), creators, count, func(i int) {
		if _, err := s.Client().CoreV1().Pods(metav1.NamespaceDefault).Create(b.Context(), pod(i), metav1.CreateOptions{}); err != nil {
			b.Error(err)
		}
	})
}

// tried returns the number of pods whose condition says that they do not fit.
func (s *stand) tried(b *testing.B) (count int) {
	list, err := s.Client().CoreV1().Pods(metav1.NamespaceDefault).List(b.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		b.Fatal(err)
	}
	for _, pod := range list.Items {
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }) {
			count++
		}
	}
	return count
}

// beat changes the status of the nodes as kubelet's heartbeats do.
func (s *stand) beat(ctx context.Context, nodes []*corev1.Node) {
	cluster.Every(ctx, max(1, len(nodes)/int(heartbeat.Seconds())), func(i int) {
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		_, _ = s.Client().CoreV1().Nodes().PatchStatus(ctx, nodes[i%len(nodes)].Name, []byte(patch))
	})
}

// arrive creates pods that fit, and deletes those that have lived.
func (s *stand) arrive(ctx context.Context, b *testing.B, waits *waits) {
	pods, now := s.Client().CoreV1().Pods(metav1.NamespaceDefault), int64(0)
	cluster.Every(ctx, arrivals, func(i int) {
		pod := localcluster.NewPod(fmt.Sprintf("fits-%d", i), corev1.DefaultSchedulerName)
		waits.add(pod.Name)
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
			b.Error(err)
		}
		if old := i - arrivals*int(lifetime.Seconds()); old >= 0 {
			_ = pods.Delete(ctx, fmt.Sprintf("fits-%d", old), metav1.DeleteOptions{GracePeriodSeconds: &now})
		}
	})
}

// metric returns the sum of some series of a scheduler.
func (s *stand) metric(b *testing.B, scheduler *localcluster.Scheduler, series string) float64 {
	content, err := s.Get(b.Context(), scheduler.URL()+"/metrics")
	if err != nil {
		b.Fatal(err)
	}
	return cluster.Sum(content, series)
}

// waits are the times from the creation of pods until they are bound.
type waits struct {
	sync.Mutex
	created map[string]time.Time
	bound   []time.Duration
}

func (w *waits) add(pod string) {
	w.Lock()
	defer w.Unlock()
	w.created[pod] = time.Now()
}

// reset forgets the pods that were created so far.
func (w *waits) reset() {
	w.Lock()
	defer w.Unlock()
	clear(w.created)
	w.bound = nil
}

// take returns the waiting times in ascending order; pods that still wait count with the time so far.
func (w *waits) take() []time.Duration {
	w.Lock()
	defer w.Unlock()
	all := slices.Clone(w.bound)
	for _, created := range w.created {
		all = append(all, time.Since(created))
	}
	slices.Sort(all)
	return all
}

// watch follows the pods that are bound.
func (w *waits) watch(ctx context.Context, b *testing.B, s *stand) {
	changes, err := s.Client().CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermNotEqualSelector("spec.nodeName", "").String(),
	})
	if err != nil {
		b.Error(err)
		return
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		pod, is := change.Object.(*corev1.Pod)
		if !is {
			continue
		}
		w.Lock()
		if created, found := w.created[pod.Name]; found {
			delete(w.created, pod.Name)
			w.bound = append(w.bound, time.Since(created))
		}
		w.Unlock()
	}
	if ctx.Err() == nil {
		b.Error("the watch of bound pods ended")
	}
}

// reportWaits reports quantiles of sorted times.
func reportWaits(b *testing.B, sorted []time.Duration) {
	for unit, quantile := range map[string]float64{"wait-p50-ms": 0.5, "wait-p99-ms": 0.99, "wait-max-ms": 1} {
		b.ReportMetric(sorted[min(len(sorted)-1, int(quantile*float64(len(sorted))))].Seconds()*1000, unit)
	}
}
