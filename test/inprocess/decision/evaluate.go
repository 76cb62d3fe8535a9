// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Verdict is what the plugins of a profile say of a pod on a node.
type Verdict struct {
	Node string
	// Status says why the node does not fit; empty if it does.
	Status string
	// Score is the sum of the plugins' weighted scores, where the node fits.
	Score int64
}

// Evaluate has the plugins filter and score every node for a complete pod, with as many workers as the scheduler has.
// The nodes are in the order of the scheduler's snapshot. Nothing is decided, drawn or changed.
func (s *Scheduler) Evaluate(pod *v1.Pod) ([]Verdict, error) {
	profile := s.Profiles[pod.Spec.SchedulerName]
	// Its type is internal to the scheduler.
	updated := reflect.ValueOf(s.SchedulerCache).MethodByName("UpdateSnapshot").
		Call([]reflect.Value{reflect.ValueOf(profile.SnapshotSharedLister())})
	if err, failed := updated[0].Interface().(error); failed {
		return nil, err
	}
	infos, err := profile.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	verdicts, fit, at := make([]Verdict, len(infos)), []*v1.Node(nil), map[string]*Verdict{}
	status := profile.RunPreFilterPlugins(s.ctx, state, pod)
	for i, info := range infos {
		v := &verdicts[i]
		v.Node, at[info.Node().Name] = info.Node().Name, v
		of := status
		if status.IsSuccess() {
			of = profile.RunFilterPluginsWithNominatedPods(s.ctx, state, pod, info)
		}
		if of.IsSuccess() {
			fit = append(fit, info.Node())
			continue
		}
		v.Status = fmt.Sprintf("%s by %s: %q", of.Code(), of.FailedPlugin(), of.Reasons())
	}
	if len(fit) == 0 {
		return verdicts, nil
	}
	if status := profile.RunPreScorePlugins(s.ctx, state, pod, fit); !status.IsSuccess() {
		return nil, status.AsError()
	}
	scores, status := profile.RunScorePlugins(s.ctx, state, pod, fit)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	for _, ofPlugin := range scores {
		for _, score := range ofPlugin {
			at[score.Name].Score += score.Score
		}
	}
	return verdicts, nil
}

// Choose says what the scheduler's algorithm makes of a complete pod, with the verdicts on all nodes at hand: how many
// nodes fit, and the node that it would choose if another has a better score. Which of several best nodes that is
// depends on time where there are several workers, and so do an error's words.
func (s *Scheduler) Choose(pod *v1.Pod, verdicts []Verdict) string {
	profile := s.Profiles[pod.Spec.SchedulerName]
	result, err := s.algorithm.Schedule(s.ctx, s.Extenders, profile, framework.NewCycleState(), pod)
	if _, fit := err.(*framework.FitError); fit {
		return err.Error()
	} else if err != nil {
		return "an error"
	}
	said := fmt.Sprintf("%d nodes fit", result.FeasibleNodes)
	// Extenders have a say in the scores, and one node is not scored.
	if len(s.Extenders) > 0 || result.FeasibleNodes == 1 {
		return said
	}
	scores, best := map[string]int64{}, int64(0)
	for _, v := range verdicts {
		if v.Status == "" {
			scores[v.Node] = v.Score
			if v.Score > best {
				best = v.Score
			}
		}
	}
	if score, fits := scores[result.SuggestedHost]; !fits || score != best {
		said += fmt.Sprintf(", and %s is chosen with %d of %d points", result.SuggestedHost, score, best)
	}
	return said
}
