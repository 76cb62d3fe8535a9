// SPDX-License-Identifier: Apache-2.0

// Package badday runs a cluster with Kubernetes' controllers while spot nodes come and go, Deployments roll and jobs end.
package badday

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

var duration = flag.Duration("duration", 10*time.Minute, "how long the day is")

const (
	// onDemand and spot are the numbers of nodes; half of the spot nodes go at once.
	onDemand, spot = 120, 80
	// tick is the interval of the checks, and patience the number of checks in a row in which a pod is Pending and one
	// node has room for it, after which it should have been bound: longer than the longest back-off.
	tick, patience = 5 * time.Second, 5
)

var shared = cluster.Shared{KWOKConfig: cluster.PodStages("", "")}

func TestMain(m *testing.M) {
	flag.Parse()
	cluster.Main(m, &shared)
}

// day is the state of the checks.
type day struct {
	*cluster.Cluster
	pods  corelisters.PodLister
	nodes corelisters.NodeLister
	// late counts the checks in a row in which a node had room for a pending pod.
	late   map[place]int
	random *rand.Rand
	jobs   int
}

// place is a pending pod and a node.
type place struct {
	pod  types.UID
	node string
}

func TestBadDay(t *testing.T) {
	t.Chdir("../../..")
	d := &day{Cluster: shared.Get(t), late: map[place]int{}, random: rand.New(rand.NewPCG(1, 2))}
	d.addNodes(t, "on-demand", onDemand)
	d.addNodes(t, "spot", spot)
	d.startControllers(t)
	scheduler := d.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), d.configuration(t))
	// Some of the 220 pods that exclude each other on a node always wait.
	d.Create(t, `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}`+
		deployment("web", 120, "1", "")+deployment("api", 200, "1", "")+
		deployment("apart", 220, "100m", "workload-topology.scheduler/job: apart"))
	began, measured, steps := time.Now(), []cluster.Usage(nil), 0
	for time.Since(began) < *duration {
		next := time.Now().Add(tick)
		d.step(t, steps)
		steps++
		d.check(t)
		measured = append(measured, d.Usage(t, scheduler))
		time.Sleep(time.Until(next))
	}
	d.checkEvictions(t)
	// In the first quarter, caches fill.
	second, last := cluster.Least(measured[len(measured)/4:len(measured)/2]), cluster.Least(measured[len(measured)*3/4:])
	t.Logf("in the second and in the last quarter: %+v and %+v", second, last)
	if !last.Within(second, 1.3, 10<<20, 20, 20) {
		t.Errorf("it grows: from %+v to %+v", second, last)
	}
}

// addNodes creates nodes with 8 CPUs of a kind, with names that no earlier node had.
func (d *day) addNodes(t *testing.T, kind string, count int) {
	t.Helper()
	var nodes []*corev1.Node
	for range count {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%08x", kind, d.random.Uint32()), Labels: map[string]string{"capacity": kind},
		}})
	}
	d.CreateNodes(t, nodes...)
}

func (d *day) startControllers(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { d.Kubectl(t, context.Background(), "delete", "priorityclass", "high") })
	d.StartControllers(t, "deployment,replicaset,job,ttl-after-finished,nodelifecycle,podgc", "deployments,replicasets,jobs",
		"--kube-api-qps=200", "--kube-api-burst=400")
	factory := informers.NewSharedInformerFactory(d.Client(), 0)
	d.pods, d.nodes = factory.Core().V1().Pods().Lister(), factory.Core().V1().Nodes().Lister()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
}

// configuration writes one with a share of pods on spot nodes, groups with one pod on a node, and measured load.
func (d *day) configuration(t *testing.T) string {
	t.Helper()
	endpoint := "http://" + cluster.FreeAddress(t, "127.0.0.1")
	d.ServeLoads(t, endpoint)
	return cluster.WriteConfig(t, `clientConnection: {qps: 200, burst: 400}
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint:
        enabled: [{name: NodeFilter, weight: 20}, {name: WorkloadTopology}, {name: NodeLoad, weight: 5}]
    pluginConfig:
      - name: NodeFilter
        args:
          defaultAction: Allow
          rules:
            - {name: web-on-spot, action: Share, minPercent: 60, maxPercent: 80, whenUnsatisfiable: DoNotSchedule,
               nodeSelector: {matchLabels: {capacity: spot}}, podSelector: {matchLabels: {app: web}}}
      - name: WorkloadTopology
        args: {maxPerNode: 1}
      - name: NodeLoad
        args: {prometheus: {endpoints: ["`+endpoint+`"]}, resources: [{name: cpu}, {name: memory}]}
`)
}

