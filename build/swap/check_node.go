// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	nodeutil "k8s.io/component-helpers/node/util"

	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// checkNode reports problems of this node and the cluster that do
// not depend on the new scheduler. p is nil if there is no plan.
func (t *Tool) checkNode(ctx context.Context, pod *manifest.Pod, p *plan) Findings {
	var findings Findings
	if version, err := t.node.Cluster.Client.Discovery().ServerVersion(); err != nil {
		findings.problem(fmt.Sprintf("kubectl --kubeconfig %s version", t.node.Cluster.Kubeconfig), "the API server does not answer: %v", err)
	} else {
		checkSkew(&findings, version.GitVersion, p)
	}
	nodes, err := t.node.Cluster.Nodes(ctx)
	if err != nil {
		findings.failed(err)
	} else if !slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Name == t.node.Kubelet.NodeName }) {
		findings.problem("kubectl get nodes; ps -o args -p "+strconv.Itoa(t.node.Kubelet.Process), "the cluster has no node %s, which is this node's name according to kubelet's settings and the host name", t.node.Kubelet.NodeName)
	}
	if p != nil && p.accepted != nil {
		checkRequests(&findings, p.accepted.ClientConnection.QPS, len(nodes))
	}
	controlPlanes := 0
	for i := range nodes {
		t.checkNodeObject(ctx, &findings, &nodes[i])
		if _, is := nodes[i].Labels[controlPlaneLabel]; is {
			controlPlanes++
		}
	}
	if controlPlanes > 1 {
		t.checkElection(&findings, pod, p, controlPlanes-1)
	}
	if err := t.refuseLink(); err != nil {
		findings.failed(err)
	}
	t.checkOtherFiles(&findings, pod)
	if err := t.node.Runtime.MissingTool(); err != nil {
		findings.failed(err)
	}
	folder := filepath.Dir(t.manifest)
	if t.node.Kubelet.Manifests != "" && filepath.Clean(t.node.Kubelet.Manifests) != folder {
		findings.problem("leave out --manifest", "kubelet runs the manifests in %s, not those in %s", t.node.Kubelet.Manifests, folder)
	}
	// No test file is written, because kubelet watches the directory.
	if err := unix.Access(folder, unix.W_OK); err != nil {
		findings.problem("mount | grep "+folder+"; df "+folder, "the directory of the manifests is not writable: %s: %v", folder, err)
	}
	return findings
}

// checkRequests warns of the default limit of requests, a binding each, in a large cluster. With a fifth of the number of
// nodes, a third of the pods, 30 on a node, is bound in 50 seconds.
func checkRequests(findings *Findings, limit float64, nodes int) {
	if qps := nodes / 5; (limit == 0 || limit == 50) && qps > 50 {
		findings.warn(fmt.Sprintf("set clientConnection: {qps: %d, burst: %d} in the configuration, if the API server has room", qps, 2*qps),
			"clientConnection.qps is 50, the default: the scheduler binds at most 50 pods per second, and the cluster has %d nodes", nodes)
	}
}

// checkElection reports a scheduler, the current one or the new one, that does not share a lease with the schedulers of
// the other control-plane nodes.
func (t *Tool) checkElection(findings *Findings, pod *manifest.Pod, p *plan, others int) {
	config, _ := host.ConfigOf(pod)
	now := pod.Lease(config)
	if now == nil {
		findings.warn(
			"remove --leader-elect=false from "+t.manifest+", and leaderElect: false from its configuration",
			"the scheduler of this node runs without leader election, but there are %d other control-plane nodes: it "+
				"schedules the same pods as their leader", others)
	}
	if p == nil || p.refusal != nil {
		return
	}
	switch then := p.afterPod.Lease(p.accepted); {
	case now == nil && then == nil:
		findings.warn("remove it before the install; flags override the configuration",
			"the new scheduler would run without leader election, too")
	case now != nil && (then == nil || *now != *then):
		findings.problem(fmt.Sprintf("leave leaderElection at %s", now),
			"the new scheduler would not share the lease %s with the schedulers of the other %d control-plane nodes: two would "+
				"schedule the same pods",
			now, others)
	}
}

// controlPlaneLabel is kubeadm's node label.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// checkNodeObject reports problems of one node of the cluster.
func (t *Tool) checkNodeObject(ctx context.Context, findings *Findings, node *corev1.Node) {
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	isReady := ready != nil && ready.Status == corev1.ConditionTrue
	if node.Name != t.node.Kubelet.NodeName {
		if ready != nil && !isReady {
			findings.warn("kubectl describe node "+node.Name, "the node %s is NotReady, so nothing is scheduled there: %s", node.Name, ready.Message)
		}
		return
	}
	// Whether the node is NotReady then depends on the runtime;
	// pods with their own network cannot start in any case.
	if missing := t.node.MissingPlugins(ctx); len(missing) > 0 {
		report := findings.warn
		if !isReady {
			report = findings.problem
		}
		report("install the network plugins (Debian: containernetworking-plugins; others: the CNI plugins' release), or fix the configuration of the network",
			"this node's network plugin is missing: %s", strings.Join(missing, ", "))
	}
	// A newer kubelet is one of a newer API server, which checkSkew reports.
	if version := node.Status.NodeInfo.KubeletVersion; minorOf(version) < builtFor && minorOf(version) > 0 {
		findings.problem("upgrade this node's kubelet", "this node's kubelet is %s, older than the scheduler (1.%d)", version, builtFor)
	}
	if ready != nil && !isReady {
		findings.problem("kubectl describe node "+node.Name+"; journalctl -u kubelet", "this node is NotReady: %s", ready.Message)
	}
}

// checkOtherFiles checks the other files in kubelet's static pod directory.
func (t *Tool) checkOtherFiles(findings *Findings, pod *manifest.Pod) {
	folder := filepath.Dir(t.manifest)
	entries, err := os.ReadDir(folder)
	if err != nil {
		findings.problem("run the same command with sudo", "%v", err)
		return
	}
	for _, entry := range entries {
		if entry.Name() == filepath.Base(t.manifest) || entry.IsDir() {
			continue
		}
		content, err := record.ReadRegular(filepath.Join(folder, entry.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			findings.warn("move it out of the manifests directory",
				"kubelet cannot run %s: %v", filepath.Join(folder, entry.Name()), err)
			continue
		}
		other := manifest.ClassifyFile(entry.Name(), content, *pod)
		switch {
		case other.Serious:
			findings.problem(other.Next, "%s: %s", filepath.Join(folder, entry.Name()), other.Explanation)
		case other.Explanation != "":
			findings.warn(other.Next, "%s: %s", filepath.Join(folder, entry.Name()), other.Explanation)
		}
	}
}
