package controlplane

import (
	"context"
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	// nextKWOK is what to do when KWOK does not run.
	nextKWOK = "build it with: GOWORK=off go -C build/tools/kwok build -o FILE sigs.k8s.io/kwok/cmd/kwok"
	// fakeNode and fakeNodeValue are the annotation of the nodes that KWOK plays the kubelet of.
	fakeNode      = "kwok.x-k8s.io/node"
	fakeNodeValue = "fake"
	// DiskType is a node label of no meaning to Kubernetes, for the examples to choose nodes by: "ssd" or "hdd".
	DiskType = "disktype"
)

// startKWOK starts KWOK. It comes up when it makes nodes ready, so AddNodes waits for it.
func (c *ControlPlane) startKWOK(ctx context.Context, executable string) error {
	kubeconfig, err := c.writeKubeconfig("kwok.kubeconfig", "kwok", adminGroup)
	if err != nil {
		return err
	}
	_, _, err = c.launch(ctx, component{
		name:        "kwok",
		executable:  executable,
		directory:   c.folder.path,
		environment: c.environment,
		next:        nextKWOK,
		args: func(int) []string {
			return []string{
				"--kubeconfig=" + kubeconfig,
				"--manage-all-nodes=false",
				"--manage-nodes-with-annotation-selector=" + fakeNode + "=" + fakeNodeValue,
				// Leases as a kubelet has them; else KWOK rewrites each node's status all the time.
				"--node-lease-duration-seconds=40",
				// The addresses of pods are invented; the one of the nodes is asked for logs, and must not lead off this machine.
				"--cidr=10.244.0.0/16",
				"--node-ip=" + loopback,
			}
		},
	})
	return err
}

// AddNodes makes fake nodes and waits until they are ready; it returns their names. They have 8 CPUs, 32 GiB and room
// for 110 pods; the zones zone-a, zone-b and zone-c take turns, and so do the disk types ssd and hdd.
func (c *ControlPlane) AddNodes(ctx context.Context, count int) ([]string, error) {
	var names []string
	for range count {
		node := newNode(c.nodes)
		if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("cannot create the node %s: %w", node.Name, err)
		}
		c.nodes++
		names = append(names, node.Name)
	}
	if count == 0 {
		return nil, nil
	}
	waiting := sets.NewString(names...)
	list := cache.NewListWatchFromClient(c.client.CoreV1().RESTClient(), "nodes", "", fields.Everything())
	err := c.until(ctx, list, &corev1.Node{}, func(event watch.Event) (bool, error) {
		if node, ok := event.Object.(*corev1.Node); ok && nodeReady(node) {
			waiting.Delete(node.Name)
		}
		return waiting.Len() == 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("kwok does not make %d of %d nodes ready (%s the first): %w",
			waiting.Len(), count, waiting.List()[0], err)
	}
	return names, nil
}

// newNode describes the fake node with a number, counted from 0.
func newNode(number int) *corev1.Node {
	name := fmt.Sprintf("node-%d", number+1)
	diskType := "ssd"
	if number%2 == 1 {
		diskType = "hdd"
	}
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{fakeNode: fakeNodeValue},
			Labels: map[string]string{
				corev1.LabelHostname:     name,
				corev1.LabelOSStable:     "linux",
				corev1.LabelArchStable:   runtime.GOARCH,
				corev1.LabelTopologyZone: "zone-" + string(rune('a'+number%3)),
				DiskType:                 diskType,
			},
		},
		Status: corev1.NodeStatus{Allocatable: resources, Capacity: resources},
	}
}

func nodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
