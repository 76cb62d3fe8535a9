// SPDX-License-Identifier: Apache-2.0

// Package overcommit tests the plugin Overcommit with a real Prometheus that has a history, and on a local control plane.
// It needs programs that were built before, so it has its own make target.
package overcommit

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	millicpu = corev1.ResourceName("overcommit.scheduler/millicpu")
	// nodes is the number of nodes of 8 cores. A tenth is headroom, and one core is used, so most is the number of pods
	// that fit one of them if each asks for asked.
	nodes, asked, most = 15, 300, 20
	// steadyNodes is the number of nodes that are measured for an hour.
	steadyNodes = nodes - 2
)

// rejected is the text of a pod that fits no node.
var rejected = fmt.Sprintf("0/%d nodes are available: %d node(s) had too little unused CPU, 2 node(s) had no recent measurement of CPU use.", nodes, steadyNodes)

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// configuration writes a configuration with some args of Overcommit, in which NodeLoad has args too unless they are
// empty, and returns its path.
func configuration(t *testing.T, kubeconfig, prometheus, args, nodeLoad string) string {
	t.Helper()
	file, more := filepath.Join(t.TempDir(), "overcommit.yaml"), ""
	if nodeLoad != "" {
		nodeLoad = fmt.Sprintf("\n      - {name: NodeLoad, args: {prometheus: {endpoints: [%q]}, %s}}", prometheus, nodeLoad)
		more = ", {name: NodeLoad}"
	}
	cluster.Write(t, file, fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
profiles:
  - schedulerName: default-scheduler
    plugins: {multiPoint: {enabled: [{name: Overcommit}%s]}}
    pluginConfig:
      - {name: Overcommit, args: {prometheus: {endpoints: [%q]}, %s}}
      - {name: NodeResourcesFit, args: {ignoredResourceGroups: [overcommit.scheduler]}}%s
`, kubeconfig, more, prometheus, args, nodeLoad))
	return file
}

// stand is a control plane with nodes of 8 cores. One core is used on each for more than an hour, except on worker-0,
// which is measured since a minute, and on worker-1, whose address is that of another cluster's node, too.
type stand struct {
	*cluster.Cluster
	prometheus *cluster.Prometheus
	proxy      *proxy
	config     string
	scheduler  *localcluster.Scheduler
}

func TestOvercommit(t *testing.T) {
	s, at, out := &stand{Cluster: shared.Get(t)}, origin(), &strings.Builder{}
	for i := range nodes {
		m := machine{[][]cgroup{podCgroups("idle", steady(0), -past, future)}, []string{fmt.Sprintf(`instance="10.0.0.%d:10250"`, i+4)}, -past}
		switch i {
		case 0:
			m.pods, m.from = nil, -60
		case 1:
			(&machine{nil, []string{`cluster="other",` + m.targets[0]}, -past}).write(out, at, 3)
		}
		m.write(out, at, 1)
	}
	s.prometheus = cluster.NewPrometheus(t)
	s.prometheus.StartWith(t, out.String())
	s.Create(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: important}, value: 1000}")
	for i := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%d", i)}}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i+4)}}
		s.CreateNodes(t, node)
	}
	s.proxy = newProxy(t, s.prometheus.URL())
	s.config = configuration(t, "", s.proxy.URL, "refreshInterval: 1s, maxSampleAge: 40s", "refreshInterval: 1s, resources: [{name: cpu}]")
	s.scheduler = s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), s.config)
	s.awaitStates(t, map[string]int{"open": steadyNodes, "unmeasured": 2})
	t.Run("NodeLoad asks in the same requests", s.together)
	t.Run("a thousand pods at once", s.thousand)
	s.restart(t)
	t.Run("preemption", s.preemption)
	t.Run("a quota", s.quota)
	t.Run("Prometheus stops", s.stops)
}

// together checks that both plugins share a collector: it sends one query of NodeLoad and three of Overcommit in each
// refresh, and numbers them.
func (s *stand) together(t *testing.T) {
	s.Await(t, "a few refreshes", func() error {
		sent := s.proxy.queries()
		for number := range 4 {
			found := 0
			for query, count := range sent {
				if count >= 3 && strings.Contains(query, fmt.Sprintf(`"nodeload_term", "%dv"`, number)) {
					found++
				}
			}
			if found != 1 || len(sent) != 4 {
				return fmt.Errorf("of %d queries, %d with the number %d were sent three times, want one of four", len(sent), found, number)
			}
		}
		return nil
	})
}

// pod describes an overcommitting pod.
func pod(name string, asked int64) *corev1.Pod {
	pod := localcluster.NewPod(name, corev1.DefaultSchedulerName)
	amount, of := *resource.NewQuantity(asked, resource.DecimalSI), &pod.Spec.Containers[0].Resources
	of.Limits = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(asked, resource.DecimalSI), millicpu: amount}
	of.Requests[corev1.ResourceCPU], of.Requests[millicpu] = resource.MustParse("0"), amount
	return pod
}

// thousand creates a thousand pods beside an ordinary pod on each node. As many are bound as the bounds allow.
func (s *stand) thousand(t *testing.T) {
	pods := make([]*corev1.Pod, 1000)
	for i := range pods {
		pods[i] = pod(fmt.Sprintf("pod-%04d", i), asked)
	}
	for i := range nodes {
		ordinary := localcluster.NewPod(fmt.Sprintf("ordinary-%d", i), corev1.DefaultSchedulerName)
		ordinary.Spec.NodeName = fmt.Sprintf("worker-%d", i)
		s.CreatePod(t, ordinary)
	}
	placements, err := s.Place(t.Context(), pods...)
	if err != nil {
		t.Fatal(err)
	}
	on := map[string]int{} // and how many have a text instead
	for _, placement := range placements {
		on[placement.Node+placement.Message]++
	}
	for i := 2; i < nodes; i++ {
		if name := fmt.Sprintf("worker-%d", i); on[name] != most {
			t.Errorf("%s has %d pods, want %d", name, on[name], most)
		}
	}
	if want := len(pods) - most*steadyNodes; on[rejected] != want {
		t.Errorf("%d pods are rejected with %q, want %d: %v", on[rejected], rejected, want, on)
	}
	s.deletePods(t, "spec.nodeName=")
}

// restart checks that another scheduler counts each pod once: the nodes are still full.
func (s *stand) restart(t *testing.T) {
	before := s.page(t)
	if err := s.scheduler.Stop(); err != nil {
		t.Fatal(err)
	}
	s.scheduler = s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), s.config)
	s.awaitStates(t, map[string]int{"open": steadyNodes, "unmeasured": 2})
	for i, after := range s.page(t) {
		if want := int64(most * asked); after.UsedMilliCPU != before[i].UsedMilliCPU || after.State == "open" && (after.UsedMilliCPU != want ||
			after.UsableMilliCPU != after.AllocatableMilliCPU-after.PeakMilliCPU-want) {
			t.Errorf("the node is %+v, and was %+v", after, before[i])
		}
	}
	s.CreatePod(t, pod("more", asked))
	s.AwaitPending(t, corev1.NamespaceDefault, "more", rejected)
	s.deletePods(t, "metadata.name=more")
}

// preemption checks that an important pod evicts one overcommitting pod, and that none is evicted if that does not help.
func (s *stand) preemption(t *testing.T) {
	large, urgent := pod("large", 7000), pod("urgent", asked)
	for _, pod := range []*corev1.Pod{large, urgent} {
		pod.Spec.PriorityClassName = "important"
		s.CreatePod(t, pod)
	}
	s.AwaitBound(t, urgent)
	s.AwaitPending(t, corev1.NamespaceDefault, "large", rejected)
	pods, err := s.Client().CoreV1().Pods(corev1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]int{}
	for _, pod := range pods.Items {
		if kind, _, _ := strings.Cut(pod.Name, "-"); pod.DeletionTimestamp == nil {
			left[kind]++
		}
	}
	if left["ordinary"] != nodes || left["pod"] != most*steadyNodes-1 {
		t.Errorf("%v pods are left, want all %d ordinary ones, and one less of %d overcommitting ones", left, nodes, most*steadyNodes)
	}
	s.deletePods(t, "metadata.name=large")
}

// quota checks that a ResourceQuota limits what a namespace's pods ask for.
func (s *stand) quota(t *testing.T) {
	client, of := s.Client().CoreV1(), corev1.ResourceName("requests."+millicpu)
	s.Create(t, fmt.Sprintf(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: overcommit, namespace: team}, spec: {hard: {%s: "%d"}}}`, of, asked))
	// There is no controller manager, which computes this.
	_, err := client.ResourceQuotas("team").Patch(t.Context(), "overcommit", types.MergePatchType,
		fmt.Appendf(nil, `{"status":{"hard":{%q:"%d"},"used":{%[1]q:"0"}}}`, of, asked), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) error {
		pod := pod(name, asked)
		pod.Namespace = "team"
		_, err := client.Pods("team").Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	}
	s.Await(t, "the API server to know the quota", func() error { return create("within") })
	if err := create("above"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fmt.Sprintf("exceeded quota: overcommit, requested: %s=%d", of, asked)) {
		t.Errorf("the pod above the quota: %v", err)
	}
}

