// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"math/rand"
	"sort"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	corelisters "k8s.io/client-go/listers/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// gangCycles decides the pods of a gang in one scheduling cycle.
type gangCycles struct {
	*Scheduler
	algorithm *genericScheduler
	queue     *internalqueue.PriorityQueue
	pods      corelisters.PodLister
	// requeue is the scheduler's Error, without those that record each pod.
	requeue func(*framework.QueuedPodInfo, error)
	// sources has a plugin for each profile that knows gangs.
	sources map[string]gangs.Source
	// reserving is the gang that keeps nodes although it does not run, since when, for how long, and with which pods.
	reserving   string
	since       time.Time
	reservation time.Duration
	kept        []gangReport
	// evicting has the gangs for which a goroutine evicts pods.
	evicting sync.Map
	// halvesTried is when gangs that were interrupted were last tried before others.
	halvesTried time.Time
	// lateUntil is when gangs whose last attempt took too long may be attempted again.
	lateUntil time.Time
	reports   gangReports
}

// lateShare bounds the time of gangs whose last attempt took too long: one second of lateShare seconds, besides.
const lateShare = 9

// maxTimeout limits an attempt after others that took too long, unless its timeout is longer.
const maxTimeout = 10 * time.Second

// halvesInterval is the time after which the rest of an interrupted gang is tried again before other pods.
const halvesInterval = time.Second

// decideGangs sets up the cycles of gangs, if a plugin knows gangs.
func (sched *Scheduler) decideGangs(pods corelisters.PodLister) {
	g := &gangCycles{Scheduler: sched, pods: pods, requeue: sched.Error, sources: map[string]gangs.Source{}}
	sched.Plugins.Each(func(profile string, plugin framework.Plugin) {
		if source, ok := plugin.(gangs.Source); ok {
			g.sources[profile] = source
		}
	})
	var ok, isQueue bool
	g.algorithm, ok = sched.Algorithm.(*genericScheduler)
	g.queue, isQueue = sched.SchedulingQueue.(*internalqueue.PriorityQueue)
	if ok && isQueue && len(g.sources) > 0 {
		sched.gangs = g
	}
}

// schedule attempts to schedule the gang of a pod that the queue gave, and returns true. It returns false for a pod that
// is scheduled alone: one without a gang, or one of a gang that runs, with the cycle for it.
func (g *gangCycles) schedule(ctx context.Context, podInfo *framework.QueuedPodInfo) (*gangs.Cycle, bool) {
	if g == nil {
		return nil, false
	}
	if len(g.kept) > 0 && time.Since(g.since) > g.reservation {
		g.release()
	}
	source := g.sources[podInfo.Pod.Spec.SchedulerName]
	if source == nil {
		return nil, false
	}
	gang, reason := source.GangOf(podInfo.Pod)
	// The rest of a gang that was interrupted goes first.
	if time.Since(g.halvesTried) > halvesInterval {
		for _, half := range source.Halves() {
			g.halvesTried = time.Now()
			if (gang == nil || gang.Name != half.Name) && corev1helpers.PodPriority(half.Waiting[0]) >= corev1helpers.PodPriority(podInfo.Pod) {
				if a := g.newAttempt(source, half); a.needed > 0 && len(a.waiting) >= a.needed {
					a.take(ctx, nil)
				}
			}
		}
	}
	if reason != "" {
		g.reject(podInfo, source, reason)
		return nil, true
	}
	if gang == nil {
		return nil, false
	}
	a := g.newAttempt(source, gang)
	switch {
	case a.needed <= 0:
		return &gangs.Cycle{Domain: a.domain}, false
	case len(a.waiting) < a.needed:
		g.reject(podInfo, source, "PodGroup "+gang.Name+gangs.TooFew)
	default:
		a.take(ctx, podInfo)
	}
	return nil, true
}

