// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	v1 "k8s.io/api/core/v1"
)

// running calls add with the normalised image name of each running container of a pod. It counts the containers that
// keep an image on the node: those with the status running of a pod in phase Running, also ephemeral ones, and also of
// a terminating pod. Init containers have ended before a pod is Running.
//
// A container counts with the name in the pod, and with the digest from the runtime if that is another name. The tag
// from the runtime does not count, because it may be any tag of the image.
func (n *names) running(pod *v1.Pod, add func(image string)) {
	if pod.Status.Phase != v1.PodRunning {
		return
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		n.runningContainer(container.Name, container.Image, pod.Status.ContainerStatuses, add)
	}
	for i := range pod.Spec.EphemeralContainers {
		container := &pod.Spec.EphemeralContainers[i]
		n.runningContainer(container.Name, container.Image, pod.Status.EphemeralContainerStatuses, add)
	}
}

func (n *names) runningContainer(container, image string, statuses []v1.ContainerStatus, add func(image string)) {
	for i := range statuses {
		if statuses[i].Name != container || statuses[i].State.Running == nil {
			continue
		}
		name, named := n.normalise(image)
		if named {
			add(name)
		}
		if digest, ok := n.digest(statuses[i].ImageID); ok && !(named && digest == name) {
			add(digest)
		}
		break
	}
}

// wanted returns the normalised names of a pod's images, each once, also those of its init containers, because the node
// pulls them too. It omits invalid names.
func (n *names) wanted(pod *v1.Pod) []string {
	wanted := make([]string, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if name, ok := n.normalise(containers[i].Image); ok && !contains(wanted, name) {
				wanted = append(wanted, name)
			}
		}
	}
	return wanted
}

func contains(list []string, value string) bool {
	for i := range list {
		if list[i] == value {
			return true
		}
	}
	return false
}
