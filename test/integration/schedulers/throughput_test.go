// SPDX-License-Identifier: Apache-2.0

package schedulers

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	measuredNodes = 1000
	measuredPods  = 3000
	// creators create pods at the same time.
	creators = 8
	// clockTicks are the units of /proc/PID/stat in a second.
	clockTicks = 100
)

// BenchmarkThroughput measures how many pods one, two and three schedulers of the program KUBE_SCHEDULER bind in a second,
// from the creation of the first pod until all are bound, with and without a pool of nodes for each: make bench
// NAME=schedulers. Each scheduler has the same client limit, qps; 50 is the default.
func BenchmarkThroughput(b *testing.B) {
	for _, qps := range []int{50, 1000} {
		for schedulers := 1; schedulers <= 3; schedulers++ {
			for _, pools := range []string{"no", "yes"} {
				if schedulers > 1 || pools == "no" {
					b.Run(fmt.Sprintf("qps=%d/schedulers=%d/pools=%s", qps, schedulers, pools), func(b *testing.B) {
						measure(b, qps, schedulers, pools == "yes")
					})
				}
			}
		}
	}
}

func measure(b *testing.B, qps, count int, pools bool) {
	s := &stand{Cluster: shared.Get(b)}
	var nodes []*corev1.Node
	for i := range measuredNodes {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{"pool": strconv.Itoa(i % count)},
		}})
	}
	s.CreateNodes(b, nodes...)
	var processes []string
	for i := range count {
		profile := "\n"
		if pools {
			profile = strings.Replace(stockPool, "[stock]", fmt.Sprintf(`["%d"]`, i), 1)
		}
		name := fmt.Sprintf("scheduler-%d", i)
		config := cluster.WriteConfig(b, fmt.Sprintf("clientConnection: {qps: %d, burst: %d}\nprofiles:\n  - schedulerName: %s%s", qps, 2*qps, name, profile))
		s.StartScheduler(b, cluster.Program(b, "KUBE_SCHEDULER"), config, localcluster.SchedulerOptions{Name: name})
		processes = append(processes, name)
	}

	pods := s.Client().CoreV1().Pods(metav1.NamespaceDefault)
	changes, err := pods.Watch(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer changes.Stop()
	began, schedulers, servers := time.Now(), s.processorTime(b, processes...), s.processorTime(b, "kube-apiserver", "etcd")
	go workqueue.ParallelizeUntil(b.Context(), creators, measuredPods, func(i int) {
		pod := localcluster.NewPod(fmt.Sprintf("pod-%d", i), fmt.Sprintf("scheduler-%d", i%count))
		if _, err := pods.Create(b.Context(), pod, metav1.CreateOptions{}); err != nil {
			b.Error(err)
		}
	})
	awaitBound(b, changes)
	took := time.Since(began)
	share := func(before time.Duration, names ...string) float64 {
		return 100 * (s.processorTime(b, names...) - before).Seconds() / took.Seconds()
	}
	b.ReportMetric(measuredPods/took.Seconds(), "pods/s")
	b.ReportMetric(share(servers, "kube-apiserver", "etcd"), "servers-%")
	b.ReportMetric(share(schedulers, processes...), "schedulers-%")
	overfull := 0
	for node, pods := range s.nodesOfPods(b) {
		// A pod requests 0.1 of a node's 8 CPUs, and a node takes 110 pods.
		if pods > 80 {
			b.Logf("%s has %d pods", node, pods)
			overfull++
		}
	}
	b.ReportMetric(float64(overfull), "overcommitted-nodes")
}

// awaitBound waits until a watch has seen all pods bound.
func awaitBound(b *testing.B, changes watch.Interface) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	bound := map[string]bool{}
	for len(bound) < measuredPods {
		select {
		case change, open := <-changes.ResultChan():
			pod, is := change.Object.(*corev1.Pod)
			if !open || !is {
				b.Fatalf("the watch ended: %+v", change.Object)
			}
			if pod.Spec.NodeName != "" {
				bound[pod.Name] = true
			}
		case <-ctx.Done():
			b.Fatalf("only %d of %d pods are bound", len(bound), measuredPods)
		}
	}
}

// nodesOfPods returns the number of pods on each node.
func (s *stand) nodesOfPods(b *testing.B) map[string]int {
	b.Helper()
	list, err := s.Client().CoreV1().Pods(metav1.NamespaceDefault).List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	count := map[string]int{}
	for _, pod := range list.Items {
		count[pod.Spec.NodeName]++
	}
	return count
}

// processorTime returns the processor time that programs of the control plane have used.
func (s *stand) processorTime(b *testing.B, names ...string) time.Duration {
	b.Helper()
	total := time.Duration(0)
	for _, name := range names {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Processes()[name]))
		if err != nil {
			b.Fatal(err)
		}
		// The fields after the name, which may contain blanks: utime and stime are the 12th and the 13th.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.Atoi(field)
			if err != nil {
				b.Fatal(err)
			}
			total += time.Duration(ticks) * time.Second / clockTicks
		}
	}
	return total
}
