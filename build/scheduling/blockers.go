// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// blockers finds the pods and quotas that keep a pod from a node. It reads them from the API server with the reader's
// permissions, so it names nothing that the reader may not list.
type blockers struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	pod     corev1.Pod
}

var elasticQuotas = schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "elasticquotas"}

// blockers adds sentences about what keeps the pod of a request from nodes, with one node as the example for each plugin.
// What the reader may not read is left out.
func (o *options) blockers(ctx context.Context, asked request, answer *whatIf) {
	config, err := o.flags.ToRESTConfig()
	if err != nil || answer.Result != "Unschedulable" {
		return
	}
	var b blockers
	if b.client, err = kubernetes.NewForConfig(config); err == nil {
		b.dynamic, err = dynamic.NewForConfig(config)
	}
	named := asked.query.Get("pod")
	if answer.Gang != nil {
		// Only a pod of the cluster is looked up.
		if named == "" {
			return
		}
		named = cmp.Or(answer.Gang.Unfit, named)
	}
	if err == nil && asked.body != nil {
		err = json.Unmarshal(asked.body, &b.pod)
	} else if namespace, name, _ := strings.Cut(named, "/"); err == nil {
		var pod *corev1.Pod
		if pod, err = b.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			b.pod = *pod
		}
	}
	if err == nil {
		answer.Lacks = append(answer.Lacks, b.sentences(ctx, answer.Rejections)...)
	}
}

func (b blockers) sentences(ctx context.Context, rejections []rejection) (sentences []string) {
	for _, r := range rejections {
		switch {
		case r.Plugin == "CapacityScheduling":
			sentences = append(sentences, b.quotas(ctx)...)
		case len(r.Sample) == 0:
		case r.Plugin == "NodePorts":
			sentences = append(sentences, b.ports(ctx, r.Sample[0])...)
		case r.Plugin == "InterPodAffinity" && slices.ContainsFunc(r.Reasons, func(reason string) bool { return strings.Contains(reason, "pod anti-affinity rules") }):
			sentences = append(sentences, b.antiAffinity(ctx, r.Sample[0])...)
		}
	}
	return sentences
}

// first names the first wanted pod that the reader may list in some namespaces ("" is all); "" if there is none.
func (b blockers) first(ctx context.Context, namespaces []string, options metav1.ListOptions, wanted func(*corev1.Pod) bool) string {
	hidden := ""
	for _, namespace := range namespaces {
		list, err := b.client.CoreV1().Pods(namespace).List(ctx, options)
		if apierrors.IsForbidden(err) {
			hidden = "a pod that you may not list"
			if namespace == "" {
				list, err = b.client.CoreV1().Pods(b.pod.Namespace).List(ctx, options)
			}
		}
		if err != nil {
			continue
		}
		if i := slices.IndexFunc(list.Items, func(pod corev1.Pod) bool { return wanted(&pod) }); i >= 0 {
			return fmt.Sprintf("pod %s/%s on node %s", list.Items[i].Namespace, list.Items[i].Name, list.Items[i].Spec.NodeName)
		}
	}
	return hidden
}

// ports names a pod for each host port that is in use on a node.
func (b blockers) ports(ctx context.Context, node string) (sentences []string) {
	for _, wanted := range hostPorts(&b.pod) {
		user := b.first(ctx, []string{""}, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}, func(pod *corev1.Pod) bool {
			return pod.Spec.NodeName == node && slices.ContainsFunc(hostPorts(pod), func(used corev1.ContainerPort) bool { return conflict(used, wanted) })
		})
		if user != "" {
			sentences = append(sentences, fmt.Sprintf("Host port %d is in use, for example by %s.", wanted.HostPort, user))
		}
	}
	return sentences
}

func hostPorts(pod *corev1.Pod) (ports []corev1.ContainerPort) {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.HostPort > 0 {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

// conflict reports whether two host ports exclude each other, as NodePorts does.
func conflict(a, b corev1.ContainerPort) bool {
	const all = "0.0.0.0"
	ip, other := cmp.Or(a.HostIP, all), cmp.Or(b.HostIP, all)
	return a.HostPort == b.HostPort && cmp.Or(a.Protocol, corev1.ProtocolTCP) == cmp.Or(b.Protocol, corev1.ProtocolTCP) &&
		(ip == other || ip == all || other == all)
}

// antiAffinity names a pod for each of the pod's own required terms that a pod in the domain of a node matches.
func (b blockers) antiAffinity(ctx context.Context, node string) (sentences []string) {
	example, err := b.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil || b.pod.Spec.Affinity == nil || b.pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	for _, term := range b.pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		domain, err := b.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: term.TopologyKey + "=" + example.Labels[term.TopologyKey]})
		if err != nil {
			continue
		}
		namespaces := term.Namespaces
		if term.NamespaceSelector != nil {
			if found, err := b.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(term.NamespaceSelector)}); err == nil {
				for _, namespace := range found.Items {
					namespaces = append(namespaces, namespace.Name)
				}
			}
		} else if len(namespaces) == 0 {
			namespaces = []string{b.pod.Namespace}
		}
		selector := metav1.FormatLabelSelector(term.LabelSelector)
		other := b.first(ctx, namespaces, metav1.ListOptions{LabelSelector: selector}, func(pod *corev1.Pod) bool {
			return slices.ContainsFunc(domain.Items, func(n corev1.Node) bool { return n.Name == pod.Spec.NodeName })
		})
		if other != "" {
			sentences = append(sentences, fmt.Sprintf("Its required anti-affinity to %s by %s keeps it from node %s because of %s.", selector, term.TopologyKey, node, other))
		}
	}
	return sentences
}

// quotas returns what the ElasticQuotas of the pod's namespace allow, and what is used.
func (b blockers) quotas(ctx context.Context) (sentences []string) {
	list, err := b.dynamic.Resource(elasticQuotas).Namespace(b.pod.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for _, quota := range list.Items {
		most, _, _ := unstructured.NestedMap(quota.Object, "spec", "max")
		used, _, _ := unstructured.NestedMap(quota.Object, "status", "used")
		var figures []string
		for name, limit := range most {
			figures = append(figures, fmt.Sprintf("%s %v of at most %v", name, cmp.Or(used[name], any(0)), limit))
		}
		slices.Sort(figures)
		sentences = append(sentences, fmt.Sprintf("ElasticQuota %s/%s has used: %s.", quota.GetNamespace(), quota.GetName(), strings.Join(figures, ", ")))
	}
	return sentences
}
