// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// requestTimeout is the timeout for one request to the API server.
const requestTimeout = 10 * time.Second

// Cluster is the API server, with the administrator's credentials.
type Cluster struct {
	Client     kubernetes.Interface
	Kubeconfig string
}

// ConnectCluster returns the cluster of a kubeconfig. It sends no request.
func ConnectCluster(kubeconfig string) (*Cluster, error) {
	if _, err := os.Stat(kubeconfig); err != nil {
		return nil, nextstep.With(fmt.Errorf("cannot read the API server's address and credentials: %w", err),
			"run this on a kubeadm control-plane node, or name a file with --kubeconfig")
	}
	if err := record.RefuseSpecial(kubeconfig); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("%s: %w", kubeconfig, err),
			"kubectl --kubeconfig %s get nodes", kubeconfig)
	}
	config.Timeout = requestTimeout
	// Raise the limits: a person waits for these few requests.
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("%s: %w", kubeconfig, err),
			"kubectl --kubeconfig %s get nodes", kubeconfig)
	}
	return &Cluster{Client: client, Kubeconfig: kubeconfig}, nil
}

// kubeletStatusOf reads a static pod's mirror pod and events. For a new version of the manifest, kubelet creates the
// mirror pod first of all: begun reports whether it has. words is why a container does not run, and the newest warning
// event; empty if neither.
func (c *Cluster) kubeletStatusOf(ctx context.Context, namespace, name, version string) (begun bool, words string, err error) {
	mirror, err := c.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && mirror.Annotations[manifest.RestartedAtAnnotation] != version {
		return false, "", nil
	} else if err != nil {
		return false, "", err
	}
	var all []string
	for _, status := range mirror.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "ContainerCreating" {
			all = append(all, strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": "))
		}
	}
	events, err := c.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "type=Warning,involvedObject.uid=" + mirror.Annotations[staticPodUID],
	})
	if err == nil && len(events.Items) > 0 {
		newest := slices.MaxFunc(events.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
		all = append(all, newest.Reason+": "+newest.Message)
	}
	return true, strings.Join(all, "; "), nil
}

// staticPodUID is the mirror pod's annotation with the UID of the static pod.
const staticPodUID = "kubernetes.io/config.hash"

// pods lists pods of all namespaces. what they are is for the error, as is next, the command that lists them.
func (c *Cluster) pods(ctx context.Context, options metav1.ListOptions, what, next string) ([]corev1.Pod, error) {
	pods, err := c.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("cannot list the %s: %w", what, err), "%s", next)
	}
	return pods.Items, nil
}

// Pending returns the unscheduled pods by schedulerName.
func (c *Cluster) Pending(ctx context.Context) (map[string][]string, error) {
	pods, err := c.pods(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=,status.phase=Pending"}, "pending pods",
		"kubectl get pods -A --field-selector spec.nodeName=")
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, pod := range pods {
		name := pod.Spec.SchedulerName
		found[name] = append(found[name], pod.Namespace+"/"+pod.Name)
	}
	return found, nil
}

// Nodes returns all nodes.
func (c *Cluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("cannot list the nodes: %w", err), "kubectl get nodes")
	}
	return nodes.Items, nil
}

// notEnded returns the pods that have not ended, from the API server's cache: there may be many.
func (c *Cluster) notEnded(ctx context.Context) ([]corev1.Pod, error) {
	return c.pods(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed", ResourceVersion: "0"},
		"pods", "kubectl get pods -A")
}

// queued reports whether other pods of a profile are waiting for their first scheduling attempt.
func (c *Cluster) queued(ctx context.Context, profile string) bool {
	pods, err := c.pods(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=,spec.schedulerName=" + profile, Limit: 100}, "", "")
	return err == nil && slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return pod.Spec.NodeName == "" && pod.Spec.SchedulerName == profile && pod.Labels[probeLabel] != probeName &&
			len(pod.Status.Conditions) == 0
	})
}

// full reports whether every node has its maximum number of pods. Then no scheduler can bind another one.
func (c *Cluster) full(ctx context.Context) bool {
	nodes, err := c.Nodes(ctx)
	if err != nil || len(nodes) == 0 {
		return false
	}
	pods, err := c.notEnded(ctx)
	if err != nil {
		return false
	}
	count := map[string]int64{}
	for i := range pods {
		count[pods[i].Spec.NodeName]++
	}
	return !slices.ContainsFunc(nodes, func(node corev1.Node) bool {
		return count[node.Name] < node.Status.Allocatable.Pods().Value()
	})
}
