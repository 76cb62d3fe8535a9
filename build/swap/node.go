// SPDX-License-Identifier: Apache-2.0

package swap

// node is this control-plane node: its kubelet, its container runtime, and the API server of its cluster.
type node struct {
	kubelet *kubelet
	runtime *runtime
	cluster *cluster
	// say prints a line of progress.
	say func(format string, arguments ...any)
}

// podName returns the name of a static pod in the API server.
func (n *node) podName(pod *Pod) string { return pod.Name + "-" + n.kubelet.nodeName }
