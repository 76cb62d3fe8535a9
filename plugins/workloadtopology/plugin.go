// SPDX-License-Identifier: Apache-2.0

// Package workloadtopology places the pods of a job near the pods that they communicate with, without too many of them
// on one node, and away from hot nodes. It does nothing for pods that neither their annotation nor the arguments assign
// to a job.
//
// group.go finds the job of a pod, index.go counts its pods in each domain of the topology, cycle.go has the data of a
// cycle, filtering.go and scoring.go have the extension points, and score.go has the formulas.
package workloadtopology

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "WorkloadTopology"

// WorkloadTopology filters and scores nodes by the location of a pod's peers.
type WorkloadTopology struct {
	handle   framework.Handle
	args     config.WorkloadTopologyArgs
	index    *index
	costs    []int64
	counters counters

	// first ensures that only one of the workers begins a cycle, if neither PreFilter nor PreScore is enabled.
	first sync.Mutex

	// ended is the last pod of EndHelps, which the queue calls for all waiting pods while it is locked, and endedGroup
	// its group.
	ended      *v1.Pod
	endedGroup string
}

var (
	_ framework.PreFilterPlugin     = &WorkloadTopology{}
	_ framework.PreFilterExtensions = &WorkloadTopology{}
	_ framework.FilterPlugin        = &WorkloadTopology{}
	_ framework.PreScorePlugin      = &WorkloadTopology{}
	_ framework.ScorePlugin         = &WorkloadTopology{}
	_ framework.EnqueueExtensions   = &WorkloadTopology{}
	_ services.EndChecker           = &WorkloadTopology{}
	_ services.PreparedFilter       = &WorkloadTopology{}
	_ services.BatchScorer          = &WorkloadTopology{}
)

// New creates the plugin for one profile. It is called when the scheduler starts, and its error stops the scheduler.
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

// EventsToRegister returns the events after which a rejected pod may fit: a node that is added or
// becomes usable, and the end of a pod. If labels and taints of a node change at once, the event is that of labels.
func (pl *WorkloadTopology) EventsToRegister() []framework.ClusterEvent {
	if pl.args.MaxPerNode == nil {
		return nil
	}
	return []framework.ClusterEvent{
		{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel | framework.UpdateNodeTaint | framework.UpdateNodeAllocatable},
		{Resource: framework.Pod, ActionType: framework.Delete},
	}
}

// EndHelps reports whether the ended pod was of the pending pod's group: only then maxPerNode allows another pod.
func (pl *WorkloadTopology) EndHelps(ended, pending *v1.Pod) bool {
	if pl.ended != ended {
		pl.ended, pl.endedGroup = ended, pl.index.groupOf(ended)
	}
	return pl.endedGroup != "" && pl.index.groupOf(pending) == pl.endedGroup
}
