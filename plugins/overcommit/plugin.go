// SPDX-License-Identifier: Apache-2.0

// Package overcommit places pods on CPU that other pods have requested and do not use.
//
// Such a pod asks for the extended resource overcommit.scheduler/millicpu, and requests no CPU. No node publishes the
// resource: a kubelet drops it before it checks a pod, so all accounting is done here. The pods' CPU shares are the
// smallest, so ordinary pods, which are all others, get the CPU that they have requested whenever they need it.
//
// A node takes overcommitting pods as long as they ask for no more than its allocatable CPU, less a headroom, less the
// predicted peak of its ordinary pods. A node without a recent measurement takes no more. For ordinary pods the plugin
// does nothing.
package overcommit

import (
	"context"
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/overcommitting"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "Overcommit"

// The reasons for rejecting a node. They are constant, because the scheduler writes them to the condition of a pending
// pod whenever they differ from the last attempt's.
const (
	full       = "node(s) had too little unused CPU"
	unmeasured = "node(s) had no recent measurement of CPU use"
)

// Overcommit filters and scores the nodes of one profile for overcommitting pods.
type Overcommit struct {
	predictor
	handle  framework.Handle
	clock   clock.PassiveClock
	profile string
	// share is the share of the allocatable CPU that is left without the headroom.
	share float64
	nodes corelisters.NodeLister
	pods  corelisters.PodLister
	group *group
	// source is nil with the predictor Requests.
	source *collector.Handle
	viewed atomicView
}

var (
	_ framework.PreFilterPlugin   = &Overcommit{}
	_ framework.FilterPlugin      = &Overcommit{}
	_ framework.ScorePlugin       = &Overcommit{}
	_ framework.EnqueueExtensions = &Overcommit{}
	_ services.PreparedFilter     = &Overcommit{}
	_ services.EndChecker         = &Overcommit{}
	_ services.Pager              = &Overcommit{}
	_ services.SourceChecker      = &Overcommit{}
)

// Factory returns the factory of a scheduler's plugins, one per profile. With the Collectors of NodeLoad's factory, both
// share the connection, the requests and the snapshots of a Prometheus.
func Factory(collectors *collector.Collectors) frameworkruntime.PluginFactory {
	group := &group{}
	return func(args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
		pl, err := newPlugin(args, handle, clock.RealClock{}, group)
		if err != nil || pl.args.Predictor == config.OvercommitRequests {
			return pl, err
		}
		spec := pl.spec()
		nodes := handle.SharedInformerFactory().Core().V1().Nodes()
		spec.Nodes, spec.Synced, spec.Recorder = nodes.Lister(), nodes.Informer().HasSynced, handle.EventRecorder()
		spec.Swapped = func(snapshot *collector.Snapshot) { pl.viewed.Store(newView(snapshot)) }
		spec.Refreshed = func() { pl.setMetrics(pl.look()) }
		if pl.source, err = collectors.Join(spec); err != nil {
			return nil, fmt.Errorf("%s: %w", Name, err)
		}
		return pl, nil
	}
}

// newPlugin returns the plugin for one profile, without measurements.
func newPlugin(object runtime.Object, handle framework.Handle, clock clock.PassiveClock, group *group) (*Overcommit, error) {
	args, ok := object.(*config.OvercommitArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type OvercommitArgs, got %T", Name, object)
	}
	if err := validation.ValidateOvercommitArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	informers := handle.SharedInformerFactory().Core().V1()
	pl := &Overcommit{
		predictor: newPredictor(args, collector.Simulated(handle) != nil),
		handle:    handle,
		clock:     clock,
		profile:   services.ProfileOf(handle),
		share:     1 - float64(*args.HeadroomPercent)/100,
		nodes:     informers.Nodes().Lister(),
		pods:      informers.Pods().Lister(),
		group:     group,
	}
	pl.viewed.Store(newView(nil))
	group.add(pl)
	return pl, nil
}

// spec returns what the profile asks of a collector, without the nodes.
func (pl *Overcommit) spec() collector.Spec {
	spec := collector.Spec{
		Source:          collector.PrometheusKey(&pl.args.Prometheus),
		Connect:         func() (source.Source, error) { return source.New(pl.args.Prometheus) },
		RefreshInterval: pl.args.RefreshInterval.Duration,
		MaxSampleAge:    pl.args.MaxSampleAge.Duration,
		Resources:       pl.resources,
		Profile:         pl.profile,
	}
	if simulated := collector.Simulated(pl.handle); simulated != nil {
		spec.Connect = func() (source.Source, error) { return simulated, nil }
	}
	return spec
}

// Name returns the name of the plugin.
func (pl *Overcommit) Name() string { return Name }

// EventsToRegister returns the event after which a rejected pod may fit: a pod ended. The queue retries all pods after 60
// to 90 seconds, in which a predicted peak may have become lower. Events of nodes would change nothing: before a pod is
// retried for a node, the scheduler checks that the node has all extended resources that the pod asks for.
func (pl *Overcommit) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{{Resource: framework.Pod, ActionType: framework.Delete}}
}

