// SPDX-License-Identifier: Apache-2.0

package tainttoleration

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var _ framework.NodeLocalPlugin = &TaintToleration{}

// NodeLocalKey appends what decides which taints the pod tolerates.
func (pl *TaintToleration) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		for _, text := range [...]string{t.Key, string(t.Operator), t.Value, string(t.Effect)} {
			key = framework.AppendText(key, text)
		}
	}
	return key, true
}
