// SPDX-License-Identifier: Apache-2.0

package validation

import "k8s.io/kubernetes/pkg/scheduler/apis/config"

// enables reports whether a start with the profile creates a plugin. Invalid arguments of NodeResourcesFit never stopped
// a scheduler that does not create it.
func enables(profile *config.KubeSchedulerProfile, name string) bool {
	if profile.Plugins == nil {
		return false
	}
	p := profile.Plugins
	for _, set := range []config.PluginSet{p.MultiPoint, p.PreFilter, p.Filter, p.PostFilter, p.PreScore, p.Score, p.Reserve, p.Permit, p.PreBind, p.PostBind} {
		for _, plugin := range set.Enabled {
			if plugin.Name == name {
				return true
			}
		}
	}
	return false
}
