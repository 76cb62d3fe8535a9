// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"reflect"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Verdict is the result of a profile's plugins for a pod on a node.
type Verdict struct {
	Node string
	// Status is the reason why the node does not fit; empty if it does.
	Status string
	// Score is the sum of the plugins' weighted scores if the node fits.
	Score int64
}

// Evaluate runs the plugins' filters and scores on every node for a complete pod, with
// the scheduler's number of workers. The nodes are in the order of the scheduler's
// snapshot. It chooses no node, draws no random numbers and changes nothing.
func (s *Scheduler) Evaluate(pod *v1.Pod) ([]Verdict, error) {
	profile := s.Profiles[pod.Spec.SchedulerName]
	if err := s.updateSnapshot(profile); err != nil {
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
		// NodeResourcesFit reads extended resources in the order of a map.
		reasons := append([]string(nil), of.Reasons()...)
		sort.Strings(reasons)
		v.Status = fmt.Sprintf("%s by %s: %q", of.Code(), of.FailedPlugin(), reasons)
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

// updateSnapshot brings the scheduler's snapshot, whose type is internal to the scheduler, up to date.
func (s *Scheduler) updateSnapshot(profile framework.Framework) error {
	updated := reflect.ValueOf(s.SchedulerCache).MethodByName("UpdateSnapshot").
		Call([]reflect.Value{reflect.ValueOf(profile.SnapshotSharedLister())})
	err, _ := updated[0].Interface().(error)
	return err
}

// Choose returns the result of the scheduler's algorithm for a complete pod, given the verdicts on all nodes, sorted by
// name: the number of feasible nodes, and what contradicts the verdicts: the scores after WatchScores, or a chosen node if
// another one has a better score. With extenders it has the scores with theirs. With several workers, the choice among
// several best nodes depends on timing, and so does the text of an error.
func (s *Scheduler) Choose(pod *v1.Pod, verdicts []Verdict) string {
	profile := s.Profiles[pod.Spec.SchedulerName]
	scoresOfCycle.take()
	result, err := s.algorithm.Schedule(s.ctx, s.Extenders, profile, framework.NewCycleState(), pod)
	if _, fit := err.(*framework.FitError); fit {
		return err.Error()
	} else if err != nil {
		return "an error"
	}
	// Several workers find the nodes in any order.
	scores := scoresOfCycle.take()
	sort.Slice(scores, func(i, j int) bool { return scores[i].Name < scores[j].Name })
	said := fmt.Sprintf("%d nodes fit", result.FeasibleNodes)
	if len(s.Extenders) > 0 {
		return said + text(scores)
	}
	// A single node is not scored.
	if result.FeasibleNodes == 1 {
		return said
	}
	var want framework.NodeScoreList
	var chosen, best int64
	for _, v := range verdicts {
		if v.Status == "" {
			want = append(want, framework.NodeScore{Name: v.Node, Score: v.Score})
			best = max(best, v.Score)
		}
		if v.Node == result.SuggestedHost {
			chosen = v.Score
		}
	}
	if got := text(scores); got != "" && got != text(want) {
		said += fmt.Sprintf(", and have%s instead of%s", got, text(want))
	}
	if chosen != best {
		said += fmt.Sprintf(", and %s is chosen with %d of %d points", result.SuggestedHost, chosen, best)
	}
	return said
}
