// SPDX-License-Identifier: Apache-2.0

// Package nodeload keeps pods off nodes that are busy, and prefers those that are not, by what Prometheus measured and
// not by what pods request.
//
// What a node's load will be with a pod is predicted in three parts: what was measured, what is in flight because pods
// came after the measurement, and what the pod itself is estimated to use. A node without a measurement is never taken
// for an idle one, nor for a busy one: it passes the filter or not as the args say, and is scored by requests, but as
// no less loaded than the others are on the average.
//
// The files: resources.go, estimate.go and inflight.go have what the prediction is made of, view.go puts it together
// for all nodes; cycle.go, filtering.go and scoring.go follow a pod; score.go has the formulas; waking.go moves waiting
// pods when a node cools; page.go and checking.go are for people. The packages source and collector fetch the
// measurements.
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
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
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

	args            config.NodeLoadArgs
	resources       []resource
	maxSampleAge    time.Duration
	minFreshPercent int
	neutralFallback bool
	closedOnStale   bool
	counters        counters

	viewed atomic.Value // *view
	first  sync.Mutex   // is held to begin a cycle

	// mu guards what a swap changes, and lets none come before the plugin is made.
	mu     sync.Mutex
	move   func(framework.ClusterEvent)
	outage clock.Timer
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

// measurements is where a profile's snapshots come from: a collector's subscription.
type measurements interface {
	// Slot returns where the samples of a resource are.
	Slot(resource int) int
	// Touch says that they are needed.
	Touch()
	// Status says how it goes.
	Status() collector.Status
}

// open begins to fetch measurements for a profile, and has swapped called with each new snapshot, one after the other.
type open func(pl *NodeLoad, swapped func(*measured.Snapshot)) (measurements, error)

// newPlugin makes the plugin for one profile.
func newPlugin(obj runtime.Object, handle framework.Handle, clock clock.WithDelayedExecution, group *group, open open) (*NodeLoad, error) {
	args, ok := obj.(*config.NodeLoadArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type NodeLoadArgs, got %T", Name, obj)
	}
	if err := validation.ValidateNodeLoadArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	pl := &NodeLoad{
		handle:          handle,
		clock:           clock,
		profile:         services.ProfileOf(handle),
		nodes:           handle.SharedInformerFactory().Core().V1().Nodes().Lister(),
		pods:            handle.SharedInformerFactory().Core().V1().Pods().Lister(),
		group:           group,
		args:            *args.DeepCopy(),
		maxSampleAge:    args.MaxSampleAge.Duration,
		minFreshPercent: int(args.MinFreshNodesPercent),
		neutralFallback: args.Fallback == config.NodeLoadFallbackNeutral,
		closedOnStale:   args.FilterOnStale == config.NodeLoadFilterClosed,
	}
	for i := range pl.args.Resources {
		pl.resources = append(pl.resources, newResource(&pl.args.Resources[i]))
	}
	pl.counters = newCounters(pl.profile, pl.resources)
	pl.viewed.Store(newView(nil, pl.resources, nil, clock.Now(), pl.maxSampleAge))

	pl.mu.Lock()
	defer pl.mu.Unlock()
	var err error
	if pl.source, err = open(pl, pl.swapped); err != nil {
		return nil, err
	}
	for i := range pl.resources {
		pl.resources[i].slot = pl.source.Slot(i)
	}
	group.add(pl)
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *NodeLoad) Name() string {
	return Name
}

// EventsToRegister names the events of the cluster after which a rejected pod may fit at once: a node came, or one became
// usable. A node joins with a taint, so that its coming alone wakes no pod: it is the end of the taint that does. That a
// node cools is no event of the cluster; see waking.go. When a pod is deleted, no node cools at once.
func (pl *NodeLoad) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeAllocatable |
		framework.UpdateNodeTaint | framework.UpdateNodeCondition}}
}

// current returns the view that a cycle which begins now goes by.
func (pl *NodeLoad) current() *view {
	return pl.viewed.Load().(*view)
}

// swapped is called with each new snapshot.
func (pl *NodeLoad) swapped(snapshot *measured.Snapshot) {
	nodes, err := pl.nodes.List(labels.Everything())
	if err != nil {
		klog.ErrorS(err, "Measurements are not used, because listing the nodes failed; next: wait for the next refresh",
			"plugin", Name, "profile", pl.profile)
		return
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	v, old := newView(snapshot, pl.resources, nodes, pl.clock.Now(), pl.maxSampleAge), pl.current()
	pl.viewed.Store(v)
	pl.wake(v, v.inherit(old))
	pl.awaitOutage(v)
}

// all returns the pods that are on nodes, and those that wait.
func (pl *NodeLoad) all() []*v1.Pod {
	pods, err := pl.pods.List(labels.Everything())
	if err != nil {
		klog.ErrorS(err, "Pods in flight are not counted, because listing the pods failed; next: wait for the next refresh",
			"plugin", Name, "profile", pl.profile)
	}
	return pods
}
