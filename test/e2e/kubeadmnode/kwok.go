// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"kube-scheduler-fork/build/localcluster"
)

// FakeNode is the key of the annotation, the label and the taint of nodes
// simulated by KWOK. Only pods that tolerate the taint are placed there.
const FakeNode = "kwok.x-k8s.io/node"

// fakeNodeValue is the value of that annotation.
const fakeNodeValue = "fake"

// FakeNodes adds nodes that exist only in the API, "fake-000" and so on, and waits until they are ready. KWOK simulates
// their kubelets; it runs in the hub and uses this node's API server.
func (n *Node) FakeNodes(ctx context.Context, count int) error {
	if err := n.startKWOK(); err != nil {
		return err
	}
	client, err := n.Client()
	if err != nil {
		return err
	}
	selector := metav1.ListOptions{LabelSelector: FakeNode + "=" + fakeNodeValue}
	before, err := client.CoreV1().Nodes().List(ctx, selector)
	if err != nil {
		return err
	}
	wanted := len(before.Items) + count
	for number := len(before.Items); number < wanted; number++ {
		if _, err := client.CoreV1().Nodes().Create(ctx, newFakeNode(number), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("a fake node cannot be created: %w; next: see %s", err, n.logs)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyDeadline, fmt.Errorf("not after %s", readyDeadline))
	defer cancel()
	ready := 0
	err = wait.PollImmediateUntilWithContext(ctx, pollInterval, func(ctx context.Context) (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, selector)
		if err != nil {
			return false, nil
		}
		ready = 0
		for _, node := range nodes.Items {
			if localcluster.NodeReady(&node) {
				ready++
			}
		}
		return ready == wanted, nil
	})
	if err != nil {
		return fmt.Errorf("only %d of %d fake nodes are ready: %w\n%snext: see %s",
			ready, wanted, context.Cause(ctx), n.LogTail("kwok"), n.logs)
	}
	return nil
}

// startKWOK starts KWOK if it is not running.
func (n *Node) startKWOK() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.stopKWOK != nil {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(n.logs, "kwok.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	kwok := exec.Command(filepath.Join(n.hub.programs, "kwok"),
		"--kubeconfig="+fmt.Sprintf("/proc/%d/root/etc/kubernetes/admin.conf", n.first.Process.Pid),
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector="+FakeNode+"="+fakeNodeValue,
		// With leases, like a kubelet, KWOK does not constantly rewrite each node's status.
		"--node-lease-duration-seconds=40",
		// No real pod has an address in this range.
		"--cidr=10.99.0.0/16",
		"--node-ip="+hubAddress,
	)
	// KWOK must not read the user's configuration in the home directory.
	kwok.Env = []string{"HOME=" + n.folder}
	kwok.Dir = n.folder
	kwok.Stdout, kwok.Stderr = log, log
	if err := kwok.Start(); err != nil {
		return fmt.Errorf("kwok: %w; next: %s builds it", err, nextScript)
	}
	n.stopKWOK = func() {
		// It may have exited already. An error is expected, because it was killed.
		_ = kwok.Process.Kill()
		_ = kwok.Wait()
	}
	return nil
}

// newFakeNode describes the fake node with a number.
func newFakeNode(number int) *corev1.Node {
	name := fmt.Sprintf("fake-%03d", number)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{FakeNode: fakeNodeValue},
			Labels: map[string]string{
				FakeNode:               fakeNodeValue,
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: FakeNode, Value: fakeNodeValue, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Allocatable: resources, Capacity: resources},
	}
}
