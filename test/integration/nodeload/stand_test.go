// SPDX-License-Identifier: Apache-2.0

// Package endtoend has the plugin NodeLoad look at a real Prometheus, which scrapes exporters that the test controls, and place
// pods on 200 fake nodes by what it sees there; then everything goes wrong that can. It needs programs that were built before,
// and one that was downloaded, so it is run by its own make target.
package endtoend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/testinput"
)

const (
	// nodeCount is how many nodes there are, of nodeCPU each.
	nodeCount = 200
	nodeCPU   = "32"
	// pressureSeries is a gauge of the exporters that is like no series of node_exporter: what somebody's own query is about.
	pressureSeries = "node_test_pressure_ratio"
	// patience is how long anything may take: many times what it takes on a slow, busy machine.
	patience = 2 * time.Minute
	// poll is the time between two looks at something that is waited for.
	poll = 100 * time.Millisecond
	// firstToken is the bearer token that the proxy asks for at first.
	firstToken = "the-first-token"
)

// object is a part of a configuration.
type object map[string]any

// stand is a control plane with its nodes, whose exporters are scraped by a Prometheus that is reached by the proxy only.
type stand struct {
	plane      *localcluster.ControlPlane
	folder     string
	nodes      []string
	instances  map[string]string
	exporters  *exporters
	prometheus *prometheus
	proxy      *proxy
	// logs are those of the schedulers that were started.
	logs []string
	// lastPod numbers the pods.
	lastPod int
}

func newStand(t *testing.T) *stand {
	t.Helper()
	var nodes []*corev1.Node
	for i := range nodeCount {
		nodes = append(nodes, newNode(i))
	}
	s := newMeasuredStand(t, nodes)
	var err error
	s.plane, err = localcluster.Start(t.Context(), localcluster.Options{
		Etcd: testinput.File(t, "ETCD"), KubeAPIServer: testinput.File(t, "KUBE_APISERVER"), KWOK: testinput.File(t, "KWOK"),
		Parent: s.folder, Progress: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := s.plane.CreateNodes(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
	return s
}

// newNode describes a node. It is known to Prometheus by its address, as with most exporters.
func newNode(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%03d", i+1)},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.%d.%d", i/100, i%100+1)}},
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse(nodeCPU),
				corev1.ResourceMemory: resource.MustParse("64Gi"),
				corev1.ResourcePods:   resource.MustParse("250"),
			},
		},
	}
}

// newMeasuredStand gives a stand with exporters for some nodes, Prometheus and the proxy, and without a control plane.
func newMeasuredStand(t *testing.T, nodes []*corev1.Node) *stand {
	t.Helper()
	s := &stand{folder: t.TempDir(), instances: map[string]string{}}
	for _, node := range nodes {
		s.nodes = append(s.nodes, node.Name)
		s.instances[node.Name] = node.Status.Addresses[0].Address + ":9100"
	}
	s.exporters = newExporters(t, s.instances)
	s.prometheus = newPrometheus(t, s.exporters)
	var trusted []byte
	s.proxy, trusted = newProxy(t, s.prometheus.url(), firstToken)
	s.write(t, "ca.crt", string(trusted))
	s.write(t, "token", firstToken)
	return s
}

func (s *stand) file(name string) string { return filepath.Join(s.folder, name) }

// write puts a file in its place at once, as a kubelet does with what it projects.
func (s *stand) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(s.file(name+".new"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.file(name+".new"), s.file(name)); err != nil {
		t.Fatal(err)
	}
}

// args gives the arguments of NodeLoad: what all here have in common, changed by the test.
func (s *stand) args(refresh, maxAge time.Duration, resources ...object) object {
	return object{
		"prometheus": object{
			"endpoints": []string{s.proxy.url()},
			"tls":       object{"caFile": s.file("ca.crt")}, "bearerTokenFile": s.file("token"),
		},
		"refreshInterval": refresh.String(), "maxSampleAge": maxAge.String(),
		"nodeMatch": object{"label": "instance", "by": "InternalIP"},
		"resources": resources,
	}
}

// builtIn is a built-in resource over the shortest window there is, with a threshold.
func builtIn(name string) object {
	return object{"name": name, "window": "10s", "threshold": 80, "weight": 1}
}

