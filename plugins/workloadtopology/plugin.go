// SPDX-License-Identifier: Apache-2.0

// Package workloadtopology places the pods of a job near to the pods that they talk to, without piling the job up on one
// node, and away from nodes that are hot.
//
// The files: index.go keeps how many peers are in each domain of the topology; cycle.go finds what concerns a pod;
// filtering.go and scoring.go follow it; score.go has the formulas; peers.go reads the pod's annotation.
package workloadtopology

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "WorkloadTopology"

// WorkloadTopology filters and scores nodes by where the peers of a pod are.
type WorkloadTopology struct {
	handle   framework.Handle
	args     config.WorkloadTopologyArgs
	index    *index
	costs    []int64
	counters counters
	// filters says whether any argument rejects nodes.
	filters bool

	// first lets one of a cycle's workers begin the cycle, if neither PreFilter nor PreScore is enabled.
	first sync.Mutex
}

var (
	_ framework.PreFilterPlugin     = &WorkloadTopology{}
	_ framework.PreFilterExtensions = &WorkloadTopology{}
	_ framework.FilterPlugin        = &WorkloadTopology{}
	_ framework.PreScorePlugin      = &WorkloadTopology{}
	_ framework.ScorePlugin         = &WorkloadTopology{}
	_ framework.EnqueueExtensions   = &WorkloadTopology{}
	_ services.PreparedFilter       = &WorkloadTopology{}
	_ services.BatchScorer          = &WorkloadTopology{}
)

// New makes the plugin for one profile. It is called when the scheduler starts; an error from it stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.WorkloadTopologyArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type WorkloadTopologyArgs, got %T", Name, obj)
	}
	if err := validation.ValidateWorkloadTopologyArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	pl := &WorkloadTopology{handle: handle, args: *args.DeepCopy(), counters: newCounters(handle)}
	for _, level := range pl.args.Levels {
		pl.costs = append(pl.costs, int64(level.Cost))
	}
	pl.filters = pl.args.MaxPerNode != nil
	for i := range pl.args.Edges {
		pl.filters = pl.filters || pl.args.Edges[i].Within != ""
	}
	var err error
	if pl.index, err = newIndex(&pl.args); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *WorkloadTopology) Name() string {
	return Name
}

// EventsToRegister says what can make a pod fit that this plugin rejected: a node that comes, gets into another domain or
// becomes usable (its taints and resources are here because an event of a node wakes no pod that it has no room for), and
// a pod that goes. That a pod of the group was placed, or has other labels, wakes no pod: upstream tells of that only those
// that have affinity to it.
func (pl *WorkloadTopology) EventsToRegister() []framework.ClusterEvent {
	if !pl.filters {
		return nil
	}
	return []framework.ClusterEvent{
		{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel | framework.UpdateNodeTaint | framework.UpdateNodeAllocatable},
		{Resource: framework.Pod, ActionType: framework.Delete},
	}
}
