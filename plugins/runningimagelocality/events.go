// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// watch lets the informers fill the index. The scheduler starts them after it made the plugins and waits until they
// have listed everything, but not until every handler was told; so in its first moments the index may know less than
// there is, and scores are lower.
func (pl *RunningImageLocality) watch(factory informers.SharedInformerFactory) {
	factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    pl.podIs,
		UpdateFunc: func(old, new interface{}) { pl.podIs(new) },
		DeleteFunc: pl.podIsGone,
	})
	factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    pl.nodeIs,
		UpdateFunc: func(old, new interface{}) { pl.nodeIs(new) },
		DeleteFunc: pl.nodeIsGone,
	})
}

func (pl *RunningImageLocality) podIs(obj interface{}) {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		klog.ErrorS(nil, "Not a pod in an event of pods", "plugin", Name, "type", fmt.Sprintf("%T", obj))
		return
	}
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	pl.counters.images(pl.index.setPod(name, pod.Spec.NodeName, pl.running(pod)))
}

func (pl *RunningImageLocality) podIsGone(obj interface{}) {
	if name, ok := nameOfDeleted(obj); ok {
		pl.counters.images(pl.index.setPod(name, "", nil))
	}
}

func (pl *RunningImageLocality) nodeIs(obj interface{}) {
	node, ok := obj.(*v1.Node)
	if !ok {
		klog.ErrorS(nil, "Not a node in an event of nodes", "plugin", Name, "type", fmt.Sprintf("%T", obj))
		return
	}
	var sizes reportedSizes
	if pl.valuation.sizeWeight > 0 {
		sizes = node.Status.Images
	}
	pl.index.setNode(node.Name, sizes)
}

func (pl *RunningImageLocality) nodeIsGone(obj interface{}) {
	if name, ok := nameOfDeleted(obj); ok {
		pl.index.removeNode(name.Name)
	}
}

// nameOfDeleted returns the name of a deleted object. If the deletion itself was missed, the event carries a
// DeletedFinalStateUnknown, whose object may be old; its key is right.
func nameOfDeleted(obj interface{}) (types.NamespacedName, bool) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err == nil {
		var name types.NamespacedName
		if name.Namespace, name.Name, err = cache.SplitMetaNamespaceKey(key); err == nil {
			return name, true
		}
	}
	klog.ErrorS(err, "Not a name in an event of a deletion", "plugin", Name, "type", fmt.Sprintf("%T", obj))
	return types.NamespacedName{}, false
}

// running returns the normalised names of the images of a pod's running containers. It counts what keeps an image on a
// node now: the containers of a pod in phase Running whose status says that they run, ephemeral ones too, until they
// end, also after the pod's deletion was asked for. Init containers have ended before a pod is Running.
//
// A container counts under the name that the pod gives it, and under the digest that the runtime reports for it, if
// that is another name. The tag that the runtime reports does not count: of the tags of an image it is any.
func (pl *RunningImageLocality) running(pod *v1.Pod) []string {
	if pod.Spec.NodeName == "" || pod.Status.Phase != v1.PodRunning {
		return nil
	}
	var running []string
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		running = pl.appendRunning(running, container.Name, container.Image, pod.Status.ContainerStatuses)
	}
	for i := range pod.Spec.EphemeralContainers {
		container := &pod.Spec.EphemeralContainers[i]
		running = pl.appendRunning(running, container.Name, container.Image, pod.Status.EphemeralContainerStatuses)
	}
	return running
}

func (pl *RunningImageLocality) appendRunning(running []string, container, image string, statuses []v1.ContainerStatus) []string {
	for i := range statuses {
		if statuses[i].Name != container || statuses[i].State.Running == nil {
			continue
		}
		name, named := pl.names.normalise(image)
		if named {
			running = append(running, name)
		}
		if digest, ok := pl.names.digest(statuses[i].ImageID); ok && !(named && digest == name) {
			running = append(running, digest)
		}
		break
	}
	return running
}
