// SPDX-License-Identifier: Apache-2.0

// Package nodecost prefers cheap nodes, by prices in the nodes' annotations or labels, or in a table of instance types.
// It does not filter.
package nodecost

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/changes"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "NodeCost"

// stateKey is the key of the *cycle in the state of a scheduling cycle.
const stateKey framework.StateKey = Name

// NodeCost scores a node by its price, or by the price of the pod's share of it.
//
// The index has no lock. A cycle updates it when it begins, and Score only reads it, in goroutines that start later.
// Cycles do not run in parallel, neither in the scheduler nor in an extender.
type NodeCost struct {
	handle   framework.Handle
	follower changes.Follower
	index    *index
	// byShare selects the price of the pod's share of a node, instead of the whole node.
	byShare bool
	// tolerationKey is the key of the toleration with which a pod may use spot nodes. Without it, no node is a spot
	// node.
	tolerationKey string
	gauges        gauges
	// first ensures that only one of the workers begins a cycle, if PreScore is not enabled.
	first sync.Mutex
}

// cycle holds what depends on the pod alone. It is immutable.
type cycle struct {
	// unpriced is the cost of a node without a price.
	unpriced int64
	// share selects the cost of the pod's share of a node, by its requests in thousandths of a CPU and in bytes.
	share       bool
	cpu, memory int64
	// leaveSpot is set if the pod must leave spot nodes to other pods.
	leaveSpot bool
}

// Clone returns the cycle itself: it does not depend on the pods that preemption adds or removes.
func (c *cycle) Clone() framework.StateData {
	return c
}

var (
	_ framework.PreScorePlugin    = &NodeCost{}
	_ framework.ScorePlugin       = &NodeCost{}
	_ framework.ScoreExtensions   = &NodeCost{}
	_ framework.EnqueueExtensions = &NodeCost{}
)

// New creates the plugin for one profile. It is called when the scheduler starts, and its error stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.NodeCostArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type NodeCostArgs, got %T", Name, obj)
	}
	if err := validation.ValidateNodeCostArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	pl := &NodeCost{
		handle:  handle,
		index:   newIndex(newPrices(args)),
		byShare: args.Strategy == config.NodeCostCheapestShare,
		gauges:  newGauges(handle),
	}
	if args.Spot != nil {
		pl.tolerationKey = args.Spot.TolerationKey
	}
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *NodeCost) Name() string {
	return Name
}

// EventsToRegister returns no events, because the plugin rejects no pod.
func (pl *NodeCost) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// PreScore updates the prices, and computes what depends on the pod alone.
func (pl *NodeCost) PreScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, _ []*v1.Node) *framework.Status {
	_, status := pl.begin(state, pod)
	return status
}

// Score returns the cost of the node, in billionths per hour, or left.
func (pl *NodeCost) Score(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	c, status := pl.cycle(state, pod)
	if !status.IsSuccess() {
		return 0, status
	}
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return 0, framework.AsStatus(fmt.Errorf("getting node %q from snapshot: %w", nodeName, err))
	}
	return pl.cost(c, nodeInfo), nil
}

// ScoreNodes scores many nodes. A scheduler with patch 0520 calls it instead of Score for each node: finding a node by
// its name takes longer than the rest.
func (pl *NodeCost) ScoreNodes(state *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	c, status := pl.cycle(state, pod)
	if !status.IsSuccess() {
		return status
	}
	for i, nodeInfo := range nodes {
		scores[i].Score = pl.cost(c, nodeInfo)
	}
	return nil
}

func (pl *NodeCost) cost(c *cycle, nodeInfo *framework.NodeInfo) int64 {
	return c.cost(pl.index.nodes[nodeInfo.Node()], nodeInfo.Allocatable.MilliCPU, nodeInfo.Allocatable.Memory)
}

// ScoreExtensions returns the plugin itself, for NormalizeScore.
func (pl *NodeCost) ScoreExtensions() framework.ScoreExtensions {
	return pl
}

// NormalizeScore converts the costs to scores: the cheapest node scores 100, one with twice the cost 50.
func (pl *NodeCost) NormalizeScore(_ context.Context, _ *framework.CycleState, _ *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	normaliseCosts(scores)
	return nil
}

// cycle returns the cycle of a state, and begins it if PreScore was not called.
func (pl *NodeCost) cycle(state *framework.CycleState, pod *v1.Pod) (*cycle, *framework.Status) {
	if data, err := state.Read(stateKey); err == nil {
		return data.(*cycle), nil
	}
	pl.first.Lock()
	defer pl.first.Unlock()
	if data, err := state.Read(stateKey); err == nil {
		return data.(*cycle), nil
	}
	return pl.begin(state, pod)
}

// begin applies the changes of nodes, and computes the requests of the pod.
func (pl *NodeCost) begin(state *framework.CycleState, pod *v1.Pod) (*cycle, *framework.Status) {
	if err := pl.follower.Follow(pl.handle.SnapshotSharedLister(), pl.index); err != nil {
		return nil, framework.AsStatus(err)
	}
	if pl.index.changed && !whatif.Is(state) {
		pl.index.changed = false
		pl.gauges.set(pl.index)
	}
	c := &cycle{unpriced: pl.index.median(), share: pl.byShare, leaveSpot: !tolerates(pod, pl.tolerationKey)}
	if c.share {
		c.cpu, c.memory = requests(pod)
	}
	state.Write(stateKey, c)
	return c, nil
}
