// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// Load loads the image into the runtime and verifies its ID. It loads even if the runtime already has an image with
// this name and ID: a failed import leaves one with content missing.
func (n *Node) Load(ctx context.Context, archive, name, wantID string) error {
	before, err := n.Runtime.ImageID(ctx, name)
	if err != nil {
		return err
	}
	n.Say("loading %s", archive)
	if err := n.Runtime.Load(ctx, archive); err != nil {
		// Clean up even if the user has cancelled.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if id, _ := n.Runtime.ImageID(ctx, name); before == "" && id != "" {
			if left := n.Runtime.drop(ctx, name); left != nil {
				n.Say("the container runtime still has the name %s, for an incomplete image: %v", name, left)
			}
		}
		return err
	}
	id := ""
	// The runtime reports a new image with a short delay.
	err = wait.PollImmediate(PollInterval, 10*time.Second, func() (done bool, err error) {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		id, err = n.Runtime.ImageID(ctx, name)
		return id == wantID, err
	})
	if errors.Is(err, wait.ErrWaitTimeout) {
		return nextstep.With(
			fmt.Errorf("%s was loaded, but the container runtime at %s has %q under the name %s, not %s",
				archive, n.Runtime.Endpoint, id, name, wantID),
			"%s images ls", n.Runtime.Tool()[0])
	} else if err == nil {
		n.Say("loaded %s (image %s)", name, Short(id))
	}
	return err
}

// ImageUser returns a container or pod of this node, other than the
// scheduler, that was created from an image or refers to it; empty: none.
func (n *Node) ImageUser(ctx context.Context, scheduler *manifest.Pod, id string) (string, error) {
	own := metav1.ObjectMeta{Namespace: scheduler.Object.Namespace, Name: n.podName(scheduler)}
	container, err := n.Runtime.containerOf(ctx, id, own)
	if container != "" || err != nil {
		return container, err
	}
	selector := "spec.nodeName=" + n.Kubelet.NodeName
	pods, err := n.Cluster.pods(ctx, metav1.ListOptions{FieldSelector: selector}, "pods of this node", "kubectl get pods -A --field-selector "+selector)
	if err != nil {
		return "", err
	}
	// Many pods of a node share a few images.
	known := map[string]string{}
	for _, pod := range pods {
		if pod.Namespace == own.Namespace && pod.Name == own.Name {
			continue
		}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			found, asked := known[container.Image]
			if !asked {
				// Resolve names with the runtime: one image may have several.
				if found, err = n.Runtime.ImageID(ctx, container.Image); err != nil {
					return "", err
				}
				known[container.Image] = found
			}
			if found == id {
				return "the pod " + pod.Namespace + "/" + pod.Name, nil
			}
		}
	}
	return "", nil
}
