// SPDX-License-Identifier: Apache-2.0

// Package nodeload filters out busy nodes, and scores the others, by Prometheus' measurements instead of pods'
// requests.
//
// A node's predicted load has three parts: the measurement, the pods in flight, which came after the measurement, less
// those that have ended, and the estimated use of the pod itself. A node without a measurement is considered neither
// idle nor busy: the args decide whether it passes the filter, and it is scored by requests, but as no less loaded than
// the average of the others.
//
// The files, each of which uses those before it: resources.go, estimate.go and inflight.go have the parts of the
// prediction; measurements.go converts a snapshot; ended.go, rejected.go and owners.go keep what snapshots do not have,
// and learning.go learns from two of them; view.go combines all for the nodes. score.go has the formulas; cycle.go,
// filtering.go and scoring.go implement the extension points; page.go and checking.go report to people. waking.go moves
// pending pods when a node cools, and changes.go makes views. The packages source and collector fetch the measurements.
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
	source  statusSource
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
	ended  *endedPods // its UIDs are read without the lock
	// wakesSoon reports whether pods are woken soon because pods ended.
	wakesSoon bool
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

// statusSource is the part of a collector's handle that the status needs.
type statusSource interface {
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
		ended:        &endedPods{},
	}
	for i := range pl.args.Resources {
		pl.resources = append(pl.resources, newResource(&pl.args.Resources[i]))
		if age := pl.maxSampleAge + pl.args.Resources[i].Window.Duration; age > pl.endedAge {
			pl.endedAge = age
		}
	}
	pl.counters = newCounters(pl.profile, pl.resources)
	pl.viewed.Store(newView(newMeasurements(nil, pl.resources, nil, clock.Now(), pl.maxSampleAge), pl.ended))
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

// allPods returns the pods on nodes, and those that wait.
func (pl *NodeLoad) allPods() []*v1.Pod {
	pods, err := pl.pods.List(labels.Everything())
	if err != nil {
		klog.ErrorS(err, "Pods in flight were not counted because listing the pods failed; next: wait for the next refresh",
			"plugin", Name, "profile", pl.profile)
	}
	return pods
}
