// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/answers"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
)

// whatIfTurn limits the time for which a dry run pauses scheduling.
const whatIfTurn = time.Second

// whatIfFramework is a profile that supports dry runs.
type whatIfFramework interface {
	PreFilterForDryRun(ctx context.Context, state *framework.CycleState, pod *v1.Pod) (*framework.Status, error)
	FilterAll(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) ([]*framework.Status, error)
	ScoreAll(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (framework.NodeScoreList, error)
	WouldPreempt(ctx context.Context, state *framework.CycleState, pod *v1.Pod, statuses framework.NodeToStatusMap) (*records.PreemptionRecord, error)
}

// whatIfs runs dry runs between two scheduling cycles.
type whatIfs struct {
	*Scheduler
	algorithm *genericScheduler
	recorder  *records.Recorder
	extenders []framework.Extender
	// turn is a semaphore that is held during a scheduling cycle or a dry run.
	turn chan struct{}
}

// answerWhatIfs sets the recorder's function for dry runs. extenders are the original ones, unwrapped.
func (sched *Scheduler) answerWhatIfs(recorder *records.Recorder, extenders []framework.Extender) {
	algorithm, ok := sched.Algorithm.(*genericScheduler)
	if !ok {
		return
	}
	w := &whatIfs{sched, algorithm, recorder, extenders, make(chan struct{}, 1)}
	w.turn <- struct{}{}
	next := sched.NextPod
	sched.NextPod = func() *framework.QueuedPodInfo {
		<-w.turn
		podInfo := next()
		w.turn <- struct{}{}
		return podInfo
	}
	recorder.Sources.WhatIf = w.find
}

// whatIf is one dry run.
type whatIf struct {
	ctx      context.Context
	recorder *records.Recorder
	fwk      whatIfFramework
	pod      *v1.Pod
	profile  string
	all      bool
	// asked is true after extenders were called. Then allowed has the nodes that passed them, and left has the statuses
	// of the others.
	asked   bool
	allowed map[string]bool
	left    framework.NodeToStatusMap

	// The other fields are from the last evaluation. They only share immutable objects with the scheduler's snapshot.
	attempt *records.Attempt
	nodes   []*v1.Node
	// rejected is the status with which a PreFilter plugin rejects the pod. Then no node is evaluated.
	rejected   *framework.Status
	rejections [][]*framework.Status
	feasible   []*v1.Node
	totals     framework.NodeScoreList
	preemption *records.PreemptionRecord
	lacks      []string
}

// find implements records.Sources.WhatIf.
func (w *whatIfs) find(ctx context.Context, pod *v1.Pod, all bool) (*records.WhatIf, time.Duration, error) {
	fwk, found := w.Profiles[pod.Spec.SchedulerName]
	whatIfFwk, ok := fwk.(whatIfFramework)
	if !found || !ok {
		return nil, 0, answers.Refuse(http.StatusBadRequest, fmt.Sprintf("the pod has the schedulerName %q, but this scheduler has no such profile", pod.Spec.SchedulerName),
			"set schedulerName to one of "+strings.Join(w.recorder.Sources.Profiles, ", "))
	}
	s := &whatIf{ctx: ctx, recorder: w.recorder.Draft(), fwk: whatIfFwk, pod: pod, profile: pod.Spec.SchedulerName, all: all, left: framework.NodeToStatusMap{}}
	var extenders []framework.Extender
	for _, extender := range w.extenders {
		if extender.IsInterested(pod) {
			extenders = append(extenders, s.recorder.Extender(extender))
		}
	}
	held, err := w.evaluate(s, len(extenders) == 0)
	if err == nil && len(extenders) > 0 {
		// Extenders are called while scheduling continues. Then the plugins evaluate the nodes again.
		var feasible []*v1.Node
		if feasible, err = findNodesThatPassExtenders(extenders, pod, s.feasible, s.left); err == nil {
			s.asked, s.allowed = true, make(map[string]bool, len(feasible))
			for _, node := range feasible {
				s.allowed[node.Name] = true
			}
			var again time.Duration
			again, err = w.evaluate(s, true)
			held += again
			prioritize(extenders, pod, s.feasible, s.totals)
		}
	}
	if _, refused := err.(*answers.Refusal); refused {
		return nil, held, err
	}
	if err != nil {
		// A scheduling attempt would also fail with this error.
		return &records.WhatIf{Namespace: pod.Namespace, Name: pod.Name, Profile: s.profile, Result: records.Failed, Summary: err.Error()}, held, nil
	}
	return s.answer(), held, nil
}

// prioritize adds the scores of extenders, as prioritizeNodes does.
func prioritize(extenders []framework.Extender, pod *v1.Pod, nodes []*v1.Node, totals framework.NodeScoreList) {
	if len(totals) == 0 {
		return
	}
	added := make(map[string]int64, len(nodes))
	for _, extender := range extenders {
		if scores, weight, err := extender.Prioritize(pod, nodes); err == nil {
			for _, score := range *scores {
				added[score.Host] += score.Score * weight
			}
		}
	}
	for i := range totals {
		totals[i].Score += added[totals[i].Name] * (framework.MaxNodeScore / extenderv1.MaxExtenderPriority)
	}
}

// evaluate runs all plugins for the pod in place of a scheduling cycle. With decide, it also scores the feasible nodes,
// or simulates preemption if there are none.
func (w *whatIfs) evaluate(s *whatIf, decide bool) (held time.Duration, err error) {
	select {
	case w.turn <- struct{}{}:
	case <-s.ctx.Done():
		return 0, answers.Refuse(http.StatusServiceUnavailable, "the scheduler did not finish its cycle in time", "retry; if this happens again, check the scheduler's log")
	}
	began := time.Now()
	defer func() {
		held = time.Since(began)
		<-w.turn
	}()
	ctx, cancel := context.WithTimeout(s.ctx, whatIfTurn)
	defer cancel()
	if _, err := w.SchedulerCache.GetPod(s.pod); err == nil {
		name := s.pod.Namespace + "/" + s.pod.Name
		return 0, answers.Refuse(http.StatusConflict, "the pod already has a node: it is bound, is being bound, or waits for Permit plugins",
			"GET "+records.PodsPath+"/"+name).About("pods", name)
	}
	if err := w.algorithm.snapshot(); err != nil {
		return 0, err
	}
	nodeInfos, err := w.algorithm.nodeInfoSnapshot.NodeInfos().List()
	if err != nil {
		return 0, err
	}
	s.nodes = make([]*v1.Node, len(nodeInfos))
	for i, nodeInfo := range nodeInfos {
		s.nodes[i] = nodeInfo.Node()
	}
	state := framework.NewCycleState()
	s.attempt = s.recorder.Try(s.attempt, state, s.pod, s.profile, len(s.nodes))
	err = w.run(ctx, s, state, nodeInfos, decide)
	if ctx.Err() != nil {
		return 0, answers.Refuse(http.StatusGatewayTimeout, fmt.Sprintf("the plugins took longer than %v, the limit for a dry run, because it pauses scheduling", whatIfTurn), "GET /metrics, which has the duration of each plugin")
	}
	if decide && err == nil {
		s.attempt.Explain(s.pod, s.best())
	}
	return 0, err
}

// run runs the plugins, as in an attempt.
func (w *whatIfs) run(ctx context.Context, s *whatIf, state *framework.CycleState, nodeInfos []*framework.NodeInfo, decide bool) (err error) {
	s.rejections = make([][]*framework.Status, len(nodeInfos))
	s.feasible, s.totals, s.preemption, s.lacks = nil, nil, nil, nil
	if s.rejected, err = s.fwk.PreFilterForDryRun(ctx, state, s.pod); err != nil {
		return err
	}
	if s.rejected != nil {
		s.preemption = &records.PreemptionRecord{WhyNot: "The result of preemption is unknown, because the pod is rejected before any node is evaluated."}
		return nil
	}
	errs := parallelize.NewErrorChannel()
	filterCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.Profiles[s.profile].Parallelizer().Until(filterCtx, len(nodeInfos), func(i int) {
		rejections, err := s.fwk.FilterAll(filterCtx, state, s.pod, nodeInfos[i])
		if err != nil {
			errs.SendErrorWithCancel(err, cancel)
			return
		}
		s.rejections[i] = rejections
	})
	if err := errs.ReceiveError(); err != nil || ctx.Err() != nil {
		return err
	}
	statuses := s.sort()
	switch {
	case !decide:
	case len(s.feasible) > 0:
		s.totals, err = s.fwk.ScoreAll(ctx, state, s.pod, s.feasible)
	case len(s.nodes) > 0:
		s.lacks = records.Lacks(s.pod, nodeInfos, s.rejections)
		s.preemption, err = s.fwk.WouldPreempt(ctx, state, s.pod, statuses)
	}
	return err
}

// sort sets the feasible nodes, and returns the statuses of the others.
func (s *whatIf) sort() framework.NodeToStatusMap {
	statuses := make(framework.NodeToStatusMap, len(s.nodes))
	for i, node := range s.nodes {
		if status := s.left[node.Name]; status != nil && len(s.rejections[i]) == 0 {
			s.rejections[i] = []*framework.Status{status}
		}
		switch {
		case len(s.rejections[i]) > 0:
			statuses[node.Name] = s.rejections[i][0]
			for _, status := range s.rejections[i] {
				if status.Code() == framework.UnschedulableAndUnresolvable {
					statuses[node.Name] = status
				}
			}
		case !s.asked || s.allowed[node.Name]:
			s.feasible = append(s.feasible, node)
		}
	}
	return statuses
}

// best returns the names of at most five nodes: those with the highest scores or, without scores, the first ones.
func (s *whatIf) best() []string {
	totals := append(framework.NodeScoreList(nil), s.totals...)
	sort.SliceStable(totals, func(i, j int) bool { return totals[i].Score > totals[j].Score })
	var names []string
	for i := 0; i < len(s.nodes) && i < 5; i++ {
		if len(totals) == 0 {
			names = append(names, s.nodes[i].Name)
		} else if i < len(totals) {
			names = append(names, totals[i].Name)
		}
	}
	return names
}

// answer returns the result of the dry run.
func (s *whatIf) answer() *records.WhatIf {
	passed, evaluated := 0, len(s.nodes)
	for i := range s.nodes {
		if s.rejected == nil && (len(s.rejections[i]) == 0 || s.rejections[i][0].FailedPlugin() == "") {
			passed++
		}
	}
	s.attempt.Searched(passed)
	if s.rejected != nil {
		s.attempt.RejectAll(s.rejected)
		evaluated = 0
	}
	verdicts := make([]records.NodeVerdict, 0, len(s.nodes))
	for i, node := range s.nodes {
		verdict := records.NodeVerdict{Node: node.Name}
		for _, status := range s.rejections[i] {
			s.attempt.Reject(node.Name, status)
			if s.all {
				verdict.Rejections = append(verdict.Rejections, records.RejectionRecord{Plugin: status.FailedPlugin(), Reasons: status.Reasons(), Nodes: 1})
			}
		}
		if s.rejected != nil {
			verdict.Rejections = []records.RejectionRecord{{Plugin: s.rejected.FailedPlugin(), Reasons: s.rejected.Reasons(), Nodes: 1}}
		}
		verdicts = append(verdicts, verdict)
	}
	s.attempt.Rank(s.totals, "")
	answer := &records.WhatIf{
		Namespace: s.pod.Namespace, Name: s.pod.Name, Profile: s.profile, Result: records.Unschedulable,
		Decision: s.attempt.Finish(s.pod, evaluated, len(s.feasible)),
	}
	answer.Preemption, answer.Lacks = s.preemption, s.lacks
	if len(s.feasible) > 0 {
		answer.Result, answer.Node = records.Fits, answer.Scores[0].Node
		// A scheduling attempt chooses the nominated node if the pod fits there.
		for _, node := range s.feasible {
			if node.Name == s.pod.Status.NominatedNodeName {
				answer.Node, answer.Ties = node.Name, 1
			}
		}
	}
	answer.Summarize()
	if s.all {
		answer.Verdicts = s.verdicts(verdicts)
	}
	return answer
}

// verdicts adds the scores of the feasible nodes, and moves these nodes to the front.
func (s *whatIf) verdicts(verdicts []records.NodeVerdict) []records.NodeVerdict {
	totals := make(map[string]int64, len(s.totals))
	for _, total := range s.totals {
		totals[total.Name] = total.Score
	}
	for i := range verdicts {
		verdict := &verdicts[i]
		if verdict.Total, verdict.Fits = totals[verdict.Node]; !verdict.Fits && len(verdict.Rejections) == 0 {
			verdict.Rejections = []records.RejectionRecord{{Reasons: []string{records.LeftOut}, Nodes: 1}}
		}
	}
	sort.SliceStable(verdicts, func(i, j int) bool {
		a, b := verdicts[i], verdicts[j]
		switch {
		case a.Fits != b.Fits:
			return a.Fits
		case a.Fits:
			return a.Total > b.Total
		}
		return len(a.Rejections) < len(b.Rejections)
	})
	return verdicts
}
