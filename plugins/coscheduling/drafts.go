// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
)

var _ records.GangDrafter = &Coscheduling{}

// GangOfManifest implements records.GangDrafter.
func (pl *Coscheduling) GangOfManifest(object *unstructured.Unstructured, pods []*v1.Pod) (*gangs.Gang, string) {
	name, _ := groupOf(pods[0])
	pl.groups.mutex.RLock()
	defer pl.groups.mutex.RUnlock()
	draft := &group{name: name}
	if known := pl.groups.byName[name]; known != nil {
		draft.object = known.object
	}
	if object != nil {
		draft.object = decode(object)
	}
	if draft.object == nil {
		return nil, noPodGroup
	}
	gang, reason := pl.gang(draft, pods[0].Spec.SchedulerName)
	if gang != nil {
		gang.Waiting = pods
	}
	return gang, reason
}
