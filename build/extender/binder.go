// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Binder answers bind. A nil *Binder refuses it.
type Binder struct {
	client kubernetes.Interface
}

// Bind binds a pod to a node. Binding it there again succeeds, so a scheduler that missed the answer may retry. The API
// server checks the UID, so a new pod with the name of an old one is not bound.
func (b *Binder) Bind(ctx context.Context, body []byte) (any, error) {
	if b == nil {
		return nil, errors.New("this extender does not bind pods; " +
			"next: start it with --bind, or remove bindVerb from the scheduler's configuration")
	}
	args, err := decodeBinding(body)
	if err != nil {
		return nil, err
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: args.PodNamespace, Name: args.PodName, UID: args.PodUID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: args.Node},
	}
	pods := b.client.CoreV1().Pods(args.PodNamespace)
	failed := pods.Bind(ctx, binding, metav1.CreateOptions{})
	if failed == nil {
		return extenderv1.ExtenderBindingResult{}, nil
	}
	name := klog.KRef(args.PodNamespace, args.PodName)
	// The pod may be bound even so, for example if the API server's answer was lost.
	pod, err := pods.Get(ctx, args.PodName, metav1.GetOptions{})
	switch {
	case err != nil || pod.UID != args.PodUID || pod.Spec.NodeName == "":
		return nil, fmt.Errorf("cannot bind pod %s to node %s: %w", name, args.Node, failed)
	case pod.Spec.NodeName != args.Node:
		return nil, fmt.Errorf("cannot bind pod %s to node %s: it is bound to node %s", name, args.Node, pod.Spec.NodeName)
	}
	return extenderv1.ExtenderBindingResult{}, nil
}
