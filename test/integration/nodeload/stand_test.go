// SPDX-License-Identifier: Apache-2.0

// Package nodeload tests the plugin NodeLoad with a real Prometheus, which scrapes exporters that the test controls, on
// 200 fake nodes, and then with faults. It needs programs that were built before: make test TESTS=node-load.
package nodeload

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	// nodeCount is the number of nodes, of nodeCPU each.
	nodeCount = 200
	nodeCPU   = "32"
	// pressureSeries is a gauge of the exporters, unlike any series of node_exporter, for custom queries.
	pressureSeries = "node_test_pressure_ratio"
	// fallbacks counts the cycles without measurements.
	fallbacks = "scheduler_node_load_fallback_cycles_total"
)

// object is a part of a configuration.
type object map[string]any

// stand is a control plane with its nodes, whose exporters are scraped by a Prometheus.
type stand struct {
	*cluster.Cluster
	folder     string
	nodes      []string
	instances  map[string]string
	exporters  *exporters
	prometheus *cluster.Prometheus
	// lastPod numbers the pods.
	lastPod int
}

// The two tests run in parallel: that of faults takes as long as all others together.
var (
	shared         = cluster.Shared{Aggregation: true}
	sharedByFaults cluster.Shared
)

func TestMain(m *testing.M) { cluster.Main(m, &shared, &sharedByFaults) }

// TestPlacement tests NodeLoad without faults.
func TestPlacement(t *testing.T) {
	t.Parallel()
	t.Run("nodes have several scrape targets", severalTargets)
	t.Run("the configuration of the first week changes no placement", shadowed)
	t.Run("hot nodes get no pods with a real metrics-server", metricsServer)
	t.Run("when the leader dies the standby uses its own measurements", standby)
}

// target is an exporter as a scrape job of Prometheus sees it.
type target struct {
	exporter string
	labels   map[string]string
}

// newStand returns a stand of the default size whose nodes have an exporter each, as usual for node_exporter: the instance is
// the node's address and a port.
func newStand(t *testing.T, shared *cluster.Shared) *stand {
	t.Helper()
	nodes := newNodes(nodeCount)
	var targets []target
	for _, node := range nodes {
		targets = append(targets, target{node.Name, map[string]string{"instance": instance(node)}})
	}
	return newTargetsStand(t, shared, nodes, targets...)
}

// newTargetsStand returns a stand with nodes, and a Prometheus that scrapes targets.
func newTargetsStand(t *testing.T, shared *cluster.Shared, nodes []*corev1.Node, targets ...target) *stand {
	t.Helper()
	s := &stand{folder: t.TempDir(), instances: map[string]string{}, exporters: newExporters(t, targets), prometheus: cluster.NewPrometheus(t)}
	var configs []object
	for _, target := range targets {
		labels := maps.Clone(target.labels)
		labels["__metrics_path__"] = "/metrics/" + target.exporter
		configs = append(configs, object{"targets": []string{s.exporters.address()}, "labels": labels})
	}
	s.prometheus.Configure(t, object{
		"global": object{"scrape_interval": "1s", "scrape_timeout": "1s"},
		"scrape_configs": []object{{
			"job_name": "node", "static_configs": configs,
			// Exporters may set their own labels and timestamps.
			"honor_labels": true, "honor_timestamps": true,
		}},
	})
	s.prometheus.Start(t)
	s.Cluster = shared.Get(t)
	s.addNodes(t, nodes)
	return s
}

func (s *stand) addNodes(t *testing.T, nodes []*corev1.Node) {
	t.Helper()
	for _, node := range nodes {
		s.nodes, s.instances[node.Name] = append(s.nodes, node.Name), instance(node)
	}
	s.CreateNodes(t, nodes...)
}

func instance(node *corev1.Node) string {
	return net.JoinHostPort(node.Status.Addresses[0].Address, "9100")
}

func newNodes(count int) (nodes []*corev1.Node) {
	for i := range count {
		nodes = append(nodes, newNode(i))
	}
	return nodes
}

// newNode describes a node. Prometheus identifies it by its address, as with most exporters.
func newNode(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%03d", i+1)},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.%d.%d", i/100, i%100+1)}},
			Capacity:  cluster.Resources(nodeCPU, "64Gi", "250"),
		},
	}
}

func (s *stand) file(name string) string { return filepath.Join(s.folder, name) }

// write replaces a file atomically, as kubelet does with projected volumes.
func (s *stand) write(t *testing.T, name, content string) {
	t.Helper()
	cluster.Write(t, s.file(name+".new"), content)
	if err := os.Rename(s.file(name+".new"), s.file(name)); err != nil {
		t.Fatal(err)
	}
}

// args returns arguments of NodeLoad: the common ones here, with the test's changes.
func (s *stand) args(refresh, maxAge time.Duration, resources ...object) object {
	return object{
		"prometheus":      object{"endpoints": []string{s.prometheus.URL()}},
		"refreshInterval": refresh.String(), "maxSampleAge": maxAge.String(),
		"resources": resources,
	}
}

// builtIn returns a built-in resource with the shortest window and a threshold.
func builtIn(name string) object {
	return object{"name": name, "window": "10s", "threshold": 80, "weight": 1}
}

// pressure returns a custom resource that queries the raw series over a window, because a failed scrape ends it until
// the next one.
func pressure() object {
	const window = "10s"
	recent, at := "last_over_time("+pressureSeries+"["+window+"])", "timestamp("+pressureSeries+")"
	return object{
		"name": "pressure", "query": recent + " or " + pressureSeries, "timestampQuery": at + " or max_over_time(" + at + "[" + window + ":1s])",
		"unit": "Ratio", "window": window, "threshold": 80, "weight": 1,
	}
}

// profile returns a profile in which only NodeLoad scores the feasible nodes of a pod.
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

// configuration writes the configuration of a scheduler and returns its path.
func (s *stand) configuration(t *testing.T, name string, profiles ...object) string {
	t.Helper()
	content, err := yaml.Marshal(object{
		"apiVersion": "kubescheduler.config.k8s.io/v1beta3", "kind": "KubeSchedulerConfiguration",
		// All nodes are evaluated for each pod; by default half of them would be.
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
	t *testing.T, name, config string, options ...localcluster.SchedulerOptions,
) *localcluster.Scheduler {
	t.Helper()
	chosen := append(options, localcluster.SchedulerOptions{})[0]
	chosen.Name = name
	return s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), config, chosen)
}

// newPods describes pods with a CPU request and a profile.
func (s *stand) newPods(count int, profile, cpu string) []*corev1.Pod {
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		s.lastPod++
		pods[i] = localcluster.NewPod(fmt.Sprintf("pod-%04d", s.lastPod), profile)
		pods[i].Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	return pods
}

// place creates pods, waits until all are bound, and returns the number on each node.
func (s *stand) place(t *testing.T, pods []*corev1.Pod) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	placements, err := s.Place(ctx, pods...)
	if err != nil {
		t.Fatal(err)
	}
	on := map[string]int{}
	for _, placement := range placements {
		if err := placement.Err(); err != nil {
			t.Fatal(err)
		}
		on[placement.Node]++
	}
	return on
}

// await polls until a condition holds.
func (s *stand) await(t *testing.T, what string, condition func() error) {
	t.Helper()
	var logs []string
	if s.prometheus != nil {
		logs = []string{s.prometheus.LogFile()}
	}
	s.Await(t, what, condition, logs...)
}
