// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// With -flood 5000 -qps 50, which is the scheduler's default, the log has the figures that are on the page.
var (
	floodSize = flag.Int("flood", 100, "number of pods of the flood")
	floodQPS  = flag.Int("qps", 10, "clientConnection.qps of the schedulers; burst is twice as much")
)

// flooded is a pod of one namespace that is created after many pods of another.
type flooded struct {
	name string
	// prepare applies the remedy, and may change the pods of the flood and the other pod.
	prepare func(t *testing.T, s *stand, flood, pod *corev1.Pod)
	// waitsIfUnfit and waitsIfFit report whether the pod waits for a flood that fits no node, and for one that fits.
	waitsIfUnfit, waitsIfFit bool
}

func TestTenantFloodsTheQueue(t *testing.T) {
	for _, test := range []flooded{
		{"nothing", func(*testing.T, *stand, *corev1.Pod, *corev1.Pod) {}, true, true},
		{"a profile of its own", func(_ *testing.T, _ *stand, _, pod *corev1.Pod) { pod.Spec.SchedulerName = "shop" }, true, true},
		{"a PriorityClass", func(t *testing.T, s *stand, _, pod *corev1.Pod) {
			s.apply(t, "priority.yaml")
			pod.Spec.PriorityClassName = "first"
		}, false, true},
		{"a quota", func(t *testing.T, s *stand, flood, _ *corev1.Pod) {
			s.apply(t, "quota.yaml")
			s.Await(t, "the quota to be counted", func() error {
				quota, err := s.Client().CoreV1().ResourceQuotas(flood.Namespace).Get(t.Context(), "pods", metav1.GetOptions{})
				return cluster.Unless(err == nil && len(quota.Status.Used) > 0, "it is not: %v", err)
			})
		}, false, false},
		{"a second scheduler", func(t *testing.T, s *stand, flood, _ *corev1.Pod) {
			flood.Spec.SchedulerName = "batch"
			s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), floodConfig(t, "batch"), localcluster.SchedulerOptions{Name: "batch"})
		}, false, false},
	} {
		t.Run(test.name+", pods that fit no node", func(t *testing.T) { test.run(t, "100", test.waitsIfUnfit) })
		t.Run(test.name+", pods that fit", func(t *testing.T) { test.run(t, "10m", test.waitsIfFit) })
	}
}

// run creates the flood, with a CPU request for each pod, and the other pod, and checks whether that pod is bound only
// after nearly all of the flood was tried.
func (f *flooded) run(t *testing.T, cpu string, waits bool) {
	s := newStand(t)
	for number := range *floodSize/100 + 1 {
		s.CreateNodes(t, newNode(fmt.Sprintf("node-%d", number), ""))
	}
	s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), floodConfig(t, corev1.DefaultSchedulerName, "shop"))
	s.Create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: batch}}")
	flood, pod := newPod("batch", "flood", ""), newPod(corev1.NamespaceDefault, "shop", "shop")
	flood.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	f.prepare(t, s, flood, pod)
	began, refused := time.Now(), 0
	for number := range *floodSize {
		flood.Name = fmt.Sprintf("flood-%d", number)
		_, err := s.Client().CoreV1().Pods(flood.Namespace).Create(t.Context(), flood, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: pods") {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the flood was created in %s; the API server refused %d", time.Since(began).Round(time.Second), refused)
	began = time.Now()
	s.AwaitBound(t, s.CreatePod(t, pod))
	took, tried := time.Since(began), s.tried(t, "flood")
	t.Logf("bound after %s; %d pods of the flood were tried before", took.Round(100*time.Millisecond), tried)
	if is := tried*10 >= *floodSize*9; is != waits {
		t.Errorf("%d of %d pods of the flood were tried before, want nearly all: %v", tried, *floodSize, waits)
	}
}

// tried returns the number of pods of an app that are bound, or that the scheduler has found no node for.
func (s *stand) tried(t *testing.T, app string) int {
	t.Helper()
	tried := 0
	for _, pod := range s.pods(t, app) {
		if pod.Spec.NodeName != "" || cluster.WhyPending(&pod) != "" {
			tried++
		}
	}
	return tried
}

// apply applies a file with the command on the page.
func (s *stand) apply(t *testing.T, name string) {
	t.Helper()
	if command := "kubectl apply -f " + examples + "flood/" + name; !strings.Contains(cluster.Read(t, page), "    "+command+"\n") {
		t.Fatalf("%s does not have the command %q", page, command)
	}
	s.Kubectl(t, t.Context(), "apply", "-f", examples+"flood/"+name)
}

// floodConfig writes the configuration of a scheduler with profiles, and returns its path.
func floodConfig(t *testing.T, profiles ...string) string {
	t.Helper()
	return cluster.WriteConfig(t, fmt.Sprintf("clientConnection: {qps: %d, burst: %d}\nprofiles:\n  - schedulerName: %s\n",
		*floodQPS, 2**floodQPS, strings.Join(profiles, "\n  - schedulerName: ")))
}
