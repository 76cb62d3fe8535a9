// SPDX-License-Identifier: Apache-2.0

package noderesourcetopology

import (
	v1 "k8s.io/api/core/v1"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
)

// alwaysInZones reports whether a resource belongs to zones on each node: the kubelet's Topology Manager aligns CPU,
// memory and huge pages, and devices whose plugins name a zone. Nothing aligns ephemeral storage.
func alwaysInZones(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || v1helper.IsHugePageResourceName(name)
}
