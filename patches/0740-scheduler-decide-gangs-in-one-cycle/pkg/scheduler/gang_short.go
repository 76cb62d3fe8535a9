// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
)

// byNodeAlone is the framework's data of a cycle.
type byNodeAlone interface {
	// ByNodeAlone reports whether all filters only read the pod, the node, and pods that are nominated for it.
	ByNodeAlone(state *framework.CycleState, pod *v1.Pod) bool
}

// Short implements gangs.Cluster for gangs that were attempted before. If filters only read the pod and the node, a node
// has the same number of places whatever happens to others. So each node is filled without scores, and the first pod
// without a place is tried as in any attempt.
func (a *gangAttempt) Short(ctx context.Context, pods []*v1.Pod, domain gangs.Domain, needed int, preempt bool) *gangs.Try {
	m, state := a.members[pods[0].UID], framework.NewCycleState()
	if !m.info.Together || !gangs.Independent(m.info.Pod) || len(a.Extenders) > 0 || a.countsReserved(m.fwk) {
		return nil
	}
	(&gangs.Cycle{}).Set(state)
	if !m.fwk.RunPreFilterPlugins(ctx, state, m.info.Pod).IsSuccess() {
		return nil
	}
	cycle, ok := state.Prepared().(byNodeAlone)
	if !ok || !cycle.ByNodeAlone(state, m.info.Pod) {
		return nil
	}
	passes := func(node *framework.NodeInfo) bool {
		return m.fwk.RunFilterPluginsWithNominatedPods(ctx, state, m.info.Pod, node).IsSuccess()
	}
	var free []string
	for _, node := range a.Nodes() {
		if domain.Has(node.Node()) && passes(node) {
			if free = append(free, node.Node().Name); len(free) == needed {
				return nil
			}
		}
	}
	snapshot, found := a.algorithm.nodeInfoSnapshot, 0
	defer func(edits int) {
		snapshot.Undo(edits)
		a.lastShape = ""
	}(snapshot.Edits())
	for _, name := range free {
		err := snapshot.Edit(name, func(node *framework.NodeInfo) error {
			for next := true; next && found < needed; next = passes(node) {
				info := *a.members[pods[found].UID].info.PodInfo
				pod := *info.Pod
				pod.Spec.NodeName, info.Pod = name, &pod
				node.AddPodInfo(&info)
				found++
			}
			return nil
		})
		if err != nil || found == needed {
			return nil
		}
	}
	switch err := a.Place(ctx, pods[found], domain, preempt).(type) {
	case nil: // Evicting pods helps it, and may help the gang.
		a.Undo(len(a.placed) - 1)
	case *framework.FitError:
		return &gangs.Try{Domain: domain, Found: found, Unfit: pods[found], Err: err}
	}
	return nil
}

// countsReserved reports whether a plugin may count the pods that it has reserved, such as for a quota.
func (a *gangAttempt) countsReserved(fwk framework.Framework) bool {
	for _, plugin := range fwk.ListPlugins().Reserve.Enabled {
		if plugin.Name != names.VolumeBinding && plugin.Name != a.source.Name() {
			return true
		}
	}
	return false
}
