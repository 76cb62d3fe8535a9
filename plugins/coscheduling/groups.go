// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
)

// byGroup is the name of the index of pods by their PodGroups.
const byGroup = "coscheduling/pod-group"

// groups has the PodGroups, and counts the states of their pods. It is the informer of PodGroups of the scheduler's
// informer factory, which starts it and waits for it with its own informers, and which all profiles share.
//
// A gang's pods are read from the index of the informer, which has each pod that the queue has. The states follow the
// informer's events a little later, and know in addition what the scheduler has done since.
type groups struct {
	cache.SharedIndexInformer
	pods cache.SharedIndexInformer

	mutex  sync.RWMutex
	byName map[types.NamespacedName]*group
	// halves are the groups of which some pods have nodes, but fewer than minMember, and others wait.
	halves map[*group]struct{}
	// profiles are the names of the profiles that have the plugin.
	profiles sets.String
	move     func(event framework.ClusterEvent)
}

// group is a PodGroup and its pods. Either may be missing.
type group struct {
	name    types.NamespacedName
	object  *podGroup
	members map[types.UID]state
	// counts are the numbers of members by state.
	counts [placed + 1]int
	// half is since when it is one of the halves, or was given up; zero if it is not.
	half time.Time
	// enough is true if it has at least minMember pods of this scheduler.
	enough bool
	// patching is true while a goroutine sets its phase.
	patching bool
}

// state is the state of a pod that is neither being deleted nor has ended.
type state int

const (
	none state = iota
	// ofOther: without a node, for another scheduler.
	ofOther
	waiting
	// reserved: the scheduler has a node for it, and has not bound it yet.
	reserved
	placed
)

// key is the type by which the informer factory knows the informer.
type key struct{ runtime.Object }

// Resource returns the resource that the informer reads.
func (*key) Resource() schema.GroupVersionResource { return resource }

// groupsOf returns the groups of an informer factory.
func groupsOf(factory informers.SharedInformerFactory, client dynamic.Interface, profile string) (*groups, error) {
	x := factory.InformerFor(&key{}, func(_ clientset.Interface, resync time.Duration) cache.SharedIndexInformer {
		return &groups{
			SharedIndexInformer: dynamicinformer.NewFilteredDynamicInformer(client, resource, metav1.NamespaceAll, resync, cache.Indexers{}, nil).Informer(),
			byName:              map[types.NamespacedName]*group{}, halves: map[*group]struct{}{}, profiles: sets.NewString(),
		}
	}).(*groups)
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.profiles.Insert(profile)
	if x.pods != nil {
		return x, nil
	}
	x.pods = factory.Core().V1().Pods().Informer()
	x.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj interface{}) { x.podChanged(nil, obj.(*v1.Pod)) },
		UpdateFunc: func(before, after interface{}) { x.podChanged(before.(*v1.Pod), after.(*v1.Pod)) },
		DeleteFunc: func(obj interface{}) {
			if pod, ok := known(obj).(*v1.Pod); ok {
				x.podChanged(pod, nil)
			}
		},
	})
	x.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj interface{}) { x.groupChanged(nil, obj.(*unstructured.Unstructured)) },
		UpdateFunc: func(before, after interface{}) {
			x.groupChanged(before.(*unstructured.Unstructured), after.(*unstructured.Unstructured))
		},
		DeleteFunc: func(obj interface{}) {
			if object, ok := known(obj).(*unstructured.Unstructured); ok {
				x.groupDeleted(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
			}
		},
	})
	return x, x.pods.AddIndexers(cache.Indexers{byGroup: func(obj interface{}) ([]string, error) {
		if pod, ok := obj.(*v1.Pod); ok {
			if name, found := groupOf(pod); found {
				return []string{name.String()}, nil
			}
		}
		return nil, nil
	}})
}

// known returns the object of a deletion.
func known(obj interface{}) interface{} {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return missed.Obj
	}
	return obj
}

// counts reports whether a pod counts for its gang.
func counts(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}

