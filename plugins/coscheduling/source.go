// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
)

// GangOf implements gangs.Source.
func (pl *Coscheduling) GangOf(pod *v1.Pod) (*gangs.Gang, string) {
	name, found := groupOf(pod)
	if !found {
		return nil, ""
	}
	pl.groups.mutex.RLock()
	defer pl.groups.mutex.RUnlock()
	g := pl.groups.byName[name]
	if g == nil || g.object == nil {
		return nil, noPodGroup
	}
	// Each pod of a gang that is not complete comes here.
	if g.object.reason == "" && g.counts[ofOther] == 0 && !g.enough {
		return nil, "PodGroup " + g.name.String() + gangs.TooFew
	}
	return pl.gang(g, pod.Spec.SchedulerName)
}

// gang returns the gang of a group with a PodGroup, as GangOf does.
func (pl *Coscheduling) gang(g *group, scheduler string) (*gangs.Gang, string) {
	if g.object.reason != "" {
		return nil, g.object.reason
	}
	if len(g.members) > maxMembers {
		return nil, tooMany
	}
	gang := &gangs.Gang{
		Name: g.name.String(), MinMember: g.object.minMember, MinResources: g.object.minResources,
		Required: or(g.object.required, pl.args.RequiredTopologyKey), Preferred: or(g.object.preferred, pl.args.PreferredTopologyKey),
		Timeout: pl.args.AttemptTimeout.Duration, Reservation: pl.args.Reservation.Duration,
	}
	members, err := pl.groups.pods.GetIndexer().ByIndex(byGroup, gang.Name)
	if err != nil {
		return nil, err.Error()
	}
	others := 0
	for _, member := range members {
		switch pod := member.(*v1.Pod); {
		case !counts(pod):
		case pod.Spec.NodeName != "":
			gang.Placed = append(gang.Placed, pod)
		case pod.Spec.SchedulerName == scheduler:
			gang.Waiting = append(gang.Waiting, pod)
		default:
			others++
		}
	}
	if others > 0 && len(gang.Placed)+len(gang.Waiting) < gang.MinMember {
		return nil, ofOthers
	}
	for _, pods := range [][]*v1.Pod{gang.Placed, gang.Waiting} {
		pods := pods
		sort.Slice(pods, func(i, j int) bool { return pods[i].Name < pods[j].Name })
	}
	return gang, ""
}

// Halves implements gangs.Source.
func (pl *Coscheduling) Halves() []*gangs.Gang {
	pl.groups.mutex.Lock()
	defer pl.groups.mutex.Unlock()
	if len(pl.groups.halves) == 0 {
		return nil
	}
	var halves []*gangs.Gang
	for g := range pl.groups.halves {
		if gang, _ := pl.gang(g, pl.profile); gang != nil && len(gang.Waiting) > 0 {
			halves = append(halves, gang)
			pl.giveUp(g, gang)
		}
	}
	sort.Slice(halves, func(i, j int) bool { return halves[i].Name < halves[j].Name })
	return halves
}

// Attempted implements gangs.Source.
func (pl *Coscheduling) Attempted(_ *gangs.Gang, result gangs.Result, took time.Duration) {
	attempts.WithLabelValues(pl.profile, string(result)).Inc()
	durations.WithLabelValues(pl.profile, string(result)).Observe(took.Seconds())
}
