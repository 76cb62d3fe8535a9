// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	nodeutil "k8s.io/component-helpers/node/util"

	"kube-scheduler-fork/build/localcluster/supervisor"
)

const (
	// nextKWOK is the next step when KWOK does not start.
	nextKWOK = "build it with: GOWORK=off go -C build/pins/kwok build -o FILE sigs.k8s.io/kwok/cmd/kwok"
	// fakeNode and fakeNodeValue are the annotation of the nodes that KWOK manages.
	fakeNode      = "kwok.x-k8s.io/node"
	fakeNodeValue = "fake"
	// DiskType is a node label for the examples, "ssd" or "hdd"; Kubernetes does not use it.
	DiskType = "disktype"
	// LoadAnnotation is the prefix of the annotations with which a fake node has measured load: with the suffix cpu or
	// memory, as a share of the node from 0 to 1. A pod with the suffix cpu adds its share to that of its node.
	LoadAnnotation = "load.kube-scheduler-run/"
	// metricsPath is the path of a node's metrics in KWOK.
	metricsPath = "/metrics/nodes/%s/node-exporter"
)

// loadMetrics has the metrics of node_exporter from which NodeLoad computes the load of CPU and memory. A counter of
// seconds is the time since 1970, times the share of it that counts; from the idle time, the sum over the time of the
// shares of the node's pods is subtracted, so that it stays a counter when pods come and go.
const loadMetrics = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Metric
metadata: {name: node-exporter}
spec:
  path: ` + "%s" + `
  metrics:
    - {name: node_time_seconds, kind: gauge, dimension: node, value: 'UnixSecond(Now())'}
    - name: node_cpu_seconds_total
      kind: counter
      dimension: node
      labels: [{name: cpu, value: '"0"'}, {name: mode, value: '"idle"'}]
      value: '(1.0 - %s) * UnixSecond(Now()) - node.CumulativeUsage("cpu")'
    - {name: node_memory_MemTotal_bytes, kind: gauge, dimension: node, value: '1e9'}
    - {name: node_memory_MemAvailable_bytes, kind: gauge, dimension: node, value: '(1.0 - %s) * 1e9'}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterResourceUsage
metadata: {name: load}
spec:
  usages:
    - usage:
        cpu: {expression: '%s'}
