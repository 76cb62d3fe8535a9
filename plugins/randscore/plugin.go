// SPDX-License-Identifier: Apache-2.0

// Package randscore gives nodes random scores that can be replayed: a baseline for the comparison of score plugins.
//
// A score depends on the number of the attempt, counted by the attempts in which nodes were scored. The scheduler does
// not score in an attempt with fewer than two feasible nodes.
package randscore

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pseudorandom"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "RandScore"

// RandScore computes a node's score from args.Seed, the pod's UID, the number of the attempt and the node's name.
type RandScore struct {
	attempts *pseudorandom.Attempts
}

var (
	_ framework.ScorePlugin       = &RandScore{}
	_ framework.EnqueueExtensions = &RandScore{}
)

// New creates the plugin for one profile.
func New(obj runtime.Object, _ framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.RandScoreArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type RandScoreArgs, got %T", Name, obj)
	}
	if err := validation.ValidateRandScoreArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	return &RandScore{attempts: pseudorandom.NewAttempts(args.Seed, Name)}, nil
}

// Name returns the name of the plugin.
func (pl *RandScore) Name() string {
	return Name
}

// EventsToRegister returns no events, because the plugin rejects no pod.
func (pl *RandScore) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// Score returns a random score, uniform from 0 to 100.
func (pl *RandScore) Score(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	return score(pl.attempts.Of(state, pod.UID).Key, nodeName), nil
}

// ScoreExtensions returns nil: scores are 0 to 100 already.
func (pl *RandScore) ScoreExtensions() framework.ScoreExtensions {
	return nil
}

// score returns a node's score. The key of the attempt depends on the seed, the pod and the attempt's number.
func score(attempt uint64, nodeName string) int64 {
	return int64(pseudorandom.Below(pseudorandom.Mix(attempt, nodeName), uint64(framework.MaxNodeScore+1)))
}
