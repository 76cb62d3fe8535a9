// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestWithOwnClaims(t *testing.T) {
	pod := &v1.Pod{}
	pod.Namespace, pod.Name, pod.UID = "default", "p", "p"
	pod.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"},
	}}}
	nodeInfo := NewNodeInfo(pod)
	nodeInfo.SetNode(&v1.Node{})
	clone := nodeInfo.WithOwnClaims().Clone()
	if err := clone.RemovePod(pod); err != nil {
		t.Fatal(err)
	}
	if clone.PVCRefCounts["default/claim"] != 0 || nodeInfo.PVCRefCounts["default/claim"] != 1 {
		t.Errorf("the clone counts %v, the node %v", clone.PVCRefCounts, nodeInfo.PVCRefCounts)
	}
}
