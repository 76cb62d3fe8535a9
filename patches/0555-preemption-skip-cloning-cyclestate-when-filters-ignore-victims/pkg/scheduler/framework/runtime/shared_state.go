// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// NodeState returns a state for running filters on a node whose pods are removed and added back, if no plugin depends
// on that beyond this node. Then the CycleState need not be cloned. Otherwise it returns nil.
//
// No plugin depends on it if each filter that may reject a node was prepared from the pod and the node alone, and
// each plugin that counts pods beyond the node passes every node: removing pods that it ignores changes nothing.
func (f *frameworkImpl) NodeState(state *framework.CycleState, pod *v1.Pod) *framework.CycleState {
	c, _ := state.Prepared().(*cycle)
	if c == nil || c.framework != f || f.runAllFilters || !samePod(c.pod, pod) {
		return nil
	}
	active := sets.String{}
	for i := range c.filters {
		if c.filters[i].filter == nil {
			return nil
		}
		active.Insert(c.filters[i].name)
	}
	for _, pl := range f.preFilterPlugins {
		if pl.PreFilterExtensions() == nil {
			continue
		}
		if _, prepares := pl.(framework.PreparedFilterPlugin); !prepares || !framework.HasOwn(pl, preparedFilterPlugin) || active.Has(pl.Name()) || !f.filters(pl.Name()) {
			return nil
		}
	}
	shared := state.Share()
	shared.SetRejectionsHold(atomic.LoadInt32(&c.nominated) == 0 && byNodeAlone.IsSuperset(active))
	return shared
}

// byNodeAlone are the filters that only read the pod and the node, and in particular no informers.
var byNodeAlone = sets.NewString(names.NodeName, names.NodeUnschedulable, names.TaintToleration, names.NodeAffinity, names.NodePorts,
	names.NodeResourcesFit, names.VolumeRestrictions)

// noteNominated records that a filter ran on a node with nominated pods, which may be gone when it runs again.
func noteNominated(state *framework.CycleState, added bool) {
	if c, _ := state.Prepared().(*cycle); c != nil && added {
		atomic.StoreInt32(&c.nominated, 1)
	}
}

// filters reports whether a plugin is one of the profile's filters.
func (f *frameworkImpl) filters(name string) bool {
	for _, pl := range f.filterPlugins {
		if pl.Name() == name {
			return true
		}
	}
	return false
}

// samePod reports whether filters return the same for two versions of a pod.
func samePod(a, b *v1.Pod) bool {
	return a == b || a.UID == b.UID && equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Annotations, b.Annotations)
}
