// SPDX-License-Identifier: Apache-2.0

// Package soak starts schedulers in a large cluster, and then runs two of them for long while pods, nodes and gangs come
// and go: one with the default configuration, and one with records, NodeLoad and gangs.
package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

var (
	duration = flag.Duration("duration", 10*time.Minute, "how long pods come and go")
	nodes    = flag.Int("nodes", 500, "the number of nodes")
	starts   = flag.Int("starts", 1, "how often each scheduler is started")
)

const (
	root = "../../.."
	// podsPerNode are on each node from the beginning.
	podsPerNode = 30
	// arrivals and updates are the numbers of new pods and of changes of a node's status in a second, and lifetime is that
	// of the new pods. A kubelet reports a status that does not change every five minutes, so 5,000 nodes have 17 updates
	// in a second.
	arrivals, updates, lifetime = 20, 20, time.Minute
	// block is the number of new pods of which gang are a PodGroup, one is too large for any node, and with which an empty
	// node comes.
	block, gang = 100, 5
	groupLabel  = "pod-group.scheduling.sigs.k8s.io"
	podGroups   = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups"
	// patience is for a large cluster on a busy machine.
	patience = 15 * time.Minute
)

// everything is a configuration with profiles for measured load and for gangs; %q is Prometheus' URL.
const everything = `profiles:
  - schedulerName: load
    plugins: &plugins
      multiPoint: {enabled: [{name: NodeLoad, weight: 5}, {name: Coscheduling}]}
      queueSort: {disabled: [{name: PrioritySort}]}
    pluginConfig: &args
      - name: NodeLoad
        args: {prometheus: {endpoints: [%q]}, resources: [{name: cpu, threshold: 80}, {name: memory}]}
      - {name: Coscheduling, args: {permitWaitingTimeSeconds: 20}}
  - {schedulerName: gang, plugins: *plugins, pluginConfig: *args}
`

type stand struct {
	*cluster.Cluster
	client kubernetes.Interface
	// changing is held by what changes the cluster.
	changing sync.Mutex
	// arrived counts the pods that came.
	arrived atomic.Int64
}

func TestSoak(t *testing.T) {
	s := newStand(t)
	t.Run("start", s.start)
	t.Run("churn", s.churn)
}

// newStand starts a control plane without anything that acts on nodes and pods, and fills it.
func newStand(t *testing.T) *stand {
	t.Helper()
	plane, err := localcluster.Start(t.Context(), localcluster.Options{
		Etcd: cluster.Program(t, "ETCD"), KubeAPIServer: cluster.Program(t, "KUBE_APISERVER"), KWOK: cluster.Program(t, "KWOK"), Progress: os.Stdout,
		// On a busy machine, a list of all pods takes longer than the default, a minute.
		APIServerArguments: []string{"--request-timeout=10m"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &stand{Cluster: &cluster.Cluster{ControlPlane: plane}}
	s.CreateFrom(t, cluster.CRDs(t, root), root+"/manifests/rbac/coscheduling.yaml")
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	s.client = kubernetes.NewForConfigOrDie(config)

	began := time.Now()
	s.parallel(t, *nodes, func(i int) error { return s.createNode(t.Context(), newNode("node", i)) })
	s.parallel(t, *nodes*podsPerNode, func(i int) error {
		pod := newPod("old", i)
		pod.Spec.NodeName = fmt.Sprintf("node-%d", i%*nodes)
		return s.createPod(t.Context(), pod)
	})
	t.Logf("%d nodes and %d pods are created after %s", *nodes, *nodes*podsPerNode, time.Since(began))
	return s
}

// parallel does something count times, and fails the test at an error.
func (s *stand) parallel(t *testing.T, count int, do func(i int) error) {
	t.Helper()
	workqueue.ParallelizeUntil(t.Context(), 32, count, func(i int) {
		if err := do(i); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
}

func (s *stand) createNode(ctx context.Context, node *corev1.Node) error {
	_, err := s.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

func (s *stand) createPod(ctx context.Context, pod *corev1.Pod) error {
	_, err := s.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func (s *stand) deletePod(ctx context.Context, name string) error {
	return s.client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

// newNode describes a node in one of three zones, with a label that no other node has.
func newNode(kind string, i int) *corev1.Node {
	name := fmt.Sprintf("%s-%d", kind, i)
	resources := cluster.Resources("8", "32Gi", "110")
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), "serial": name,
		}},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

// newPod describes a pod with a label of its own, and with the app of nine others. Two of ten refer to their app in
// affinity terms, two in spread constraints.
func newPod(kind string, i int) *corev1.Pod {
	app := fmt.Sprintf("%s-%d", kind, i/10)
	pod := localcluster.NewPod(fmt.Sprintf("%s-%d", kind, i), corev1.DefaultSchedulerName)
	pod.Labels = map[string]string{"app": app, "job-name": pod.Name}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	apart := corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: corev1.LabelHostname}
	spread := corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector,
	}
	switch i % 10 {
	case 1:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{apart}}}
	case 2:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: apart}},
		}}
	case 3:
		spread.WhenUnsatisfiable = corev1.DoNotSchedule
		fallthrough
	case 4:
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread}
	}
	return pod
}

