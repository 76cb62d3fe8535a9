// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"encoding/binary"

	v1 "k8s.io/api/core/v1"
)

// NodeLocalPlugin is a Filter or Score plugin that reads one node: the results of Filter, and those of Score before
// NormalizeScore, depend only on the pod, the plugin's arguments and the NodeInfo. The framework remembers them for
// pods with equal keys until the NodeInfo changes.
//
// NodeResourcesFit keeps the promise: it compares the pod's requests with the NodeInfo. These do not, and must not have the
// method, or must return false for the pods for which they read more:
//
//   - PodTopologySpread and InterPodAffinity, because they read pods of other nodes;
//   - NodeVolumeLimits and VolumeBinding, because they read listers, which change without the NodeInfo;
//   - a plugin that reads measurements or a clock, because its results change while nothing else does;
//   - a plugin that draws at random, because it must draw each time.
type NodeLocalPlugin interface {
	Plugin
	// NodeLocalKey appends to key all that Filter and Score read of the pod, and of whatever else is the same for all
	// nodes, such as their number. Two pods may only get equal bytes if the results are equal on each node. It returns
	// false if the promise does not hold for this pod. Then the plugin is called for each node.
	NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool)
}

// AppendNumber appends a number to a key.
func AppendNumber(key []byte, n int64) []byte {
	var encoded [binary.MaxVarintLen64]byte
	return append(key, encoded[:binary.PutVarint(encoded[:], n)]...)
}

// AppendText appends a text to a key, with its length, so that no other texts have the same bytes.
func AppendText(key []byte, text string) []byte {
	return append(AppendNumber(key, int64(len(text))), text...)
}
