// SPDX-License-Identifier: Apache-2.0

package framework

// CachingPlugin is a plugin that caches data about nodes between scheduling cycles.
type CachingPlugin interface {
	Plugin
	// CompareCache computes the cached data of these nodes again, and returns a description of each difference. The
	// map's keys are node names. It may be called at any time, and only for debugging.
	CompareCache(nodes map[string]*NodeInfo) []string
}
