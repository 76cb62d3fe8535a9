// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/utils/clock"
)

// Measurements are a source that a test fills.
type Measurements struct {
	touches int64

	mu      sync.Mutex
	last    *measured.Snapshot
	swapped []func(*measured.Snapshot)
	closes  int
}

func (m *Measurements) snapshot() *measured.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *Measurements) slot(resource int) int { return resource }
func (m *Measurements) touch()                { atomic.AddInt64(&m.touches, 1) }
func (m *Measurements) status() sourceStatus {
	return collector.Status{Source: "0", State: collector.Fresh}
}

func (m *Measurements) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closes++
}

// Swap gives all plugins a snapshot.
func (m *Measurements) Swap(snapshot *measured.Snapshot) {
	m.mu.Lock()
	m.last = snapshot
	swapped := m.swapped
	m.mu.Unlock()
	for _, call := range swapped {
		call(snapshot)
	}
}

func (m *Measurements) open(_ *NodeLoad, swapped func(*measured.Snapshot)) (measurements, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.swapped = append(m.swapped, swapped)
	return m, nil
}

// Renamed is the plugin by another name, under which the scheduler has no plugin of its own.
type Renamed struct {
	*NodeLoad
	name string
}

// Name returns that name.
func (r Renamed) Name() string { return r.name }

// NewRenamed makes the plugin with measurements that a test fills.
func NewRenamed(name string, args *config.NodeLoadArgs, handle framework.Handle, clock clock.WithDelayedExecution, m *Measurements) (Renamed, error) {
	pl, err := newPlugin(args, handle, clock, &group{}, m.open)
	return Renamed{pl, name}, err
}

// InFlight returns, in the resource's unit, what the plugin takes to be in flight on a node.
func (pl *NodeLoad) InFlight(nodeInfo *framework.NodeInfo, resource int) float64 {
	v := pl.current()
	var loads [maxResources]load
	node := v.find(nodeInfo.Node().Name)
	v.compute(node, nodeInfo, &loads)
	return loads[resource].inFlight / loads[resource].perUnit
}

// ScoreOf returns what the plugin gives a node, rounded.
func (pl *NodeLoad) ScoreOf(state *framework.CycleState, pod *v1.Pod, node string) int64 {
	score, _ := pl.Score(context.Background(), state, pod, node)
	return score / exactParts
}