// podChanged follows a pod. before is nil for a new one, and after for one that is gone.
func (x *groups) podChanged(before, after *v1.Pod) {
	if (before == nil || !labelled(before)) && (after == nil || !labelled(after)) {
		return
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if before != nil && (after == nil || after.UID != before.UID || after.Labels[gangs.Label] != before.Labels[gangs.Label]) {
		if name, found := groupOf(before); found {
			x.set(name, before.UID, none)
		}
	}
	if after == nil {
		return
	}
	name, found := groupOf(after)
	if !found {
		return
	}
	now := none
	switch {
	case !counts(after):
	case after.Spec.NodeName != "":
		now = placed
	case !x.profiles.Has(after.Spec.SchedulerName):
		now = ofOther
	default:
		now = waiting
		if g := x.byName[name]; g != nil && g.members[after.UID] > waiting {
			return // The scheduler knows better: this is an event from before it chose a node.
		}
	}
	x.set(name, after.UID, now)
}

// mark sets the state that the scheduler has chosen for a pod, unless the pod is gone, and returns its group.
func (x *groups) mark(pod *v1.Pod, to state) *group {
	name, found := groupOf(pod)
	if !found {
		return nil
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	g := x.group(name)
	// The event of a pod that the informer's store has is still to come, so no state stays for ever.
	object, _, _ := x.pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
	stored, found := object.(*v1.Pod)
	if found && stored.UID == pod.UID && stored.Labels[gangs.Label] == name.Name && counts(stored) && g.members[pod.UID] != placed {
		x.set(name, pod.UID, to)
	} else {
		x.changed(g)
	}
	return g
}

// groupChanged follows a PodGroup. before is nil for a new one.
func (x *groups) groupChanged(before, after *unstructured.Unstructured) {
	name := types.NamespacedName{Namespace: after.GetNamespace(), Name: after.GetName()}
	x.mutex.Lock()
	g := x.group(name)
	g.object = decode(after)
	x.changed(g)
	move := x.move
	x.mutex.Unlock()
	if move != nil && (before == nil || !same(before, after)) {
		move(moved)
	}
}

func (x *groups) groupDeleted(name types.NamespacedName) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	g := x.group(name)
	g.object = nil
	x.changed(g)
}

// group returns a group, which it adds if it is not known.
func (x *groups) group(name types.NamespacedName) *group {
	g := x.byName[name]
	if g == nil {
		g = &group{name: name, members: map[types.UID]state{}}
		x.byName[name] = g
	}
	return g
}

// set sets the state of a pod.
func (x *groups) set(name types.NamespacedName, pod types.UID, now state) {
	g := x.group(name)
	g.counts[g.members[pod]]--
	g.counts[now]++
	g.members[pod] = now
	if now == none {
		delete(g.members, pod)
	}
	x.changed(g)
}

// changed follows a change of a group: it may have enough pods now, be a half gang, or be gone.
func (x *groups) changed(g *group) {
	before := g.enough
	g.enough = g.object != nil && len(g.members)-g.counts[ofOther] >= g.object.minMember
	if g.enough && !before && x.move != nil {
		// The scheduler may have rejected the last pod before its event came here.
		go x.move(moved)
	}
	half := g.object != nil && g.counts[placed] > 0 && g.counts[waiting] > 0 &&
		g.counts[placed]+g.counts[reserved] < g.object.minMember
	switch {
	case !half:
		delete(x.halves, g)
		g.half = time.Time{}
	case g.half.IsZero():
		x.halves[g] = struct{}{}
		g.half = time.Now()
	}
	halfGangs.WithLabelValues().Set(float64(len(x.halves)))
	if g.object == nil && len(g.members) == 0 {
		delete(x.byName, g.name)
	}
}

// object returns a PodGroup, or nil.
func (x *groups) object(name types.NamespacedName) *podGroup {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	if g := x.byName[name]; g != nil {
		return g.object
	}
	return nil
}