// cycle returns the cycle of a pod of a gang that runs; nil for a pod without a gang.
func (g *gangCycles) cycle(pod *v1.Pod) *gangs.Cycle {
	if g == nil || g.sources[pod.Spec.SchedulerName] == nil {
		return nil
	}
	source := g.sources[pod.Spec.SchedulerName]
	gang, reason := source.GangOf(pod)
	switch {
	case reason != "":
		return &gangs.Cycle{}
	case gang == nil:
		return nil
	}
	return &gangs.Cycle{Domain: g.newAttempt(source, gang).domain}
}

// gangAttempt is an attempt to schedule a gang. It implements gangs.Cluster.
type gangAttempt struct {
	*gangCycles
	source gangs.Source
	gang   *gangs.Gang
	// waiting are the pods of the gang without a node. needed of them must be placed, in the domain of those that have
	// nodes.
	waiting []*v1.Pod
	needed  int
	domain  gangs.Domain

	began   time.Time
	members map[types.UID]*gangMember
	order   []*gangMember
	placed  []*gangMember
	// lastShape and lastDomain are those of the last search, and inDomain has the nodes of the domain, unless that is all,
	// and indexes theirs.
	lastShape  string
	lastDomain gangs.Domain
	inDomain   []*framework.NodeInfo
	indexes    []int32
	deferred   preemption.Deferred
	rejected   sets.String // by these plugins
	// wait is true if pods that were evicted for the gang have not ended. Then it evicts no others.
	wait bool
	dry  bool
	// changed is true if pods or the PodGroup changed during the attempt.
	changed bool
}

// gangMember is a pod in an attempt.
type gangMember struct {
	info     *framework.QueuedPodInfo
	fwk      framework.Framework
	state    *framework.CycleState
	activate *framework.PodsToActivate
	result   ScheduleResult
	assumed  *framework.QueuedPodInfo
	victims  []*v1.Pod
	// edits and evictions are the lengths before it was placed.
	edits, evictions int
	reserved         bool
	recorded         bool
	// nominated is the node that an earlier attempt has nominated.
	nominated string
}

func (g *gangCycles) newAttempt(source gangs.Source, gang *gangs.Gang) *gangAttempt {
	a := &gangAttempt{
		gangCycles: g, source: source, gang: gang, needed: gang.MinMember - len(gang.Placed),
		began: time.Now(), members: map[types.UID]*gangMember{}, rejected: sets.NewString(),
	}
	placed := gang.Placed
	for _, pod := range gang.Waiting {
		if cached, err := g.SchedulerCache.GetPod(pod); err == nil {
			placed = append(placed, cached)
			a.needed--
			continue
		}
		a.waiting = append(a.waiting, pod)
	}
	if len(placed) > 0 && gang.Required != "" && g.algorithm.snapshot() == nil {
		for _, pod := range placed {
			if node, err := g.algorithm.nodeInfoSnapshot.Get(pod.Spec.NodeName); err == nil && node.Node().Labels[gang.Required] != "" {
				a.domain = gangs.Domain{Key: gang.Required, Value: node.Node().Labels[gang.Required]}
				break
			}
		}
	}
	return a
}

// take takes the pods of the gang from the queue and attempts to schedule them, unless the gang backs off. first is the
// one that the queue gave, or nil.
func (a *gangAttempt) take(ctx context.Context, first *framework.QueuedPodInfo) {
	var others []*v1.Pod
	for _, pod := range a.waiting {
		if first == nil || pod.UID != first.Pod.UID {
			others = append(others, pod)
		}
	}
	taken, ok := a.queue.Take(first, others)
	if !ok {
		return
	}
	if first != nil {
		taken = append([]*framework.QueuedPodInfo{first}, taken...)
	}
	for _, info := range taken {
		fwk, err := a.frameworkForPod(info.Pod)
		if err != nil || a.skipPodSchedule(fwk, info.Pod) {
			continue
		}
		a.add(info, fwk)
	}
	if len(a.order) == 0 {
		return
	}
	klog.V(3).InfoS("Attempting to schedule gang", "gang", a.gang.Name, "pods", len(a.order), "needed", a.needed)
	ctx, end := a.Tracer.Gang(ctx, a.gang.Name, len(a.order))
	decision := &gangs.Decision{Result: gangs.Late}
	if a.order[0].info.Late == 0 || time.Now().After(a.lateUntil) {
		if decision = a.decide(ctx); decision.Result == gangs.Late {
			a.lateUntil = time.Now().Add(lateShare * time.Since(a.began))
		}
	} else {
		for _, m := range a.order {
			m.nominated, a.wait = a.queue.NominatedNode(m.info.Pod), true
		}
	}
	if decision.Result == gangs.Placed {
		a.bind(ctx, decision)
	} else {
		a.fail(decision)
	}
	end(string(decision.Result))
	a.source.Attempted(a.gang, decision.Result, time.Since(a.began))
}

