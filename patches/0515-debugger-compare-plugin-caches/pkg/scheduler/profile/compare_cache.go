// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"sort"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// CompareCache calls CompareCache of the caching plugins of all profiles, and returns their differences.
func (m Map) CompareCache(nodes map[string]*framework.NodeInfo) []string {
	var differs []string
	for _, fwk := range m {
		if caching, ok := fwk.(interface {
			CompareCache(map[string]*framework.NodeInfo) []string
		}); ok {
			differs = append(differs, caching.CompareCache(nodes)...)
		}
	}
	sort.Strings(differs)
	return differs
}