// cpuThatStays is told to the scheduler to be the CPU, over a time in which new pods hardly show. It is a gauge: it does
// not vary as a rate does.
func cpuThatStays(window time.Duration) object {
	cpu := pressure()
	cpu["name"], cpu["window"] = "cpu", window.String()
	return cpu
}

// pressure is a resource that is nobody's but ours, by the raw series. A scrape that fails ends a raw series until the next one,
// so it is looked for in some seconds, too.
func pressure() object {
	const recent, at = "last_over_time(" + pressureSeries + "[10s])", "timestamp(" + pressureSeries + ")"
	return object{
		"name": "pressure", "query": recent + " or " + pressureSeries, "timestampQuery": at + " or max_over_time(" + at + "[10s:1s])",
		"unit": "Ratio", "window": "10s", "threshold": 80, "weight": 1,
	}
}

// profile is a profile in which nothing but NodeLoad chooses among the nodes that a pod fits on.
func profile(name string, args object) object {
	return object{
		"schedulerName": name,
		"plugins": object{
			"multiPoint": object{"enabled": []object{{"name": "NodeLoad"}}},
			"score":      object{"disabled": []object{{"name": "*"}}, "enabled": []object{{"name": "NodeLoad"}}},
		},
		"pluginConfig": []object{{"name": "NodeLoad", "args": args}},
	}
}

// configuration writes the configuration of a scheduler and gives its path.
func (s *stand) configuration(t *testing.T, name string, profiles ...object) string {
	t.Helper()
	content, err := yaml.Marshal(object{
		"apiVersion": "kubescheduler.config.k8s.io/v1beta3", "kind": "KubeSchedulerConfiguration",
		// All nodes are looked at for each pod; else half of them would be.
		"percentageOfNodesToScore": 100,
		"profiles":                 profiles,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, name+"-config.yaml", string(content))
	return s.file(name + "-config.yaml")
}

// startScheduler starts a scheduler with a configuration.
func (s *stand) startScheduler(
	t *testing.T, name, config string, options ...localcluster.SchedulerOption,
) *localcluster.Scheduler {
	t.Helper()
	scheduler, err := s.plane.StartScheduler(t.Context(), testinput.File(t, "KUBE_SCHEDULER"), config,
		append(options, localcluster.WithName(name))...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.logs, scheduler.LogFile()) {
		s.logs = append(s.logs, scheduler.LogFile())
	}
	return scheduler
}

// newPods describes pods that request so much CPU and ask for a profile.
func (s *stand) newPods(count int, profile, cpu string) []*corev1.Pod {
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		s.lastPod++
		pods[i] = localcluster.NewPod(fmt.Sprintf("pod-%04d", s.lastPod), profile)
		pods[i].Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	return pods
}

// place creates pods and gives for each node how many of them were bound to it, once all are.
func (s *stand) place(t *testing.T, pods []*corev1.Pod) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	placements, err := s.plane.Place(ctx, pods...)
	if err != nil {
		t.Fatal(err)
	}
	on := map[string]int{}
	for _, placement := range placements {
		if err := placement.Err(); err != nil {
			t.Fatalf("%v\n%s", err, s.ends())
		}
		on[placement.Node]++
	}
	return on
}

// pods gives the pods that there are, by name.
func (s *stand) pods(t *testing.T) map[string]corev1.Pod {
	t.Helper()
	list, err := s.plane.Client().CoreV1().Pods(corev1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Name] = pod
	}
	return pods
}

// await asks until a condition holds. What it answers, or the error, says in the end what was missing.
func (s *stand) await(t *testing.T, what string, condition func() (missing string, err error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var missing string
	var lastErr error
	err := wait.PollImmediateUntilWithContext(ctx, poll, func(context.Context) (bool, error) {
		if s.plane != nil && s.plane.Failure() != nil {
			return false, s.plane.Failure()
		}
		missing, lastErr = condition()
		return missing == "" && lastErr == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v; missing: %s; the last error: %v; next: look into the ends of the logs:\n%s",
			what, err, missing, lastErr, s.ends())
	}
}

// ends gives the ends of all logs, which are removed with the folders they are in.
func (s *stand) ends() string {
	var all []string
	for _, file := range append(s.logs, s.prometheus.file("log")) {
		all = append(all, endOf(file))
	}
	return strings.Join(all, "\n")
}