func (a *gangAttempt) add(info *framework.QueuedPodInfo, fwk framework.Framework) {
	m := &gangMember{info: info, fwk: fwk}
	a.members[info.Pod.UID] = m
	a.order = append(a.order, m)
}

// decide places the pods in the snapshot, which stays changed if the result is Placed or Preempting.
func (a *gangAttempt) decide(ctx context.Context) *gangs.Decision {
	if len(a.order) < a.needed {
		return &gangs.Decision{Result: gangs.Unschedulable, Err: errors.New("PodGroup " + a.gang.Name + gangs.TooFew)}
	}
	if err := a.algorithm.snapshot(); err != nil {
		return &gangs.Decision{Result: gangs.Unschedulable, Err: err}
	}
	a.algorithm.gang.held = true
	start := a.algorithm.nextStartNodeIndex
	defer func() { a.algorithm.gang, a.algorithm.nextStartNodeIndex = gangSearch{}, start }()
	// All of them are decided now, so none keeps a node from another one.
	pods := make([]*v1.Pod, len(a.order))
	for i, m := range a.order {
		pods[i], m.nominated = m.info.Pod, a.queue.NominatedNode(m.info.Pod)
		a.SchedulingQueue.DeleteNominatedPodIfExists(m.info.Pod)
	}
	_, a.wait = a.evicting.Load(a.gang.Name)
	attempt := &gangs.Attempt{Gang: a.gang, Pods: pods, Needed: a.needed, Domain: a.domain, Evicting: a.wait, Expired: a.expired}
	return attempt.Run(ctx, a)
}

// expired reports whether the attempt takes too long. After one that did, the next one has twice the time, and then four
// times.
func (a *gangAttempt) expired() bool {
	timeout := a.gang.Timeout
	for i := 0; i < a.order[0].info.Late && 2*timeout <= maxTimeout; i++ {
		timeout *= 2
	}
	return time.Since(a.began) > timeout
}

// Nodes implements gangs.Cluster.
func (a *gangAttempt) Nodes() []*framework.NodeInfo {
	nodes, _ := a.algorithm.nodeInfoSnapshot.List()
	return nodes
}

// outside is the status of nodes that are not in the domain of an attempt: preemption does not help there.
var outside = framework.NewStatus(framework.UnschedulableAndUnresolvable, gangs.Outside)

// Place implements gangs.Cluster.
func (a *gangAttempt) Place(ctx context.Context, pod *v1.Pod, domain gangs.Domain, preempt bool) error {
	if a.narrow(pod, domain) {
		if err := a.place(ctx, pod, domain, false); err == nil {
			return nil
		}
		a.widen(domain)
	}
	return a.place(ctx, pod, domain, preempt)
}

