// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kube-scheduler-fork/build/nextstep"
)

// defaultPort is the one on which kube-scheduler serves unless --secure-port says otherwise.
const defaultPort = 10259

// lease names the object by which schedulers agree on who leads.
type lease struct{ namespace, name string }

// schedulersLease is that of kubeadm's scheduler, and of one in its place.
var schedulersLease = lease{metav1.NamespaceSystem, "kube-scheduler"}

func (l lease) String() string { return l.namespace + "/" + l.name }

func parseLease(text string) (lease, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return lease{}, nextstep.With(fmt.Errorf("--lease %q is not NAMESPACE/NAME", text), "kubectl get leases --all-namespaces")
	}
	return lease{namespace, name}, nil
}

// leader is the scheduler that holds a lease, and where it serves.
type leader struct {
	// identity is what the lease says: the host's name, "_", and a random part.
	identity string
	// namespace and pod name its pod.
	namespace, pod string
	port           int
}

func (l leader) String() string { return l.namespace + "/" + l.pod }

// find reads who holds a lease, and looks for its pod.
func find(ctx context.Context, client kubernetes.Interface, lease lease) (leader, error) {
	found, err := client.CoordinationV1().Leases(lease.namespace).Get(ctx, lease.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return leader{}, nextstep.With(fmt.Errorf("there is no lease %s, by which schedulers agree on who leads", lease),
			"kubectl get leases --all-namespaces, and name the scheduler's with --lease NAMESPACE/NAME")
	case apierrors.IsForbidden(err):
		return leader{}, missing(err, lease.namespace, "get", "leases.coordination.k8s.io/"+lease.name)
	case err != nil:
		return leader{}, nextstep.With(fmt.Errorf("the scheduler's lease %s: %w", lease, err), "kubectl --namespace %s get lease %s", lease.namespace, lease.name)
	}
	if found.Spec.HolderIdentity == nil || *found.Spec.HolderIdentity == "" {
		return leader{}, nextstep.With(fmt.Errorf("no scheduler holds the lease %s", lease),
			"kubectl --namespace %s get pods --output wide, and see that a scheduler runs", lease.namespace)
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
			fmt.Errorf("%q holds the lease %s, and namespace %s has no pod of that name or node that runs kube-scheduler",
				identity, lease, lease.namespace),
			"kubectl get pods --all-namespaces --output wide, and name the lease of a scheduler that runs in a pod with --lease")
	}
	if pod.Status.Phase != corev1.PodRunning {
		return leader{}, nextstep.With(fmt.Errorf("the scheduler's pod %s/%s does not run: it is %s", pod.Namespace, pod.Name, pod.Status.Phase),
			"kubectl --namespace %s describe pod %s", pod.Namespace, pod.Name)
	}
	port, err := portOf(pod)
	return leader{identity, pod.Namespace, pod.Name, port}, err
}

// podOf finds the pod of a host's scheduler; nil if there is none. The host's name is the node's for a pod in the host's
// network, as kubeadm's is, which is named for its node; otherwise it is the pod's own.
func podOf(ctx context.Context, client kubernetes.Interface, lease lease, host string) (*corev1.Pod, error) {
	pods := client.CoreV1().Pods(lease.namespace)
	names := []string{"kube-scheduler-" + host, host}
	if lease != schedulersLease {
		// The other one has a pod of the first name there.
		names = []string{host, lease.name + "-" + host}
	}
	// By name first: rights can be given for that, and not for a list.
	var forbidden error
	for _, name := range names {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && runsScheduler(pod):
			return pod, nil
		case apierrors.IsForbidden(err):
			// One may be allowed another name.
			if forbidden == nil {
				forbidden = missing(err, lease.namespace, "get", "pods/"+name)
			}
		case err != nil && !apierrors.IsNotFound(err):
			return nil, nextstep.With(fmt.Errorf("the scheduler's pod %s/%s: %w", lease.namespace, name, err), "kubectl --namespace %s get pod %s", lease.namespace, name)
		}
	}
	list, err := pods.List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err) && forbidden != nil:
		return nil, forbidden
	case apierrors.IsForbidden(err):
		return nil, missing(err, lease.namespace, "list", "pods")
	case err != nil:
		return nil, nextstep.With(fmt.Errorf("the pods of namespace %s: %w", lease.namespace, err), "kubectl --namespace %s get pods", lease.namespace)
	}
	var found []*corev1.Pod
	for i := range list.Items {
		pod := &list.Items[i]
		// A node may be known by its name with a domain, and its host not, or the other way round.
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
		"have them run on different nodes, or without hostNetwork")
}

// words are the command line of a container, also of one that a shell runs.
func words(container *corev1.Container) []string {
	var words []string
	for _, list := range [][]string{container.Command, container.Args} {
		for _, element := range list {
			words = append(words, strings.Fields(element)...)
		}
	}
	return words
}

func runsScheduler(pod *corev1.Pod) bool { return container(pod) != nil }

// container is the one that runs kube-scheduler: by its command line or, if that is the image's own, by the image.
func container(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		for _, word := range words(container) {
			if !strings.HasPrefix(word, "-") && path.Base(word) == "kube-scheduler" {
				return container
			}
		}
		if len(container.Command) == 0 && strings.HasPrefix(path.Base(container.Image), "kube-scheduler") {
			return container
		}
	}
	return nil
}

// portOf is the port on which the pod's scheduler serves.
func portOf(pod *corev1.Pod) (int, error) {
	value := strconv.Itoa(defaultPort)
	words := words(container(pod))
	for i, word := range words {
		// The last one counts.
		if set, found := strings.CutPrefix(word, "--secure-port="); found {
			value = set
		} else if word == "--secure-port" && i+1 < len(words) {
			value = words[i+1]
		}
	}
	port, err := strconv.ParseUint(value, 10, 16)
	if err != nil || port == 0 {
		return 0, nextstep.With(fmt.Errorf("the scheduler in pod %s/%s serves nothing: its --secure-port is %q", pod.Namespace, pod.Name, value),
			"have it run with --secure-port=%d", defaultPort)
	}
	return int(port), nil
}

// missing is the error of one who lacks a right to a resource, such as pods/NAME, or to what lies below it.
func missing(err error, namespace, verb, resource string, below ...string) error {
	what, question := resource, resource
	if len(below) > 0 {
		what, question = resource+"/"+below[0], resource+" --subresource "+below[0]
	}
	return nextstep.With(fmt.Errorf("you lack the right to %s %s in namespace %s: %w", verb, what, namespace, err),
		"kubectl auth can-i %s %s --namespace %s; see manifests/examples/records/reach-the-scheduler.yaml", verb, question, namespace)
}
