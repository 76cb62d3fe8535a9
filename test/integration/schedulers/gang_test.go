// SPDX-License-Identifier: Apache-2.0

package schedulers

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

var (
	gangNodes = flag.Int("gang-nodes", 5000, "number of nodes of BenchmarkGang")
	gangSize  = flag.Int("gang-size", 1000, "number of pods of its gang; each fills a node")
)

// BenchmarkGang measures a gang for which there is room, one for which a place is missing, and how long pods without a
// gang wait while that one is retried: make bench NAME=gangs.
func BenchmarkGang(b *testing.B) {
	s := &stand{Cluster: shared.Get(b)}
	const root = "../../../manifests/"
	s.CreateFrom(b, root+"crds")
	s.CreateFrom(b, root+"rbac/coscheduling.yaml")
	b.Cleanup(func() { s.Kubectl(b, context.Background(), "delete", "podgroups", "--all") })
	var nodes []*corev1.Node
	for i := range *gangNodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}
		if i < *gangSize {
			node.Labels = map[string]string{"pool": "gang"}
		}
		nodes = append(nodes, node)
	}
	s.CreateNodes(b, nodes...)
	file := filepath.Join(b.TempDir(), "gang.yaml")
	cluster.Write(b, file, regexp.MustCompile("clientConnection:\n").ReplaceAllString(
		cluster.Read(b, root+"config/gang.yaml"), "clientConnection:\n  qps: 1000\n  burst: 2000\n"))
	scheduler := s.StartScheduler(b, cluster.Program(b, "KUBE_SCHEDULER"), file)
	metric := func(series string) float64 { return s.metric(b, scheduler, series) }
	const gangAttempts, durations = "scheduler_coscheduling_attempts_total", "scheduler_coscheduling_attempt_duration_seconds_sum"
	// attempts are those for gangs, or for pods in a scheduler that decides one after the other.
	attempts := func() float64 { return cmp.Or(metric(gangAttempts), metric("scheduler_schedule_attempts_total")) }
	// gang creates one, and measures until a count of its pods reaches its size.
	gang := func(name string, count func() int) {
		group := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
			"metadata": map[string]any{"name": name, "namespace": metav1.NamespaceDefault}, "spec": map[string]any{"minMember": int64(*gangSize)},
		}}
		if err := s.CreateObjects(b.Context(), group); err != nil {
			b.Fatal(err)
		}
		before := attempts()
		s.createAll(b, *gangSize, func(i int) *corev1.Pod {
			pod := localcluster.NewPod(fmt.Sprintf("%s-%d", name, i), corev1.DefaultSchedulerName)
			pod.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io": name}
			pod.Spec.NodeSelector = map[string]string{"pool": "gang"}
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("8")
			return pod
		})
		began := time.Now()
		if err := wait.PollImmediate(100*time.Millisecond, 5*time.Minute, func() (bool, error) { return count() == *gangSize, nil }); err != nil {
			b.Errorf("%s: %d of %d pods: %v", name, count(), *gangSize, err)
		}
		b.ReportMetric(time.Since(began).Seconds(), name+"-s")
		b.ReportMetric(attempts()-before, name+"-attempts")
	}
	gang("fits", func() (bound int) {
		list, err := s.Client().CoreV1().Pods(metav1.NamespaceDefault).List(b.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			b.Fatal(err)
		}
		for i := range list.Items {
			if list.Items[i].Spec.NodeName != "" {
				bound++
			}
		}
		return bound
	})
	s.Kubectl(b, b.Context(), "delete", "pods", "--all", "--now")
	s.Kubectl(b, b.Context(), "delete", "node", nodes[0].Name)
	gang("short", func() int { return s.tried(b) })

	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { s.beat(ctx, nodes[1:]) })
	waits := &waits{created: map[string]time.Time{}}
	running.Go(func() { waits.watch(ctx, b, s) })
	running.Go(func() { s.arrive(ctx, b, waits) })
	time.Sleep(settling)
	waits.reset()
	tries, took := metric(gangAttempts), metric(durations)
	time.Sleep(measuring)
	reportWaits(b, waits.take())
	if tries = metric(gangAttempts) - tries; tries > 0 {
		b.ReportMetric(tries, "retries")
		b.ReportMetric(metric(`scheduler_coscheduling_attempts_total\{[^}]*result="late"\}`), "late")
		b.ReportMetric(1000*(metric(durations)-took)/tries, "retry-ms")
	}
}