func (a *gangAttempt) place(ctx context.Context, pod *v1.Pod, domain gangs.Domain, preempt bool) error {
	m := a.members[pod.UID]
	m.edits, m.evictions = a.algorithm.nodeInfoSnapshot.Edits(), a.deferred.Len()
	m.victims = nil
	m.state, m.activate = framework.NewCycleState(), framework.NewPodsToActivate()
	m.state.Write(framework.PodsToActivateKey, m.activate)
	(&gangs.Cycle{Domain: domain}).Set(m.state)
	a.deferred.Defer(m.state)
	var err error
	if a.dry {
		whatif.Mark(m.state)
		m.result, err = a.algorithm.Schedule(ctx, a.Extenders, m.fwk, m.state, pod)
	} else {
		m.state.SetRecordPluginMetrics(rand.Intn(100) < pluginMetricsSamplePercent)
		a.Records.Next(m.info, m.info.WokenBy)
		a.Tracer.Next(m.info)
		m.recorded = true
		m.result, err = a.Algorithm.Schedule(ctx, a.Extenders, m.fwk, m.state, pod)
	}
	if fit, unfit := err.(*framework.FitError); unfit {
		a.rejected = a.rejected.Union(fit.Diagnosis.UnschedulablePlugins)
		if !preempt || !m.fwk.HasPostFilterPlugins() {
			return err
		}
		if statuses := fit.Diagnosis.NodeToStatusMap; domain.Key != "" && statuses != nil {
			for _, node := range a.Nodes() {
				if !domain.Has(node.Node()) {
					statuses[node.Node().Name] = outside
				}
			}
		}
		result, status := m.fwk.RunPostFilterPlugins(ctx, m.state, pod, fit.Diagnosis.NodeToStatusMap)
		if m.victims = a.deferred.Victims(m.evictions); !status.IsSuccess() || result == nil || len(m.victims) == 0 {
			a.deferred.Keep(m.evictions)
			return err
		}
		m.result.SuggestedHost = result.NominatedNodeName
	} else if err != nil {
		return err
	}
	m.assumed = m.info.DeepCopy()
	m.assumed.Pod.Spec.NodeName = m.result.SuggestedHost
	if err := a.algorithm.nodeInfoSnapshot.Edit(m.result.SuggestedHost, func(node *framework.NodeInfo) error {
		for _, victim := range m.victims {
			if err := node.RemovePod(victim); err != nil {
				return err
			}
		}
		node.AddPodInfo(m.assumed.PodInfo)
		return nil
	}); err != nil {
		a.deferred.Keep(m.evictions)
		return err
	}
	a.placed = append(a.placed, m)
	if a.dry {
		return nil
	}
	m.reserved = true
	if status := m.fwk.RunReservePluginsReserve(ctx, m.state, m.assumed.Pod, m.result.SuggestedHost); !status.IsSuccess() {
		a.Undo(len(a.placed) - 1)
		return status.AsError()
	}
	return nil
}

// Evicts implements gangs.Cluster.
func (a *gangAttempt) Evicts() bool { return a.deferred.Len() > 0 }

// gangSearch changes the searches for nodes in an attempt for a gang.
type gangSearch struct {
	// held is true if the snapshot is not updated.
	held bool
	// nodes are those to search, if there are any, and indexes are theirs in the snapshot's table.
	nodes   []*framework.NodeInfo
	indexes []int32
	// narrowed is true if both are lists of its own. gone is reused.
	narrowed bool
	gone     []bool
}

func (s *gangSearch) search(all []*framework.NodeInfo) []*framework.NodeInfo {
	if len(s.nodes) > 0 {
		return s.nodes
	}
	return all
}

// indexesOf returns the indexes of the nodes, if they are those to search.
func (s *gangSearch) indexesOf(nodes []*framework.NodeInfo) ([]int32, bool) {
	if len(s.nodes) == 0 || len(nodes) != len(s.nodes) || &nodes[0] != &s.nodes[0] {
		return nil, false
	}
	return s.indexes, true
}

// rejected leaves the nodes that a search has rejected out of the next ones.
func (s *gangSearch) rejected(searched []*framework.NodeInfo, search *search) {
	if !s.held || search.count == 0 {
		return
	}
	if len(s.gone) < len(searched) {
		s.gone = make([]bool, len(searched))
	}
	for _, r := range search.list[:search.count] {
		s.gone[r.at] = true
	}
	nodes, indexes := s.nodes[:0], s.indexes[:0]
	if !s.narrowed {
		nodes, indexes = make([]*framework.NodeInfo, 0, len(searched)), make([]int32, 0, len(searched))
	}
	for i, node := range searched {
		if !s.gone[i] {
			nodes, indexes = append(nodes, node), append(indexes, search.index(i))
		}
		s.gone[i] = false
	}
	s.nodes, s.indexes, s.narrowed = nodes, indexes, true
}

