// SPDX-License-Identifier: Apache-2.0

package imagelocality

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var _ framework.NodeLocalPlugin = &ImageLocality{}

// NodeLocalKey appends the images of the pod's containers, and the number of nodes. The number of nodes that have an image is
// in the NodeInfo.
func (pl *ImageLocality) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	all, err := pl.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return key, false
	}
	key = framework.AppendNumber(key, int64(len(all)))
	for i := range pod.Spec.Containers {
		key = framework.AppendText(key, pod.Spec.Containers[i].Image)
	}
	return key, true
}