// stops checks that without measurements no node takes a pod, and that what runs stays.
func (s *stand) stops(t *testing.T) {
	s.prometheus.Kill()
	s.awaitStates(t, map[string]int{"unmeasured": nodes})
	s.deletePods(t, "metadata.name=urgent")
	s.CreatePod(t, pod("unlucky", asked))
	s.AwaitPending(t, corev1.NamespaceDefault, "unlucky", fmt.Sprintf("0/%d nodes are available: %[1]d node(s) had no recent measurement of CPU use.", nodes))
	sum := int64(0)
	for _, node := range s.page(t) {
		sum += node.UsedMilliCPU
	}
	if sum != (most*steadyNodes-1)*asked {
		t.Errorf("overcommitting pods ask for %d on all nodes, want %d", sum, (most*steadyNodes-1)*asked)
	}
}

// deletePods deletes the pods that a field selector matches.
func (s *stand) deletePods(t *testing.T, selector string) {
	t.Helper()
	if err := s.Client().CoreV1().Pods(corev1.NamespaceDefault).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)},
		metav1.ListOptions{FieldSelector: selector}); err != nil {
		t.Fatal(err)
	}
}

// node is a node of the page.
type node struct {
	State                                                           string
	AllocatableMilliCPU, PeakMilliCPU, UsedMilliCPU, UsableMilliCPU int64
}

