// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

// lease identifies the Lease that schedulers use for leader election.
type lease = schedulerpod.Lease

// schedulersLease is the lease of kubeadm's scheduler and of its replacement.
var schedulersLease = schedulerpod.DefaultLease

func parseLease(text string) (lease, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return lease{}, nextstep.With(fmt.Errorf("--lease %q is not NAMESPACE/NAME", text), "kubectl get leases --all-namespaces")
	}
	return lease{Namespace: namespace, Name: name}, nil
}

// leader is the scheduler that holds a lease, with its address.
type leader struct {
	// identity is the lease's holder: the host's name, "_", and a random part.
	identity string
	// namespace and pod identify its pod.
	namespace, pod string
	port           int
}

func (l leader) String() string { return l.namespace + "/" + l.pod }

// find reads the holder of a lease and looks up its pod.
func find(ctx context.Context, client kubernetes.Interface, lease lease) (leader, error) {
	found, err := client.CoordinationV1().Leases(lease.Namespace).Get(ctx, lease.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return leader{}, nextstep.With(fmt.Errorf("there is no lease %s, which schedulers use for leader election", lease),
			"kubectl get leases --all-namespaces, and set --lease to the scheduler's NAMESPACE/NAME")
	case apierrors.IsForbidden(err):
		return leader{}, missing(err, lease.Namespace, "get", "leases.coordination.k8s.io/"+lease.Name)
	case err != nil:
		return leader{}, nextstep.With(fmt.Errorf("the scheduler's lease %s: %w", lease, err), "kubectl --namespace %s get lease %s", lease.Namespace, lease.Name)
	}
	if found.Spec.HolderIdentity == nil || *found.Spec.HolderIdentity == "" {
		return leader{}, nextstep.With(fmt.Errorf("no scheduler holds the lease %s", lease),
			"kubectl --namespace %s get pods --output wide, and check that a scheduler runs", lease.Namespace)
	}
	identity := *found.Spec.HolderIdentity
	host := identity
	if at := strings.LastIndexByte(identity, '_'); at >= 0 {
		host = identity[:at]
	}
	pod, err := podOf(ctx, client, lease, strings.ToLower(host))
	if err != nil {
		return leader{}, err
	}
	if pod == nil {
		return leader{}, nextstep.With(
			fmt.Errorf("%q holds the lease %s, but namespace %s has no kube-scheduler pod of that name or on that node",
				identity, lease, lease.Namespace),
			"kubectl get pods --all-namespaces --output wide, and set --lease to the lease of a scheduler that runs in a pod")
	}
	if pod.Status.Phase != corev1.PodRunning {
		return leader{}, nextstep.With(fmt.Errorf("the scheduler's pod %s/%s is not running: its phase is %s", pod.Namespace, pod.Name, pod.Status.Phase),
			"kubectl --namespace %s describe pod %s", pod.Namespace, pod.Name)
	}
	port, err := portOf(pod)
	return leader{identity, pod.Namespace, pod.Name, port}, err
}

// podOf returns the pod of the scheduler on a host, or nil. The host is the node for a pod in the node's network, such
// as kubeadm's, which is named after its node. For other pods, the host name is the pod's name.
func podOf(ctx context.Context, client kubernetes.Interface, lease lease, host string) (*corev1.Pod, error) {
	pods := client.CoreV1().Pods(lease.Namespace)
	names := []string{"kube-scheduler-" + host, host}
	if lease != schedulersLease {
		// With another lease, the pod kube-scheduler-<node> is kubeadm's scheduler.
		names = []string{host, lease.Name + "-" + host}
	}
	// By name first: a Role can grant get on a name without granting list.
	var forbidden error
	for _, name := range names {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && runsScheduler(pod):
			return pod, nil
		case apierrors.IsForbidden(err):
			// The user may be allowed to read the other name.
			if forbidden == nil {
				forbidden = missing(err, lease.Namespace, "get", "pods/"+name)
			}
		case err != nil && !apierrors.IsNotFound(err):
			return nil, nextstep.With(fmt.Errorf("the scheduler's pod %s/%s: %w", lease.Namespace, name, err), "kubectl --namespace %s get pod %s", lease.Namespace, name)
		}
	}
	list, err := pods.List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err) && forbidden != nil:
		return nil, forbidden
	case apierrors.IsForbidden(err):
		return nil, missing(err, lease.Namespace, "list", "pods")
	case err != nil:
		return nil, nextstep.With(fmt.Errorf("the pods of namespace %s: %w", lease.Namespace, err), "kubectl --namespace %s get pods", lease.Namespace)
	}
	var found []*corev1.Pod
	for i := range list.Items {
		pod := &list.Items[i]
		// The node's name may have a domain and the host's name none, or the other way round.
		node, _, _ := strings.Cut(pod.Spec.NodeName, ".")
		short, _, _ := strings.Cut(host, ".")
		other := lease != schedulersLease && pod.Name == "kube-scheduler-"+pod.Spec.NodeName
		if pod.Spec.HostNetwork && node == short && runsScheduler(pod) && !other {
			found = append(found, pod)
		}
	}
	switch len(found) {
	case 0:
		return nil, forbidden
	case 1:
		return found[0], nil
	}
	return nil, nextstep.With(
		fmt.Errorf("%s holds the lease %s, and several schedulers run there: %s and %s", host, lease, found[0].Name, found[1].Name),
		"run them on different nodes, or without hostNetwork")
}

func runsScheduler(pod *corev1.Pod) bool { return len(schedulerpod.Find(pod)) > 0 }

// portOf returns the port on which the pod's scheduler serves.
func portOf(pod *corev1.Pod) (int, error) {
	scheduler := schedulerpod.Find(pod)[0]
	port := scheduler.Port()
	if port == 0 {
		value, _ := scheduler.Flag("secure-port")
		return 0, nextstep.With(fmt.Errorf("the scheduler in pod %s/%s has no secure port: its --secure-port is %q", pod.Namespace, pod.Name, value),
			"run it with --secure-port=%d", schedulerpod.DefaultPort)
	}
	return port, nil
}

// missing returns the error for a missing permission on a resource, such as pods/NAME, or on its subresource.
func missing(err error, namespace, verb, resource string, below ...string) error {
	what, question := resource, resource
	if len(below) > 0 {
		what, question = resource+"/"+below[0], resource+" --subresource "+below[0]
	}
	return nextstep.With(fmt.Errorf("you are not allowed to %s %s in namespace %s: %w", verb, what, namespace, err),
		"kubectl auth can-i %s %s --namespace %s; see manifests/examples/records/reach-the-scheduler.yaml", verb, question, namespace)
}