// narrow limits the search for a pod to the nodes of the domain. For a pod like the one before, it leaves out those that
// were rejected since the first one: what was placed since only takes room. It reports whether it does the latter.
func (a *gangAttempt) narrow(pod *v1.Pod, domain gangs.Domain) bool {
	shape := gangs.Shape(pod, false)
	a.deferred.Shape(shape)
	alike := a.lastShape == shape && a.lastDomain == domain && gangs.Independent(pod)
	if a.lastShape = shape; !alike || len(a.algorithm.gang.nodes) == 0 {
		a.widen(domain)
		return false
	}
	return true
}

// widen makes the search one of all nodes of the domain.
func (a *gangAttempt) widen(domain gangs.Domain) {
	if a.lastDomain != domain || a.inDomain == nil {
		a.lastDomain, a.inDomain, a.indexes = domain, nil, nil
		for i, node := range a.Nodes() {
			if domain.Key != "" && domain.Has(node.Node()) {
				a.inDomain, a.indexes = append(a.inDomain, node), append(a.indexes, int32(i))
			}
		}
	}
	g := &a.algorithm.gang
	g.nodes, g.indexes, g.narrowed = a.inDomain, a.indexes, false
}

// Mark implements gangs.Cluster.
func (a *gangAttempt) Mark() int { return len(a.placed) }

// Undo implements gangs.Cluster.
func (a *gangAttempt) Undo(mark int) {
	for i := len(a.placed) - 1; i >= mark; i-- {
		m := a.placed[i]
		if m.reserved {
			m.fwk.RunReservePluginsUnreserve(context.TODO(), m.state, m.assumed.Pod, m.result.SuggestedHost)
			m.reserved = false
		}
		a.algorithm.nodeInfoSnapshot.Undo(m.edits)
		a.deferred.Keep(m.evictions)
	}
	a.placed, a.lastShape = a.placed[:mark], ""
}

// stands reports whether enough of the placed pods are still there, and wait for the same gang.
func (a *gangAttempt) stands() bool {
	gang, _ := a.source.GangOf(a.order[0].info.Pod)
	if gang == nil {
		return false
	}
	left := a.newAttempt(a.source, gang).needed
	for _, m := range a.placed {
		pod, err := a.pods.Pods(m.info.Pod.Namespace).Get(m.info.Pod.Name)
		if err == nil && pod.UID == m.info.Pod.UID && pod.DeletionTimestamp == nil && pod.Labels[gangs.Label] == m.info.Pod.Labels[gangs.Label] {
			left--
		}
	}
	return left <= 0
}

