// SPDX-License-Identifier: Apache-2.0

// Package runningimagelocality favours nodes whose running pods use the images of the pod that is to be scheduled: they
// certainly have them, and keep them. Kubernetes' plugin ImageLocality knows only the 50 largest images that a node
// reports, whether they are in use or not.
package runningimagelocality

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "RunningImageLocality"

// stateKey is where a scheduling cycle keeps its *matches.
const stateKey framework.StateKey = Name

// RunningImageLocality scores a node by the images of the pod that its running pods use.
type RunningImageLocality struct {
	names     *names
	index     *index
	valuation valuation
	counters  counters
	// first guards that a cycle looks into the index once, also if PreScore is not enabled and workers call Score at
	// once.
	first sync.Mutex
}

var (
	_ framework.PreScorePlugin    = &RunningImageLocality{}
	_ framework.ScorePlugin       = &RunningImageLocality{}
	_ framework.ScoreExtensions   = &RunningImageLocality{}
	_ framework.EnqueueExtensions = &RunningImageLocality{}
)

// New makes the plugin for one profile, with an index of its own that the handle's informers fill. It is called when
// the scheduler starts; an error from it stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.RunningImageLocalityArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type RunningImageLocalityArgs, got %T", Name, obj)
	}
	if err := validation.ValidateRunningImageLocalityArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	names := newNames()
	pl := &RunningImageLocality{
		names:     names,
		index:     newIndex(names),
		valuation: newValuation(args),
		counters:  newCounters(handle),
	}
	pl.watch(handle.SharedInformerFactory())
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *RunningImageLocality) Name() string {
	return Name
}

// EventsToRegister returns nothing: the plugin rejects no pod, so there is none that an event could make fit.
func (pl *RunningImageLocality) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// Clone returns the matches themselves: no pod that preemption adds or removes changes them.
func (m *matches) Clone() framework.StateData {
	return m
}

// PreScore looks once for the cycle which nodes run the pod's images.
func (pl *RunningImageLocality) PreScore(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) *framework.Status {
	state.Write(stateKey, pl.match(pod))
	return nil
}

// Score returns what the node is worth to the pod, in millionths of a match.
func (pl *RunningImageLocality) Score(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	return int64(pl.matches(state, pod).of(nodeName).sum), nil
}

// ScoreExtensions returns the plugin itself, for NormalizeScore.
func (pl *RunningImageLocality) ScoreExtensions() framework.ScoreExtensions {
	return pl
}

// NormalizeScore changes the scores into 0 to 100: the best node scores 100, less what the weights of size and spread
// take. It is the last that a cycle calls, so it gives back what PreScore took; a call after it would look again.
func (pl *RunningImageLocality) NormalizeScore(ctx context.Context, state *framework.CycleState, pod *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	if found := pl.matches(state, pod); found != nil {
		normaliseScores(scores, found.best(scores))
		state.Delete(stateKey)
		pl.index.recycle(found)
	}
	return nil
}

// matches returns what PreScore found, and looks itself if PreScore was not called.
func (pl *RunningImageLocality) matches(state *framework.CycleState, pod *v1.Pod) *matches {
	if data, err := state.Read(stateKey); err == nil {
		return data.(*matches)
	}
	pl.first.Lock()
	defer pl.first.Unlock()
	if data, err := state.Read(stateKey); err == nil {
		return data.(*matches)
	}
	found := pl.match(pod)
	state.Write(stateKey, found)
	return found
}

func (pl *RunningImageLocality) match(pod *v1.Pod) *matches {
	found := pl.index.match(pl.wanted(pod), pl.valuation)
	pl.counters.count(found != nil)
	return found
}

// wanted returns the normalised names of the images that a pod will need, each once, those of its init containers too:
// the node pulls them all the same. What is no image name can match nothing, and is left out.
func (pl *RunningImageLocality) wanted(pod *v1.Pod) []string {
	wanted := make([]string, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if name, ok := pl.names.normalise(containers[i].Image); ok && !contains(wanted, name) {
				wanted = append(wanted, name)
			}
		}
	}
	return wanted
}

func contains(list []string, value string) bool {
	for i := range list {
		if list[i] == value {
			return true
		}
	}
	return false
}