`

// loadOf returns the expression in CEL for a load of a node or a pod.
func loadOf(object, resource, without string) string {
	key, annotations := strconv.Quote(LoadAnnotation+resource), object+".metadata.annotations"
	return fmt.Sprintf("(%s in %s ? double(%[2]s[%[1]s]) : %[3]s)", key, annotations, without)
}

// startKWOK starts KWOK, which also serves the metrics of its nodes.
func (c *ControlPlane) startKWOK(ctx context.Context, executable, objects string) error {
	kubeconfig, err := c.writeKubeconfig("kwok.kubeconfig", "kwok", adminGroup)
	if err != nil {
		return err
	}
	config, err := c.write("kwok.yaml", []byte(fmt.Sprintf(loadMetrics, fmt.Sprintf(metricsPath, "{nodeName}"),
		loadOf("node", "cpu", "0.2"), loadOf("node", "memory", "0.2"), loadOf("pod", "cpu", "0.0"))+objects))
	if err != nil {
		return err
	}
	certificate, key, err := c.writeServerPair("kwok")
	if err != nil {
		return err
	}
	_, c.kwokPort, err = c.supervisor.Start(ctx, supervisor.Component{
		Name:        "kwok",
		Executable:  executable,
		Directory:   c.Folder(),
		Environment: c.environment,
		Next:        nextKWOK,
		Listens:     true,
		Ready:       "/healthz",
		Arguments: func(port int) []string {
			return []string{
				"--kubeconfig=" + kubeconfig,
				"--config=" + config,
				"--server-address=" + net.JoinHostPort(supervisor.Loopback, strconv.Itoa(port)),
				"--tls-cert-file=" + certificate,
				"--tls-private-key-file=" + key,
				"--manage-all-nodes=false",
				"--manage-nodes-with-annotation-selector=" + fakeNode + "=" + fakeNodeValue,
				// With leases, as of a kubelet, KWOK does not rewrite each node's status all the time.
				"--node-lease-duration-seconds=40",
				// The addresses of pods are fake. The address of the nodes is used for logs, and must be on
				// this machine.
				"--cidr=10.244.0.0/16",
				"--node-ip=" + supervisor.Loopback,
			}
		},
	})
	return err
}

// AddNodes creates fake nodes, node-1 and so on, waits until they are ready, and returns their names. They have 8 CPUs,
// 32 GiB and room for 110 pods, the zones zone-a, zone-b and zone-c in turn, and the disk types ssd and hdd in turn. The
// CPU of node-1 is hot, with a measured load of 90 %.
func (c *ControlPlane) AddNodes(ctx context.Context, count int) ([]string, error) {
	var nodes []*corev1.Node
	var names []string
	for number := range count {
		node := newNode(number)
		nodes = append(nodes, node)
		names = append(names, node.Name)
	}
	return names, c.CreateNodes(ctx, nodes...)
}

// CreateNodes creates fake nodes and waits until they are ready. Resources and the labels of a kubelet default to those
// of AddNodes; zone and disk type do not.
func (c *ControlPlane) CreateNodes(ctx context.Context, nodes ...*corev1.Node) error {
	waiting := sets.NewString()
	for _, node := range nodes {
		if _, err := c.client.CoreV1().Nodes().Create(ctx, completeNode(node), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot create the node %s: %w; next: correct it", node.Name, err)
		}
		waiting.Insert(node.Name)
	}
	if len(nodes) == 0 {
		return nil
	}
	list := cache.NewListWatchFromClient(c.client.CoreV1().RESTClient(), "nodes", "", fields.Everything())
	err := c.until(ctx, list, &corev1.Node{}, func(event watch.Event) (bool, error) {
		if node, ok := event.Object.(*corev1.Node); ok && NodeReady(node) {
			waiting.Delete(node.Name)
		}
		return waiting.Len() == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d nodes are not ready (%s is the first): %w",
			waiting.Len(), len(nodes), waiting.List()[0], err)
	}
	return nil
}

// newNode returns the fake node with a number, counted from 0.
func newNode(number int) *corev1.Node {
	diskType := "ssd"
	if number%2 == 1 {
		diskType = "hdd"
	}
	annotations := map[string]string{}
	if number == 0 {
		annotations[LoadAnnotation+"cpu"] = "0.9"
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        fmt.Sprintf("node-%d", number+1),
		Annotations: annotations,
		Labels: map[string]string{
			corev1.LabelTopologyZone: "zone-" + string(rune('a'+number%3)),
			DiskType:                 diskType,
		},
	}}
}

// completeNode returns a copy of a node as a fake node, with the defaults of CreateNodes.
func completeNode(node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, fakeNode, fakeNodeValue)
	for label, value := range map[string]string{
		corev1.LabelHostname:   node.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: runtime.GOARCH,
	} {
		if _, given := node.Labels[label]; !given {
			metav1.SetMetaDataLabel(&node.ObjectMeta, label, value)
		}
	}
	if node.Status.Allocatable == nil {
		node.Status.Allocatable = node.Status.Capacity
	}
	if node.Status.Allocatable == nil {
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("8"),
			corev1.ResourceMemory: resource.MustParse("32Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}
	}
	if node.Status.Capacity == nil {
		node.Status.Capacity = node.Status.Allocatable
	}
	return node
}

// NodeReady reports whether a node is ready.
func NodeReady(node *corev1.Node) bool {
	_, condition := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	return condition != nil && condition.Status == corev1.ConditionTrue
}