// bind binds all pods that are placed, or none if a Permit plugin rejects one.
func (a *gangAttempt) bind(ctx context.Context, decision *gangs.Decision) {
	a.algorithm.nodeInfoSnapshot.Undo(0)
	if !a.stands() {
		a.Undo(0)
		decision.Result, a.changed = gangs.Unschedulable, true
		a.fail(decision)
		return
	}
	for n, m := range a.placed {
		err := a.assume(m.assumed.Pod, m.result.SuggestedHost)
		if err == nil {
			if status := m.fwk.RunPermitPlugins(ctx, m.state, m.assumed.Pod, m.result.SuggestedHost); !status.IsSuccess() && status.Code() != framework.Wait {
				n++
				err = status.AsError()
			}
		}
		if err == nil {
			continue
		}
		for _, assumed := range a.placed[:n] {
			if assumed.fwk.RejectWaitingPod(assumed.assumed.Pod.UID) {
				assumed.fwk.WaitOnPermit(ctx, assumed.assumed.Pod)
			}
			if err := a.SchedulerCache.ForgetPod(assumed.assumed.Pod); err != nil {
				klog.ErrorS(err, "Scheduler cache ForgetPod failed")
			}
		}
		a.Undo(0)
		decision.Result, decision.Err = gangs.Unschedulable, err
		a.fail(decision)
		return
	}
	metrics.SchedulingAlgorithmLatency.Observe(metrics.SinceInSeconds(a.began))
	bound := map[*gangMember]bool{}
	for _, m := range a.placed {
		bound[m] = true
		if len(m.activate.Map) != 0 {
			a.SchedulingQueue.Activate(m.activate.Map)
			m.activate.Map = make(map[string]*v1.Pod)
		}
		a.bindAsync(ctx, m.fwk, m.state, m.info, m.assumed, m.result, m.activate, a.began)
	}
	if a.reserving == a.gang.Name {
		a.reserving, a.kept = "", nil
	}
	// Those that do not fit beside them are tried alone: the gang runs.
	for _, m := range a.order {
		if !bound[m] {
			a.reports.add(a.gangCycles, []gangReport{a.put(m, a.source, a.rejected, errors.New("PodGroup "+a.gang.Name+gangs.DoesNotFit), v1.PodReasonUnschedulable, "", "")})
		}
	}
}

// fail evicts pods if that makes room, and puts the pods of the gang back into the queue.
func (a *gangAttempt) fail(decision *gangs.Decision) {
	evictions, nominations, reserved := a.deferred, map[*gangMember]string{}, false
	nominate := func() {
		for _, m := range a.placed {
			nominations[m] = m.result.SuggestedHost
		}
		a.Undo(0)
	}
	text, reason, err := gangs.DoesNotFit, v1.PodReasonUnschedulable, decision.Err
	switch {
	case err != nil && err != ErrNoNodesAvailable && len(a.order) >= a.needed:
		reason = SchedulerError
	case decision.Result == gangs.Preempting:
		text = gangs.WaitsToFree
		nominate()
		defer a.evict(&evictions)
	case decision.Result == gangs.Late:
		text, a.rejected = gangs.NotInTime, sets.NewString()
	case a.changed:
		text = gangs.Changed
	case a.wait:
		text = gangs.WaitsToFree
	case a.reserves(a.gang):
		reserved = true
		a.hold(decision)
		nominate()
		a.algorithm.nodeInfoSnapshot.Undo(0)
	}
	if err == nil {
		err = errors.New("PodGroup " + a.gang.Name + text)
	}
	if decision.Result != gangs.Late {
		a.rejected.Insert(a.source.Name()) // A change of the PodGroup helps.
	}
	if reason == SchedulerError {
		klog.ErrorS(err, "Error scheduling gang; retrying", "gang", a.gang.Name)
		metrics.PodScheduleError(a.order[0].fwk.ProfileName(), metrics.SinceInSeconds(a.began))
	} else {
		metrics.PodUnschedulable(a.order[0].fwk.ProfileName(), metrics.SinceInSeconds(a.began))
	}
	told := ""
	if !a.changed {
		told = decision.Text(a.needed)
	}
	var reports []gangReport
	for _, m := range a.order {
		node := nominations[m]
		if a.wait {
			node = m.nominated
		}
		if m.info.Together = true; decision.Result != gangs.Late {
			m.info.Late = 0
		} else if m.info.Late < 2 {
			m.info.Late++
		}
		reports = append(reports, a.put(m, a.source, a.rejected, err, reason, told, node))
	}
	a.reports.add(a.gangCycles, reports)
	if a.reserving == a.gang.Name {
		a.kept = nil
	}
	for i := 0; reserved && i < len(reports); i++ {
		reports[i].nominating = clearNominatedNode
		a.kept = append(a.kept, reports[i])
	}
}

// release ends a reservation.
func (g *gangCycles) release() {
	for _, report := range g.kept {
		g.SchedulingQueue.DeleteNominatedPodIfExists(report.pod)
	}
	g.reports.add(g, g.kept)
	g.kept = nil
}