// pod is a template of pods with the label app, annotations and a request for CPU; deployment and job have it.
const pod = `{metadata: {labels: {app: %s}, annotations: {%s}}, spec: {%s containers: [
  {name: pause, image: "registry.k8s.io/pause:3.6", resources: {requests: {cpu: %s, memory: 128Mi}}}]}}`

func deployment(app string, replicas int, cpu, annotations string) string {
	return fmt.Sprintf(`
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: %[2]d, selector: {matchLabels: {app: %[1]s}},
  template: %[3]s}}`, app, replicas, fmt.Sprintf(pod, app, annotations, "", cpu))
}

// run creates a Job with ten pods.
func (d *day) run(t *testing.T, kind, cpu, class string, last time.Duration) {
	t.Helper()
	d.jobs++
	d.Create(t, fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s-%d},
  spec: {parallelism: 10, completions: 10, ttlSecondsAfterFinished: 10, template: %s}}`, kind, d.jobs, fmt.Sprintf(pod, kind, fmt.Sprintf("%s: %s", cluster.Lasts, last), fmt.Sprintf("restartPolicy: Never, priorityClassName: %q,", class), cpu)))
}

// step does what is due: jobs all the time, a roll every minute, and half of the spot nodes go for one of two minutes.
func (d *day) step(t *testing.T, number int) {
	t.Helper()
	every := func(interval time.Duration, at time.Duration) bool {
		return time.Duration(number)*tick%interval == at
	}
	if every(10*time.Second, 0) {
		d.run(t, "job", "3", "", time.Duration(20+d.random.IntN(281))*time.Second)
	}
	if every(30*time.Second, 0) {
		d.run(t, "high", "4", "high", time.Minute)
	}
	if every(time.Minute, 0) {
		d.Kubectl(t, t.Context(), "rollout", "restart", "deployment/api")
	}
	if every(2*time.Minute, time.Minute) {
		nodes, err := d.nodes.List(labels.SelectorFromSet(labels.Set{"capacity": "spot"}))
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range nodes[:spot/2] {
			if err := d.Client().CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if number > 0 && every(2*time.Minute, 0) {
		d.addNodes(t, "spot", spot/2)
	}
}

// check fails the test if a pod stays Pending although a node has had room for it for long.
func (d *day) check(t *testing.T) {
	t.Helper()
	pods, err := d.pods.List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := d.nodes.List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	free, apart := map[string]int64{}, map[string]bool{}
	for _, node := range nodes {
		if localcluster.NodeReady(node) && len(node.Spec.Taints) == 0 && node.DeletionTimestamp == nil {
			free[node.Name] = node.Status.Allocatable.Cpu().MilliValue()
		}
	}
	pending, seen := 0, map[place]bool{}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded {
			free[pod.Spec.NodeName] -= cpuOf(pod)
			apart[pod.Spec.NodeName] = apart[pod.Spec.NodeName] || pod.Labels["app"] == "apart"
		}
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			continue
		}
		pending++
		for node, cpu := range free {
			if cpu < cpuOf(pod) || pod.Labels["app"] == "apart" && apart[node] {
				continue
			}
			at := place{pod.UID, node}
			seen[at] = true
			if d.late[at]++; d.late[at] == patience {
				t.Errorf("pod %s is Pending although node %s has room: %s", pod.Name, node, cluster.WhyPending(pod))
			}
		}
	}
	maps.DeleteFunc(d.late, func(at place, _ int) bool { return !seen[at] })
	t.Logf("%d nodes, %d pods, %d Pending; nodes have room in %d ways", len(nodes), len(pods), pending, len(seen))
}

func cpuOf(pod *corev1.Pod) int64 {
	return pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
}

// checkEvictions fails the test if a pod was evicted for one of no higher priority.
func (d *day) checkEvictions(t *testing.T) {
	t.Helper()
	events, err := d.Client().CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Preempted"})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		by := ""
		if event.Related != nil {
			by = event.Related.Name
		}
		if !strings.HasPrefix(by, "high-") || strings.HasPrefix(event.InvolvedObject.Name, "high-") {
			t.Errorf("%s: %s", event.InvolvedObject.Name, event.Message)
		}
	}
	t.Logf("%d pods were evicted", len(events.Items))
}
