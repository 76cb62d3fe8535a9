// SPDX-License-Identifier: Apache-2.0

// Package runningimagelocality prefers nodes whose running pods use the images of the pod: these nodes certainly have
// the images, and keep them. Kubernetes' plugin ImageLocality uses only the 50 largest images that a node reports, in
// use or not.
package runningimagelocality

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "RunningImageLocality"

// stateKey is the key of the *matches in the state of a scheduling cycle.
const stateKey framework.StateKey = Name

// RunningImageLocality scores a node by the images of the pod that the node's running pods use.
type RunningImageLocality struct {
	handle    framework.Handle
	index     *index
	valuation valuation
	counters  counters
	// first ensures that only one of the workers reads the snapshot, if PreScore is not enabled.
	first sync.Mutex
}

var (
	_ framework.PreScorePlugin    = &RunningImageLocality{}
	_ framework.ScorePlugin       = &RunningImageLocality{}
	_ framework.ScoreExtensions   = &RunningImageLocality{}
	_ framework.EnqueueExtensions = &RunningImageLocality{}
)

// New creates the plugin for one profile. It is called when the scheduler starts, and its error stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.RunningImageLocalityArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type RunningImageLocalityArgs, got %T", Name, obj)
	}
	if err := validation.ValidateRunningImageLocalityArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	return &RunningImageLocality{
		handle:    handle,
		index:     newIndex(newNames(), args.SizeWeight > 0),
		valuation: newValuation(args),
		counters:  newCounters(handle),
	}, nil
}

// Name returns the name of the plugin.
func (pl *RunningImageLocality) Name() string {
	return Name
}

// EventsToRegister returns no events, because the plugin rejects no pod.
func (pl *RunningImageLocality) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// matches are the images of a pod that run on some node.
type matches struct {
	images []match
}

// match is the worth of an image to the pod, in millionths, see valuation.
type match struct {
	image *image
	worth int64
	// scored is 1 after a node with the image was scored. It is atomic.
	scored uint32
}

// Clone returns the matches themselves: they do not depend on the pods that preemption adds or removes.
func (m *matches) Clone() framework.StateData {
	return m
}

// best returns the worth of the most valuable match of the scored nodes. Matches of other nodes do not matter, because
// the pod cannot go there.
func (m *matches) best() int64 {
	var best int64
	for i := range m.images {
		if atomic.LoadUint32(&m.images[i].scored) == 1 && m.images[i].worth > best {
			best = m.images[i].worth
		}
	}
	return best
}

// PreScore finds the running images of the pod, once for the cycle.
func (pl *RunningImageLocality) PreScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, _ []*v1.Node) *framework.Status {
	_, status := pl.look(state, pod)
	return status
}

// Score returns the worth of the node to the pod, in millionths of a match.
func (pl *RunningImageLocality) Score(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	found, status := pl.matches(state, pod)
	if !status.IsSuccess() {
		return 0, status
	}
	return pl.index.score(nodeName, found, pl.valuation), nil
}

// ScoreExtensions returns the plugin itself, for NormalizeScore.
func (pl *RunningImageLocality) ScoreExtensions() framework.ScoreExtensions {
	return pl
}

// NormalizeScore converts the scores to 0 to 100: the best node scores 100, minus the effect of the weights of size and
// spread.
func (pl *RunningImageLocality) NormalizeScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	found, status := pl.matches(state, pod)
	if !status.IsSuccess() {
		return status
	}
	normaliseScores(scores, found.best())
	return nil
}

// matches returns the matches of PreScore, or finds them if PreScore was not called.
func (pl *RunningImageLocality) matches(state *framework.CycleState, pod *v1.Pod) (*matches, *framework.Status) {
	if data, err := state.Read(stateKey); err == nil {
		return data.(*matches), nil
	}
	pl.first.Lock()
	defer pl.first.Unlock()
	if data, err := state.Read(stateKey); err == nil {
		return data.(*matches), nil
	}
	return pl.look(state, pod)
}

// look finds the running images of the pod, and stores them in the cycle's state.
func (pl *RunningImageLocality) look(state *framework.CycleState, pod *v1.Pod) (*matches, *framework.Status) {
	found, err := pl.index.match(pl.handle.SnapshotSharedLister(), pod, pl.valuation)
	if err != nil {
		return nil, framework.AsStatus(err)
	}
	state.Write(stateKey, found)
	if !whatif.Is(state) {
		pl.counters.count(len(found.images) > 0, len(pl.index.images))
	}
	return found, nil
}