// EndHelps reports whether the end of a pod makes room at once: that of an overcommitting pod, or of a pod whose request
// is counted.
func (pl *Overcommit) EndHelps(ended, _ *v1.Pod) bool {
	return overcommitting.Asked(ended) > 0 || pl.args.Predictor == config.OvercommitRequests
}

// stateKey is the key of the *cycle in the CycleState.
const stateKey framework.StateKey = Name

// cycle is the state of a scheduling cycle of an overcommitting pod. It never changes.
type cycle struct {
	asked int64
	view  *view
	// oldest is the time, in nanoseconds since 1970, before which a measurement is too old.
	oldest int64
}

// Clone returns the cycle itself.
func (c *cycle) Clone() framework.StateData { return c }

// PreFilter begins the cycle of an overcommitting pod, or rejects it for its mistake. It returns at once for all others.
func (pl *Overcommit) PreFilter(_ context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	if mistake := overcommitting.Mistake(pod); mistake != "" {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, mistake)
	}
	if asked := overcommitting.Asked(pod); asked > 0 {
		v := pl.viewed.Load()
		state.Write(stateKey, &cycle{asked, v, v.snapshot.OldestAt(pl.clock.Now(), pl.args.MaxSampleAge.Duration)})
	}
	return nil
}

// PreFilterExtensions returns nil: the NodeInfo has what preemption changes.
func (pl *Overcommit) PreFilterExtensions() framework.PreFilterExtensions { return nil }

// cycleOf returns the cycle of an overcommitting pod, or nil.
func cycleOf(state *framework.CycleState) *cycle {
	if data, err := state.Read(stateKey); err == nil {
		return data.(*cycle)
	}
	return nil
}

// PrepareFilter returns the filter of an overcommitting pod; nil for all others.
func (pl *Overcommit) PrepareFilter(state *framework.CycleState, _ *v1.Pod) func(nodeInfo *framework.NodeInfo) *framework.Status {
	c := cycleOf(state)
	if c == nil {
		return nil
	}
	var (
		tooLittle = framework.NewStatus(framework.Unschedulable, full)
		unknown   = framework.NewStatus(framework.UnschedulableAndUnresolvable, unmeasured)
	)
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		left, measured := pl.left(c, nodeInfo)
		switch {
		case !measured:
			return unknown
		case left < c.asked:
			return tooLittle
		}
		return nil
	}
}

// Filter rejects a node that is not measured, or whose unused CPU is less than the pod asks for. Preemption may evict
// overcommitting pods of a lower priority; evicting ordinary pods makes no room.
func (pl *Overcommit) Filter(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	if nodeInfo.Node() == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	if filter := pl.PrepareFilter(state, pod); filter != nil {
		return filter(nodeInfo)
	}
	return nil
}

// Score prefers the node on which the largest share of its allocatable CPU is left. It scores ordinary pods 0.
func (pl *Overcommit) Score(_ context.Context, state *framework.CycleState, _ *v1.Pod, nodeName string) (int64, *framework.Status) {
	c := cycleOf(state)
	if c == nil {
		return 0, nil
	}
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return 0, framework.AsStatus(err)
	}
	left, _ := pl.left(c, nodeInfo)
	if left -= c.asked; left < 0 || nodeInfo.Allocatable.MilliCPU <= 0 {
		return 0, nil
	}
	return framework.MaxNodeScore * left / nodeInfo.Allocatable.MilliCPU, nil
}

// ScoreExtensions returns nil: scores are from 0 to 100.
func (pl *Overcommit) ScoreExtensions() framework.ScoreExtensions { return nil }

// left returns what overcommitting pods may still ask for on a node, in thousandths of a core, below zero if they ask
// for too much; false if the node is not measured.
func (pl *Overcommit) left(c *cycle, nodeInfo *framework.NodeInfo) (int64, bool) {
	peak, measured := pl.peakOf(c, nodeInfo)
	used := nodeInfo.Requested.ScalarResources[config.OvercommitResource]
	if used < 0 || used > math.MaxInt32 { // The sum over pods that no scheduler has checked can overflow.
		used = math.MaxInt32
	}
	if !measured {
		return 0, false
	}
	return pl.bound(nodeInfo.Allocatable.MilliCPU, peak) - used, true
}

// bound returns what overcommitting pods may ask for together, in thousandths of a core.
func (pl *Overcommit) bound(allocatable, peak int64) int64 {
	if peak > math.MaxInt32 { // What is left stays far from the bounds of an int64.
		peak = math.MaxInt32
	}
	return int64(math.Floor(float64(allocatable)*pl.share)) - peak
}
