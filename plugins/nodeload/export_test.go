// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

// Measurements are a source that a test fills.
type Measurements struct {
	touches int64

	mu      sync.Mutex
	last    *measured.Snapshot
	swapped []func(*measured.Snapshot)
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

// ScoreOf returns what the plugin gives a node, rounded.
func (pl *NodeLoad) ScoreOf(state *framework.CycleState, pod *v1.Pod, node string) int64 {
	score, _ := pl.Score(context.Background(), state, pod, node)
	return score / exactParts
}
