// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
)

// SameRequests reports whether a node counts the same for two versions of a pod. They differ only under API servers that
// can resize pods.
func SameRequests(a, b *v1.Pod) bool {
	ofA, cpuOfA, memoryOfA := calculateResource(a)
	ofB, cpuOfB, memoryOfB := calculateResource(b)
	return cpuOfA == cpuOfB && memoryOfA == memoryOfB && reflect.DeepEqual(ofA, ofB)
}
