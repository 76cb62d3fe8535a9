// SPDX-License-Identifier: Apache-2.0

// Package nodeload filters out busy nodes, and scores the others, by Prometheus' measurements instead of pods'
// requests.
//
// A node's predicted load has three parts: the measurement, the pods in flight, which came after the measurement, less
// those that have ended, and the estimated use of the pod itself. A node without a measurement is considered neither
// idle nor busy: the args decide whether it passes the filter, and it is scored by requests, but as no less loaded than
// the average of the others.
//
// The files: resources.go, estimate.go, inflight.go, ended.go and owners.go have the parts of the prediction, view.go
// combines them for all nodes; cycle.go, filtering.go and scoring.go implement the extension points; score.go has the
// formulas; waking.go moves pending pods when a node cools; page.go and checking.go report to people. The packages
// source and collector fetch the measurements.
package nodeload

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
	"k8s.io/utils/clock"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "NodeLoad"

// NodeLoad filters and scores the nodes of one profile by their predicted load.
type NodeLoad struct {
	handle  framework.Handle
	clock   clock.WithDelayedExecution
	profile string
	source  measurements
	nodes   corelisters.NodeLister
	pods    corelisters.PodLister
	group   *group

	args         config.NodeLoadArgs
	resources    []resource
	maxSampleAge time.Duration
	endedAge     time.Duration // for how long ended pods are remembered: maxSampleAge and the longest window
	counters     counters

	viewed atomic.Value // *view
	first  sync.Mutex   // held while a cycle begins

	// mu guards the following fields, and serializes changes of viewed.
	mu     sync.Mutex
	move   func(framework.ClusterEvent)
	outage clock.Timer
	soon   bool  // whether pods are woken soon because pods ended
	gone   []run // the pods that ended, oldest first
}

var (
	_ framework.PreFilterPlugin   = &NodeLoad{}
	_ framework.FilterPlugin      = &NodeLoad{}
	_ framework.PreScorePlugin    = &NodeLoad{}
	_ framework.ScorePlugin       = &NodeLoad{}
	_ framework.ScoreExtensions   = &NodeLoad{}
	_ framework.EnqueueExtensions = &NodeLoad{}
	_ services.PodMover           = &NodeLoad{}
	_ services.Pager              = &NodeLoad{}
)

// measurements is the part of a collector's handle that the status needs.
type measurements interface {
	Status() collector.Status
}

// newPlugin returns the plugin for one profile, without measurements.
func newPlugin(obj runtime.Object, handle framework.Handle, clock clock.WithDelayedExecution, group *group) (*NodeLoad, error) {
	args, ok := obj.(*config.NodeLoadArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type NodeLoadArgs, got %T", Name, obj)
	}
	if err := validation.ValidateNodeLoadArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	pl := &NodeLoad{
		handle:       handle,
		clock:        clock,
		profile:      services.ProfileOf(handle),
		nodes:        handle.SharedInformerFactory().Core().V1().Nodes().Lister(),
		pods:         handle.SharedInformerFactory().Core().V1().Pods().Lister(),
		group:        group,
		args:         *args.DeepCopy(),
		maxSampleAge: args.MaxSampleAge.Duration,
	}
	for i := range pl.args.Resources {
		pl.resources = append(pl.resources, newResource(&pl.args.Resources[i]))
		if age := pl.maxSampleAge + pl.args.Resources[i].Window.Duration; age > pl.endedAge {
			pl.endedAge = age
		}
	}
	pl.counters = newCounters(pl.profile, pl.resources)
	pl.viewed.Store(newView(nil, pl.resources, nil, clock.Now(), pl.maxSampleAge))
	pl.watch(handle.SharedInformerFactory().Core().V1().Pods().Informer())
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *NodeLoad) Name() string { return Name }

// EventsToRegister returns the events of the cluster after which a rejected pod may fit: a node was added, or became
// usable. A node is added with a taint, so the removal of the taint is the event that wakes pods. A node that cools is
// not an event of the cluster; see waking.go.
func (pl *NodeLoad) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeAllocatable |
		framework.UpdateNodeTaint | framework.UpdateNodeCondition}}
}

// current returns the current view.
func (pl *NodeLoad) current() *view { return pl.viewed.Load().(*view) }

// swapped makes a snapshot the current one, and wakes the pods that may fit now.
func (pl *NodeLoad) swapped(snapshot *collector.Snapshot) {
	nodes, err := pl.nodes.List(labels.Everything())
	if err != nil {
		klog.ErrorS(err, "Measurements were not used because listing the nodes failed; next: wait for the next refresh",
			"plugin", Name, "profile", pl.profile)
		return
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	v, old := newView(snapshot, pl.resources, nodes, pl.clock.Now(), pl.maxSampleAge), pl.current()
	v.over = old.over
	pl.forget()
	for i := range pl.gone {
		v.takeOff(&pl.gone[i])
	}
	pods := pl.allPods()
	pl.counters.inFlight.Set(float64(v.learn(old, pods, pl.gone)))
	pl.viewed.Store(v)
	pl.wake(v, pods, v.inherit(old))
	// Pods are woken again when all these measurements have become too old and no others have come: the filter opens.
	if pl.outage != nil {
		pl.outage.Stop()
	}
	pl.outage = pl.wakeAfter(pl.maxSampleAge + time.Millisecond)
}

// allPods returns the pods on nodes, and those that wait.
func (pl *NodeLoad) allPods() []*v1.Pod {
	pods, err := pl.pods.List(labels.Everything())
	if err != nil {
		klog.ErrorS(err, "Pods in flight were not counted because listing the pods failed; next: wait for the next refresh",
			"plugin", Name, "profile", pl.profile)
	}
	return pods
}
