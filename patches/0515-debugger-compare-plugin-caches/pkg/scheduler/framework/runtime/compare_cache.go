// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"fmt"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// CompareCache calls CompareCache of all caching plugins of the profile, and returns their differences.
func (f *frameworkImpl) CompareCache(nodes map[string]*framework.NodeInfo) []string {
	caching := map[string]framework.CachingPlugin{}
	add := func(pl framework.Plugin) {
		if k, ok := pl.(framework.CachingPlugin); ok {
			caching[pl.Name()] = k
		}
	}
	for _, pl := range f.preFilterPlugins {
		add(pl)
	}
	for _, pl := range f.filterPlugins {
		add(pl)
	}
	for _, pl := range f.preScorePlugins {
		add(pl)
	}
	for _, pl := range f.scorePlugins {
		add(pl)
	}
	var differs []string
	for name, pl := range caching {
		for _, text := range pl.CompareCache(nodes) {
			differs = append(differs, fmt.Sprintf("%s, %s: %s", f.profileName, name, text))
		}
	}
	return differs
}