// page returns the nodes of the page, in the order of their names.
func (s *stand) page(t *testing.T) []node {
	t.Helper()
	content, err := s.Get(t.Context(), s.scheduler.URL()+"/overcommit")
	if err != nil {
		t.Fatal(err)
	}
	var page struct{ Profiles []struct{ Nodes []node } }
	if err := json.Unmarshal(content, &page); err != nil {
		t.Fatal(err)
	}
	return page.Profiles[0].Nodes
}

// awaitStates waits until the page and the metrics have these numbers of nodes, and none in other states.
func (s *stand) awaitStates(t *testing.T, want map[string]int) {
	t.Helper()
	s.Await(t, fmt.Sprintf("nodes in the states %v", want), func() error {
		got := map[string]int{}
		for _, node := range s.page(t) {
			got[node.State]++
		}
		metrics, err := s.Get(t.Context(), s.scheduler.URL()+"/metrics")
		for _, state := range []string{"open", "full", "exceeded", "unmeasured"} {
			metric := fmt.Sprintf("scheduler_overcommit_nodes{profile=\"default-scheduler\",state=%q} %d\n", state, want[state])
			if err != nil || got[state] != want[state] || !strings.Contains(string(metrics), metric) {
				return fmt.Errorf("the page has %v, or the metrics have no line %s: %v", got, metric, err)
			}
		}
		return nil
	}, s.prometheus.LogFile())
}
