// SPDX-License-Identifier: Apache-2.0

// Package nodecost favours nodes that cost little, by prices that nodes carry themselves or that a table gives to their
// instance types. It rejects no pod.
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

// stateKey is where a scheduling cycle keeps its *cycle.
const stateKey framework.StateKey = Name

// NodeCost scores a node by its price, or by the price of what the pod takes of it.
//
// There is no lock on the index. A cycle brings it up to date when it begins, and Score only reads it, from several
// goroutines that start later. No cycle runs beside another one, neither in the scheduler nor in an extender.
type NodeCost struct {
	handle   framework.Handle
	follower changes.Follower
	index    *index
	// byShare counts the pod's share of a node, and not the whole node.
	byShare bool
	// tolerationKey is of the toleration that opens spot nodes to a pod. If they are kept for none, no node is spot.
	tolerationKey string
	gauges        gauges
	// first lets one of a cycle's workers begin it, if PreScore is not enabled.
	first sync.Mutex
}

// cycle is what a scheduling cycle has decided about the pod alone. It never changes once it is made.
type cycle struct {
	// unpriced is what a node without a price counts as.
	unpriced int64
	// share says that the pod's share of a node counts: it requests so many thousandths of a CPU, and so many bytes.
	share       bool
	cpu, memory int64
	// leaveSpot says that spot nodes are for other pods.
	leaveSpot bool
}

// Clone returns the cycle itself: no pod that preemption adds or removes changes it.
func (c *cycle) Clone() framework.StateData {
	return c
}

var (
	_ framework.PreScorePlugin    = &NodeCost{}
	_ framework.ScorePlugin       = &NodeCost{}
	_ framework.ScoreExtensions   = &NodeCost{}
	_ framework.EnqueueExtensions = &NodeCost{}
)

// New makes the plugin for one profile. It is called when the scheduler starts; an error from it stops the scheduler.
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

// EventsToRegister returns nothing: the plugin rejects no pod, so there is none that an event could make fit.
func (pl *NodeCost) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// PreScore brings the prices up to date, and decides what depends on the pod alone.
func (pl *NodeCost) PreScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, _ []*v1.Node) *framework.Status {
	_, status := pl.begin(state, pod)
	return status
}

// Score returns what the node costs, in billionths per hour, or left.
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

// ScoreNodes sets the same for many nodes. A scheduler that can score so calls it in place of Score, and has the nodes at
// hand: to find them by name takes longer than all the rest.
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

// NormalizeScore changes the costs into 0 to 100: the cheapest node scores 100, one at twice the cost 50.
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

// begin looks at the nodes that changed, and at the pod.
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
