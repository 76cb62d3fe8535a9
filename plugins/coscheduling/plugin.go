// SPDX-License-Identifier: Apache-2.0

// Package coscheduling knows which pods only run together: those whose label names the same PodGroup. The scheduler
// decides them as one (package gangs).
//
// podgroup.go decodes PodGroups, groups.go has the states of their pods, source.go tells the scheduler of gangs,
// filtering.go has what it is told in return, status.go sets phases, halves.go gives up gangs that stay incomplete.
package coscheduling

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/carried"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

// Name is the name of the plugin in the registry and in configurations. It replaces the plugin of
// sigs.k8s.io/scheduler-plugins.
const Name = "Coscheduling"

// Coscheduling knows the gangs of one profile.
type Coscheduling struct {
	handle  framework.Handle
	client  dynamic.Interface
	args    *config.CoschedulingArgs
	profile string
	groups  *groups
}

var (
	_ gangs.Source                = &Coscheduling{}
	_ framework.QueueSortPlugin   = &Coscheduling{}
	_ framework.PreFilterPlugin   = &Coscheduling{}
	_ framework.FilterPlugin      = &Coscheduling{}
	_ framework.ReservePlugin     = &Coscheduling{}
	_ framework.PostBindPlugin    = &Coscheduling{}
	_ framework.EnqueueExtensions = &Coscheduling{}
	_ services.PreparedFilter     = &Coscheduling{}
	_ services.PodMover           = &Coscheduling{}
	_ services.EndChecker         = &Coscheduling{}
)

// needs is what the plugin needs in the cluster. --validate-config checks it, too.
var needs = carried.Plugin{Name: Name, CRDs: []carried.CRD{{
	Name: "podgroups.scheduling.sigs.k8s.io", Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
}}}

func init() { carried.Register(needs) }

// New creates the plugin for one profile. It is called when the scheduler starts, and its error stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.CoschedulingArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type CoschedulingArgs, got %T", Name, obj)
	}
	if err := validation.ValidateCoschedulingArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	kubeConfig := handle.KubeConfig()
	if kubeConfig == nil {
		return nil, errors.New(Name + ": it reads PodGroups, and there is no configuration for a client")
	}
	if err := needs.Check(kubeConfig); err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(kubeConfig)
	if err != nil {
		return nil, err
	}
	return newPlugin(args, handle, client)
}

func newPlugin(args *config.CoschedulingArgs, handle framework.Handle, client dynamic.Interface) (*Coscheduling, error) {
	pl := &Coscheduling{handle: handle, client: client, args: args, profile: services.ProfileOf(handle)}
	var err error
	pl.groups, err = groupsOf(handle.SharedInformerFactory(), client, pl.profile)
	return pl, err
}

// Name returns the name of the plugin.
func (pl *Coscheduling) Name() string {
	return Name
}

// moved is the event of a PodGroup that was created or changed. Its Resource has the form that the scheduler needs to
// make an informer of its own.
var moved = framework.ClusterEvent{
	Resource:   framework.GVK("podgroups.v1alpha1.scheduling.sigs.k8s.io"),
	ActionType: framework.Add,
	Label:      "PodGroupChanged",
}

// EventsToRegister returns the events after which a rejected gang may fit: more room, other topology, and its PodGroup.
// Changes of PodGroups are not among them, because most only concern the status; SetPodMover is for the others.
func (pl *Coscheduling) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{
		{Resource: framework.Pod, ActionType: framework.Add | framework.Delete},
		{
			Resource: framework.Node,
			ActionType: framework.Add | framework.UpdateNodeAllocatable |
				framework.UpdateNodeLabel | framework.UpdateNodeTaint,
		},
		{Resource: moved.Resource, ActionType: moved.ActionType},
	}
}

// EndHelps reports whether the gang of a pending pod has enough pods, and may lack room.
func (pl *Coscheduling) EndHelps(_, pending *v1.Pod) bool {
	name, _ := groupOf(pending)
	pl.groups.mutex.RLock()
	defer pl.groups.mutex.RUnlock()
	g := pl.groups.byName[name]
	return g != nil && g.enough
}

// SetPodMover sets the function that moves pending pods when a PodGroup was created or changed.
func (pl *Coscheduling) SetPodMover(move func(event framework.ClusterEvent)) {
	pl.groups.mutex.Lock()
	defer pl.groups.mutex.Unlock()
	pl.groups.move = move
}

// Less sorts pods by priority, then by the time since when they wait, which for a pod of a gang is the creation of its
// PodGroup, and then by name, which for a pod of a gang begins with that of its PodGroup. So the pods of a gang with the
// same priority are neighbours.
func (pl *Coscheduling) Less(a, b *framework.QueuedPodInfo) bool {
	if ours, theirs := corev1helpers.PodPriority(a.Pod), corev1helpers.PodPriority(b.Pod); ours != theirs {
		return ours > theirs
	}
	ofA, ofB := pl.entryOf(a), pl.entryOf(b)
	switch {
	case !ofA.since.Equal(ofB.since):
		return ofA.since.Before(ofB.since)
	case ofA.namespace != ofB.namespace:
		return ofA.namespace < ofB.namespace
	case ofA.name != ofB.name:
		return ofA.name < ofB.name
	}
	return a.Pod.Name < b.Pod.Name
}

// entry is the place of a pod, or of a gang, in the queue.
type entry struct {
	since           time.Time
	namespace, name string
}

func (pl *Coscheduling) entryOf(info *framework.QueuedPodInfo) entry {
	of := entry{info.InitialAttemptTimestamp, info.Pod.Namespace, info.Pod.Name}
	if key, found := groupOf(info.Pod); found {
		of.name = key.Name
		if object := pl.groups.object(key); object != nil {
			of.since = object.created
		}
	}
	return of
}

// labelled reports whether a pod belongs to a PodGroup.
func labelled(pod *v1.Pod) bool { return pod.Labels[gangs.Label] != "" }
