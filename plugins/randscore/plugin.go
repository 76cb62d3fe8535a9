// SPDX-License-Identifier: Apache-2.0

// Package randscore scores nodes by lot, in a way that can be replayed: a baseline to compare other score plugins with.
//
// A score depends on the number of the attempt in which nodes were scored. The scheduler scores only when two or more
// nodes are feasible: an attempt that finds none, or a single one, is not counted.
package randscore

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/draw"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "RandScore"

// RandScore draws a node's score from args.Seed, the pod's UID, the number of the attempt in which nodes were
// scored and the node's name.
type RandScore struct {
	attempts *draw.Attempts
}

var (
	_ framework.ScorePlugin       = &RandScore{}
	_ framework.EnqueueExtensions = &RandScore{}
)

// New makes the plugin for one profile.
func New(obj runtime.Object, _ framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.RandScoreArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type RandScoreArgs, got %T", Name, obj)
	}
	if err := validation.ValidateRandScoreArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	return &RandScore{attempts: draw.NewAttempts(args.Seed, Name)}, nil
}

// Name returns the name of the plugin.
func (pl *RandScore) Name() string {
	return Name
}

// EventsToRegister returns nothing: the plugin rejects no pod, so no event can make one fit.
func (pl *RandScore) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// Score rates a node from 0 to 100, each as likely, whatever else is on the node.
func (pl *RandScore) Score(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	return score(pl.attempts.Of(state, pod.UID).Key, nodeName), nil
}

// ScoreExtensions returns nil: the scores are between 0 and 100 as they are.
func (pl *RandScore) ScoreExtensions() framework.ScoreExtensions {
	return nil
}

// score draws a node's score for an attempt, whose key holds the seed, the pod and the attempt's number.
func score(attempt uint64, nodeName string) int64 {
	return int64(draw.Below(draw.Mix(attempt, nodeName), uint64(framework.MaxNodeScore+1)))
}
