// SPDX-License-Identifier: Apache-2.0

package volumebinding

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
)

// boundVolumesFilter returns a filter that has read the node affinity of a pod's volumes once. It returns nil if not all
// claims are bound, or if a volume must be read for each node.
func (pl *VolumeBinding) boundVolumesFilter(data *stateData) func(*framework.NodeInfo) *framework.Status {
	binder, ok := pl.Binder.(*volumeBinder)
	if !ok || len(data.claimsToBind) > 0 || klog.V(4).Enabled() {
		return nil
	}
	volumes, ok := binder.boundVolumes(data.boundClaims)
	if !ok {
		return nil
	}
	conflict := framework.NewStatus(framework.UnschedulableAndUnresolvable, string(ErrReasonNodeConflict)).WithFailedPlugin(Name)
	// No node has volumes to bind.
	nothing := &PodVolumes{}
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		node := nodeInfo.Node()
		for _, terms := range volumes {
			if !terms.MatchLabels(node.Labels) {
				return conflict
			}
		}
		data.Lock()
		data.podVolumesByNode[node.Name] = nothing
		data.Unlock()
		return nil
	}
}

// boundVolumes returns the node affinities of the claims' volumes. It returns false if one of them cannot be
// determined for all nodes at once: the volume is missing, its driver depends on the node, or a term is invalid.
func (b *volumeBinder) boundVolumes(claims []*v1.PersistentVolumeClaim) ([]nodeaffinity.Terms, bool) {
	var volumes []nodeaffinity.Terms
	for _, claim := range claims {
		pv, err := b.pvCache.GetPV(claim.Spec.VolumeName)
		if err != nil || b.translator.IsPVMigratable(pv) {
			return nil, false
		}
		if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
			continue
		}
		terms, ok := nodeaffinity.NewTerms(pv.Spec.NodeAffinity.Required.NodeSelectorTerms)
		if !ok {
			return nil, false
		}
		volumes = append(volumes, terms)
	}
	return volumes, true
}
