// SPDX-License-Identifier: Apache-2.0

package host

import "kube-scheduler-fork/build/swap/manifest"

// Node is this control-plane node: its kubelet, its container runtime, and the API server of its cluster.
type Node struct {
	Kubelet *Kubelet
	Runtime *Runtime
	Cluster *Cluster
	// Say prints a line of progress.
	Say func(format string, arguments ...any)
}

// PodName returns the name of a static pod in the API server.
func (n *Node) PodName(pod *manifest.Pod) string { return pod.Name + "-" + n.Kubelet.NodeName }
