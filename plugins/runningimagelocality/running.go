// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	v1 "k8s.io/api/core/v1"
)

// running calls add with the normalised name of the image of each of a pod's running containers. It counts what keeps
// an image on a node now: the containers of a pod in phase Running whose status says that they run, ephemeral ones too,
// until they end, also after the pod's deletion was asked for. Init containers have ended before a pod is Running.
//
// A container counts under the name that the pod gives it, and under the digest that the runtime reports for it, if
// that is another name. The tag that the runtime reports does not count: of the tags of an image it is any.
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

// wanted returns the normalised names of the images that a pod will need, each once, those of its init containers too:
// the node pulls them all the same. What is no image name can match nothing, and is left out.
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