// run starts a scheduler with a part of a configuration.
func (s *stand) run(t *testing.T, program, name, config string, flags ...string) *localcluster.Scheduler {
	t.Helper()
	file := cluster.WriteConfig(t, "clientConnection: {qps: 1000, burst: 2000}\n"+config)
	return s.StartScheduler(t, cluster.Program(t, program), file, localcluster.SchedulerOptions{Name: name, Flags: flags})
}

// start measures the time from the start of a scheduler to its first binding, stock and ours alternating.
func (s *stand) start(t *testing.T) {
	for round := range *starts {
		for _, program := range []string{"STOCK_SCHEDULER", "KUBE_SCHEDULER"} {
			name := fmt.Sprintf("%s-%d", program, round)
			t.Run(name, func(t *testing.T) {
				pod := s.CreatePod(t, newPod("first", round))
				scheduler := s.run(t, program, name, "")
				cluster.AwaitFor(t, patience, "the pod to be bound", func() error {
					seen, err := s.Pod(t, pod.Namespace, pod.Name)
					return errors.Join(err, cluster.Unless(err != nil || seen.Spec.NodeName != "", "it is not"))
				})
				now, used := time.Now(), s.Usage(t, scheduler)
				t.Logf("it bound a pod %.1f s after its start, with %.1f s of CPU time; heap %.0f MB",
					float64(now.UnixMilli())/1000-used.Started, used.CPU, s.usage(t, scheduler, name).Heap/1e6)
				if err := s.deletePod(t.Context(), pod.Name); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// usage returns what a scheduler holds after a garbage collection, when it has tried all pods. It writes its heap profile
// to the directory RESULTS.
func (s *stand) usage(t *testing.T, scheduler *localcluster.Scheduler, name string) cluster.Usage {
	t.Helper()
	cluster.AwaitFor(t, patience, "an empty queue", func() error {
		pending := s.Usage(t, scheduler).Pending
		return cluster.Unless(pending == 0, "%v pods are in it", pending)
	})
	u, profile := s.UsageAfterCollection(t, scheduler, patience)
	cluster.Write(t, filepath.Join(os.Getenv("RESULTS"), "soak-"+name+".pprof"), string(profile))
	return u
}

// churn compares what two schedulers hold after five minutes, or half of the duration, and in the end.
func (s *stand) churn(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(serveLoads))
	defer prometheus.Close()
	schedulers := map[string]*localcluster.Scheduler{
		"default":    s.run(t, "KUBE_SCHEDULER", "default", "", "--record-pods=0"),
		"everything": s.run(t, "KUBE_SCHEDULER", "everything", fmt.Sprintf(everything, prometheus.URL)),
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { cluster.Every(ctx, arrivals, func(i int) { s.arrive(ctx, t, i) }) })
	running.Go(func() { cluster.Every(ctx, updates, func(i int) { s.update(ctx, t, i) }) })

	began, first := time.Now(), map[string]cluster.Usage{}
	for _, at := range []time.Duration{min(5*time.Minute, *duration/2), *duration} {
		time.Sleep(time.Until(began.Add(at)))
		rate := float64(s.arrived.Load()) / time.Since(began).Seconds()
		s.compare(t, at, schedulers, first)
		t.Logf("%.1f pods came in a second", rate)
		if at == *duration && rate < arrivals/2 {
			t.Errorf("the machine is too slow: %.1f pods came in a second, want %d", rate, arrivals)
		}
	}
}

// compare fails the test if a scheduler holds more than in the first call. Meanwhile nothing changes.
func (s *stand) compare(t *testing.T, at time.Duration, schedulers map[string]*localcluster.Scheduler, first map[string]cluster.Usage) {
	t.Helper()
	s.changing.Lock()
	defer s.changing.Unlock()
	for name, scheduler := range schedulers {
		now := s.usage(t, scheduler, fmt.Sprintf("%s-%s", name, at))
		t.Logf("%s after %s: heap %.1f MB, %.0f goroutines, %.0f files, %.0f s of CPU time", name, at, now.Heap/1e6, now.Goroutines, now.Files, now.CPU)
		before, known := first[name]
		if !known {
			first[name] = now
		} else if !now.Within(before, 1.05, 5e6, 20, 10) {
			t.Errorf("%s grows: from %+v to %+v; next: go tool pprof -diff_base with the profiles in %s", name, before, now, os.Getenv("RESULTS"))
		}
	}
}

// arrive creates a pod, and deletes the one whose lifetime is over.
func (s *stand) arrive(ctx context.Context, t *testing.T, i int) {
	s.changing.Lock()
	defer s.changing.Unlock()
	check := func(err error) {
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	over := i - arrivals*int(lifetime.Seconds())
	pod, number, past, groups := newPod("new", i), i/block, over/block, s.Client().CoreV1().RESTClient()
	if i%4 < 2 {
		pod.Spec.SchedulerName = "load"
	}
	switch in := i % block; {
	case in == 0:
		node := newNode("empty", number)
		node.Spec.Taints = []corev1.Taint{{Key: "empty", Effect: corev1.TaintEffectNoSchedule}}
		check(s.createNode(ctx, node))
		check(groups.Post().AbsPath(podGroups).SetHeader("Content-Type", "application/json").Body(fmt.Appendf(nil,
			`{"apiVersion":"scheduling.sigs.k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"gang-%d"},"spec":{"minMember":%d}}`, number, gang)).Do(ctx).Error())
		if past > 0 {
			check(s.client.CoreV1().Nodes().Delete(ctx, fmt.Sprint("empty-", past-1), metav1.DeleteOptions{}))
			check(groups.Delete().AbsPath(podGroups, fmt.Sprint("gang-", past-1)).Do(ctx).Error())
		}
	case in <= gang:
		pod.Labels[groupLabel], pod.Spec.SchedulerName = fmt.Sprint("gang-", number), "gang"
	case in == block/2:
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("9")
	}
	check(s.createPod(ctx, pod))
	s.arrived.Add(1)
	if over >= 0 {
		check(s.deletePod(ctx, fmt.Sprint("new-", over)))
	}
}

// update changes a node's status, with images that no node had before.
func (s *stand) update(ctx context.Context, t *testing.T, i int) {
	s.changing.Lock()
	defer s.changing.Unlock()
	now := metav1.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}],`+
		`"images":[{"names":["example.com/a:%d"],"sizeBytes":100000000},{"names":["example.com/b:%d"],"sizeBytes":100000000}]}}`, now, i, i)
	if _, err := s.client.CoreV1().Nodes().PatchStatus(ctx, fmt.Sprintf("node-%d", i%*nodes), []byte(patch)); err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

// term matches NodeLoad's names for the expressions in a query: a number, and v, t or d for value, time and deviation.
var term = regexp.MustCompile(`"nodeload_term", "([0-9]+)([vtd])"`)

// serveLoads answers NodeLoad's queries like Prometheus, with a load of 0.1 to 0.7.
func serveLoads(w http.ResponseWriter, r *http.Request) {
	now := float64(time.Now().UnixMilli()) / 1000
	fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[`)
	comma := ""
	for _, found := range term.FindAllStringSubmatch(r.FormValue("query"), -1) {
		for i := range *nodes {
			value := 0.1 * float64(1+i%7)
			if found[2] == "t" {
				value = now
			}
			fmt.Fprintf(w, `%s{"metric":{"instance":"node-%d","nodeload_term":%q},"value":[%.3f,"%.3f"]}`, comma, i, found[1]+found[2], now, value)
			comma = ","
		}
	}
	fmt.Fprint(w, `]}}`)
}
