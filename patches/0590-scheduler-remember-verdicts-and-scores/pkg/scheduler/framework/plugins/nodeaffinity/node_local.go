// SPDX-License-Identifier: Apache-2.0

package nodeaffinity

import (
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var _ framework.NodeLocalPlugin = &NodeAffinity{}

// NodeLocalKey appends the pod's node selector and its node affinity.
func (pl *NodeAffinity) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	labels := pod.Spec.NodeSelector
	if key = framework.AppendNumber(key, int64(len(labels))); len(labels) > 0 {
		names := make([]string, 0, len(labels))
		for name := range labels {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			key = framework.AppendText(framework.AppendText(key, name), labels[name])
		}
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return key, true
	}
	// The encoding is that of the API, which has all fields.
	encoded, err := pod.Spec.Affinity.NodeAffinity.Marshal()
	return append(key, encoded...), err == nil
}
