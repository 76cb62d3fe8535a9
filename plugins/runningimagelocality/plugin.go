// SPDX-License-Identifier: Apache-2.0

// Package runningimagelocality favours nodes whose running pods use the images of the pod that is to be scheduled: they
// certainly have them, and keep them. Kubernetes' plugin ImageLocality knows only the 50 largest images that a node
// reports, whether they are in use or not.
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

// stateKey is where a scheduling cycle keeps its *matches.
const stateKey framework.StateKey = Name

// RunningImageLocality scores a node by the images of the pod that its running pods use.
type RunningImageLocality struct {
	handle    framework.Handle
	index     *index
	valuation valuation
	counters  counters
	// first lets one of a cycle's workers look into the snapshot, if PreScore is not enabled.
	first sync.Mutex
}

var (
	_ framework.PreScorePlugin    = &RunningImageLocality{}
	_ framework.ScorePlugin       = &RunningImageLocality{}
	_ framework.ScoreExtensions   = &RunningImageLocality{}
	_ framework.EnqueueExtensions = &RunningImageLocality{}
)

// New makes the plugin for one profile. It is called when the scheduler starts; an error from it stops the scheduler.
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

// EventsToRegister returns nothing: the plugin rejects no pod, so there is none that an event could make fit.
func (pl *RunningImageLocality) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// matches are the images of a pod that run on some node.
type matches struct {
	images []match
}

// match is what an image is worth to the pod, in millionths, see valuation.
type match struct {
	image *image
	worth int64
	// scored is 1 after a node was scored that runs the image. It is atomic.
	scored uint32
}

// Clone returns the matches themselves: no pod that preemption adds or removes changes them.
func (m *matches) Clone() framework.StateData {
	return m
}

// best returns the worth of the most valuable match among the nodes that were scored. What other nodes run does not
// matter to the pod: it cannot go there.
func (m *matches) best() int64 {
	var best int64
	for i := range m.images {
		if atomic.LoadUint32(&m.images[i].scored) == 1 && m.images[i].worth > best {
			best = m.images[i].worth
		}
	}
	return best
}

// PreScore looks once for the cycle which of the pod's images run, and on how many nodes.
func (pl *RunningImageLocality) PreScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, _ []*v1.Node) *framework.Status {
	_, status := pl.look(state, pod)
	return status
}

// Score returns what the node is worth to the pod, in millionths of a match.
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

// NormalizeScore changes the scores into 0 to 100: the best node scores 100, less what the weights of size and spread
// take.
func (pl *RunningImageLocality) NormalizeScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	found, status := pl.matches(state, pod)
	if !status.IsSuccess() {
		return status
	}
	normaliseScores(scores, found.best())
	return nil
}

// matches returns what PreScore found, and looks itself if PreScore was not called.
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

// look finds the pod's images in the snapshot, and keeps them in the cycle's state.
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