// evict evicts pods in a goroutine: the scheduling cycle would wait for a request for each of them. Until they have ended,
// the gang does not evict others.
func (a *gangAttempt) evict(evictions *preemption.Deferred) {
	a.evicting.Store(a.gang.Name, true)
	go func() {
		defer a.evicting.Delete(a.gang.Name)
		evictions.Evict()
		evicted, victims := time.Now(), evictions.Victims(0)
		_ = wait.PollImmediateUntil(endInterval, func() (bool, error) {
			for len(victims) > 0 {
				pod, err := a.pods.Pods(victims[0].Namespace).Get(victims[0].Name)
				if err == nil && pod.UID == victims[0].UID && endsUntil(pod, evicted).After(time.Now()) {
					return false, nil
				}
				victims = victims[1:] // It has ended, is stuck, or its eviction has failed.
			}
			return true, nil
		}, a.StopEverything)
	}()
}

// endsUntil returns when a pod that was evicted has ended, or does not.
func endsUntil(pod *v1.Pod, evicted time.Time) time.Time {
	if pod.DeletionTimestamp != nil { // This is the end of its grace period.
		evicted = pod.DeletionTimestamp.Time
	}
	return evicted.Add(seenTimeout)
}

// endInterval is how often it is looked whether pods have ended, and seenTimeout the time in which the informer sees that
// they end.
const endInterval, seenTimeout = 100 * time.Millisecond, 5 * time.Second

// hold places the pods in the best domain, also on nodes that have room as soon as pods of the same priority or a lower
// one end, those with the most room first.
func (a *gangAttempt) hold(decision *gangs.Decision) {
	if len(decision.Tries) == 0 || a.algorithm.snapshot() != nil {
		return
	}
	a.algorithm.gang.held = true
	defer func() { a.algorithm.gang = gangSearch{} }()
	domain, priority := decision.Tries[0].Domain, corev1helpers.PodPriority(a.order[0].info.Pod)
	nodes := append([]*framework.NodeInfo(nil), a.Nodes()...)
	sort.SliceStable(nodes, func(i, j int) bool { return gangs.Used(nodes[i]) < gangs.Used(nodes[j]) })
	for _, m := range a.order {
		for a.Place(context.TODO(), m.info.Pod, domain, false) != nil {
			for len(nodes) > 0 && !domain.Has(nodes[0].Node()) {
				nodes = nodes[1:]
			}
			if len(nodes) == 0 || a.expired() {
				return
			}
			_ = a.algorithm.nodeInfoSnapshot.Edit(nodes[0].Node().Name, func(node *framework.NodeInfo) error {
				for _, on := range append([]*framework.PodInfo(nil), node.Pods...) {
					if corev1helpers.PodPriority(on.Pod) <= priority && a.members[on.Pod.UID] == nil {
						if err := node.RemovePod(on.Pod); err != nil {
							return err
						}
					}
				}
				return nil
			})
			nodes = nodes[1:]
		}
	}
}

// reserves reports whether a gang that does not fit keeps the nodes that it has found. One gang at a time does, for its
// Reservation, and then not for as long.
func (g *gangCycles) reserves(gang *gangs.Gang) bool {
	held, own := time.Since(g.since), g.reserving == gang.Name
	switch {
	case gang.Reservation == 0 || g.reserving != "" && !own && held < gang.Reservation:
		return false
	case own && held < 2*gang.Reservation:
		return held < gang.Reservation
	}
	g.reserving, g.since, g.reservation = gang.Name, time.Now(), gang.Reservation
	// The pods that wait for its end are tried then.
	time.AfterFunc(gang.Reservation+time.Second, func() {
		g.SchedulingQueue.MoveAllToActiveOrBackoffQueue(internalqueue.AssignedPodDelete, nil)
	})
	return true
}

// reject puts a pod back into the queue that cannot be scheduled whatever the cluster has.
func (g *gangCycles) reject(podInfo *framework.QueuedPodInfo, source gangs.Source, reason string) {
	fwk, err := g.frameworkForPod(podInfo.Pod)
	if err != nil {
		return
	}
	if err := g.algorithm.snapshot(); err != nil {
		klog.ErrorS(err, "Scheduler snapshot failed")
	}
	podInfo.Together = false
	m := &gangMember{info: podInfo, fwk: fwk}
	g.reports.add(g, []gangReport{g.put(m, source, sets.NewString(source.Name()), errors.New(reason), v1.PodReasonUnschedulable, "", "")})
}

// put puts a pod back into the queue after an attempt, and records it. The pod is nominated for a node, if it has a name.
func (g *gangCycles) put(m *gangMember, source gangs.Source, rejected sets.String, err error, reason, told, node string) gangReport {
	pod, unfit := m.info.Pod, &framework.FitError{Pod: m.info.Pod, Diagnosis: framework.Diagnosis{UnschedulablePlugins: rejected}}
	if !m.recorded {
		state := framework.NewCycleState()
		g.Records.Next(m.info, m.info.WokenBy)
		attempt := g.Records.Begin(state, pod, m.fwk.ProfileName(), g.algorithm.nodeInfoSnapshot.NumNodes())
		attempt.RejectAll(framework.NewStatus(framework.Unschedulable, err.Error()).WithFailedPlugin(source.Name()))
		g.Records.End(attempt, pod, "", 0, 0, unfit)
	}
	if reason == v1.PodReasonUnschedulable {
		g.Records.Failed(pod, unfit)
	} else {
		g.Records.Failed(pod, err)
	}
	g.Records.Tell(pod, source.Name(), told)
	g.Tracer.Failed(pod, reason == v1.PodReasonUnschedulable)
	// An update of the pod during the attempt has put it into the queue.
	if err := g.SchedulingQueue.Delete(pod); err != nil {
		klog.ErrorS(err, "Failed to delete a pod from the queue", "pod", klog.KObj(pod))
	}
	g.requeue(m.info, unfit)
	nominating := &framework.NominatingInfo{NominatingMode: framework.ModeOverride, NominatedNodeName: node}
	if g.SchedulingQueue.AddNominatedPod(m.info.PodInfo, nominating); node == "" {
		g.SchedulingQueue.DeleteNominatedPodIfExists(pod)
	}
	return gangReport{m.fwk, pod, err, reason, nominating}
}

// gangReport is what is written about a pod.
type gangReport struct {
	fwk        framework.Framework
	pod        *v1.Pod
	err        error
	reason     string
	nominating *framework.NominatingInfo
}

// gangReports are written in their order by a goroutine: the scheduling cycle would wait for a request for each pod.
type gangReports struct {
	mutex   sync.Mutex
	waiting []gangReport
	writing bool
}

func (r *gangReports) add(g *gangCycles, reports []gangReport) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.waiting = append(r.waiting, reports...)
	if !r.writing {
		r.writing = true
		go r.write(g)
	}
}

func (r *gangReports) write(g *gangCycles) {
	for {
		r.mutex.Lock()
		next := r.waiting
		r.waiting, r.writing = nil, len(next) > 0
		r.mutex.Unlock()
		if len(next) == 0 {
			return
		}
		for _, report := range next {
			g.write(report)
		}
	}
}

// write writes the condition of a pod and an event, unless the condition is the same, or the pod has got a node since.
func (g *gangCycles) write(report gangReport) {
	pod, err := g.pods.Pods(report.pod.Namespace).Get(report.pod.Name)
	if err != nil || pod.UID != report.pod.UID || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return
	}
	if _, err := g.SchedulerCache.GetPod(pod); err == nil {
		return
	}
	_, condition := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
	same := condition != nil && condition.Status == v1.ConditionFalse && condition.Message == report.err.Error()
	if same && report.nominating.NominatedNodeName == pod.Status.NominatedNodeName {
		return
	}
	g.reportFailure(report.fwk, pod, report.err, report.reason, report.nominating)
}
