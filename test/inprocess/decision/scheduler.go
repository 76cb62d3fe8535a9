// SPDX-License-Identifier: Apache-2.0

// Package decision runs the scheduler without an API server, for tests and benchmarks: upstream's own scheduler with a
// fake client, and the given nodes, configuration and plugins.
//
// Schedule sends pods through the queue and through whole scheduling and binding cycles. Decide makes only one
// decision, for benchmarks.
//
// Two runs with the same input and the same seed, at parallelism 1, make the same decisions. This requires:
//  1. Nodes and pods are created one after the other once the informers watch: a fake client lists in random order, and
//     loses objects that are created between an informer's list and its watch.
//  2. The global random source, which the scheduler uses, is seeded for each decision, because it has other users, such
//     as the scheduler's trace of a cycle that took longer than 100 ms. So only one scheduler may run at a time, and
//     tests must not call t.Parallel.
//  3. The scheduler takes a pod from its queue only during Schedule, Retry or Next, and no backoff expires. Only Retry
//     retries an unschedulable pod, unless the test sets NoBackoff.
//  4. It takes the next pod only after the victims of the previous one are gone.
package decision

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

const (
	// waitTimeout limits every wait. Only a failing test reaches it.
	waitTimeout = time.Minute
	// never is a backoff, in seconds, longer than any test.
	never = 24 * 60 * 60
	// samplePercent is the percentage of cycles in which the scheduler measures each plugin.
	samplePercent = 10
)

// Options configure a scheduler.
type Options struct {
	// Config is a KubeSchedulerConfiguration in YAML, in any version that the scheduler reads; the default one if
	// empty.
	Config string
	// Plugins are additional plugins for the configuration, besides those compiled into the scheduler. In a patched
	// tree this project's own plugins are compiled in, and used from there.
	Plugins frameworkruntime.Registry
	// KubeConfig is for plugins that make clients.
	KubeConfig *restclient.Config
	// Nodes are the cluster's nodes, in the order in which the scheduler receives them.
	Nodes []*v1.Node
	// Objects are in the cluster from the start, in any order: neither pods nor nodes.
	Objects []runtime.Object
	// Parallelism is the number of workers for filter and score, overriding the configuration; by default 1.
	Parallelism int32
	// AllNodes makes the scheduler evaluate every node for each pod, overriding the configuration.
	AllNodes bool
	// Seed is the seed of the global random source, by which the scheduler chooses among nodes with equal scores.
	Seed int64
	// NoBackoff makes an unschedulable pod ready for a retry (see Next) as soon as an event of the cluster requeues it.
	NoBackoff bool
	// OneByOne makes the scheduler take the next pod only after the previous one is bound, and after the queue has
	// received all updates that the scheduler made to pending pods. These updates become visible at the end of the
	// scheduling cycle. Each pod has a different start time.
	OneByOne bool
	// Graceful makes pods that the scheduler deletes terminate: they stay on their nodes until DeletePod.
	Graceful bool
	// Outcome, if set, returns for some pods (namespace/name) the outcome of their cycle in another scheduler, by which this
	// one goes: a node, or NoNode.
	Outcome func(pod string) (outcome string, known bool)
	// WhatIfs runs an additional dry run for each pod during scheduling, if the scheduler supports dry runs.
	WhatIfs bool
}

// NoNode is the outcome of a cycle in which no node fits a pod.
const NoNode = "no node"

// Scheduler is upstream's scheduler with its cluster.
type Scheduler struct {
	*scheduler.Scheduler
	// Client holds the cluster's objects. It binds pods as the API server does.
	Client *fake.Clientset

	tb        testing.TB
	ctx       context.Context
	stop      context.CancelFunc
	algorithm scheduler.ScheduleAlgorithm
	pods      cache.Store     // the informer's
	spaces    cache.Store     // the informer's namespaces
	names     map[string]bool // of namespaces that exist
	profile   string          // of pods without a scheduler name
	seed      int64
	recorder  recorder
	started   bool
	pop       func() *framework.QueuedPodInfo
	permits   chan struct{} // one for each pod that may be taken from the queue
	given     int           // number of permits so far
	oneByOne  bool
	graceful  bool
	whatIfs   bool
	outcome   func(pod string) (string, bool)
	asking    int32 // 1 during a dry run
	last      *v1.Pod
	version   int64             // of the last changed object
	changes   int               // of nodes and pods
	patched   map[string]string // the resource versions of pods since the last cycle

	watches *watches

	idle   chan struct{} // for Attempts: the scheduler has ended all of them
	left   int           // for Attempts: those that have not begun
	before func()

	mutex     sync.Mutex
	decisions []Decision
	cycles    int // completed scheduling cycles, without their binding cycles
	deleted   []*v1.Pod
	patches   []clienttesting.Action // held back until the end of the scheduling cycle
}

// Decision is the outcome of one scheduling cycle up to the choice of a node.
type Decision struct {
	// Pod is the pod's namespace and name.
	Pod string
	// Node is the node chosen; empty if there is none.
	Node string
	// Failure is the reason why there is none, as in the pod's event.
	Failure string
	// Scores are the scores of nodes, in the order of the search, after WatchScores. A single node has none.
	Scores string
}

// addCarried adds the plugins of other projects to a registry, as kube-scheduler's main does. It is set by code that is
// generated for tests compiled with these plugins: see scripts/stock-and-fork.sh.
var addCarried func(frameworkruntime.Registry) error

// askWhatIf does a dry run of a pod. It is set by code that is compiled only with the patched tree.
var askWhatIf func(context.Context, *scheduler.Scheduler, *v1.Pod) error

// answered is the number of dry runs with an answer, and refused the number without.
var answered, refused int32

// WhatIfs reports whether schedulers support dry runs, and returns the number of answered and refused ones.
func WhatIfs() (can bool, did, didNot int) {
	return askWhatIf != nil, int(atomic.LoadInt32(&answered)), int(atomic.LoadInt32(&refused))
}

// registry returns the plugins that the scheduler does not register by itself.
func registry(tb testing.TB, given frameworkruntime.Registry) frameworkruntime.Registry {
	registry := make(frameworkruntime.Registry)
	if addCarried != nil {
		if err := addCarried(registry); err != nil {
			tb.Fatal(err)
		}
	}
	inTree := plugins.NewInTreeRegistry()
	for name, factory := range given {
		if _, ok := inTree[name]; !ok {
			registry[name] = factory
		}
	}
	return registry
}

// New returns a scheduler whose cluster has the given nodes and the
// namespace default. It is stopped at the end of the test.
func New(tb testing.TB, options Options) *Scheduler {
	tb.Helper()
	config := configuration(tb, options.Config)
	ctx, cancel := context.WithCancel(context.Background())
	s := &Scheduler{
		Client:   fake.NewSimpleClientset(options.Objects...),
		tb:       tb,
		names:    make(map[string]bool),
		patched:  make(map[string]string),
		profile:  config.Profiles[0].SchedulerName,
		ctx:      ctx,
		stop:     cancel,
		permits:  make(chan struct{}, 1<<20),
		idle:     make(chan struct{}, 1),
		seed:     options.Seed << 32,
		oneByOne: options.OneByOne,
		graceful: options.Graceful,
		whatIfs:  options.WhatIfs && askWhatIf != nil,
		outcome:  options.Outcome,
	}
	s.Client.PrependReactor("create", "pods", s.bind)
	s.Client.PrependReactor("delete", "pods", s.noteDeletion)
	if options.OneByOne {
		s.Client.PrependReactor("patch", "pods", s.patch)
	}
	s.watches = watchesOf(s.Client)
	// The fake client serializes all calls, those of tests and of the binding cycles of many pods.
	s.Client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.watches.awaitRoom()
		return false, nil, nil
	})
	tb.Cleanup(cancel)

	factory := scheduler.NewInformerFactory(s.Client, 0)
	recorder := func(string) events.EventRecorder { return &s.recorder }
	made, err := scheduler.New(s.Client, factory, nil, recorder, ctx.Done(),
		scheduler.WithProfiles(config.Profiles...),
		scheduler.WithExtenders(config.Extenders...),
		scheduler.WithPercentageOfNodesToScore(percentage(options, config.PercentageOfNodesToScore)),
		scheduler.WithComponentConfigVersion(config.TypeMeta.APIVersion),
		scheduler.WithParallelism(parallelism(options)),
		scheduler.WithPodInitialBackoffSeconds(backoff(options)),
		scheduler.WithPodMaxBackoffSeconds(backoff(options)),
		scheduler.WithFrameworkOutOfTreeRegistry(registry(tb, options.Plugins)),
		scheduler.WithKubeConfig(options.KubeConfig))
	if err != nil {
		tb.Fatal(err)
	}
	s.Scheduler, s.algorithm, s.pods = made, made.Algorithm, factory.Core().V1().Pods().Informer().GetStore()
	s.pop, s.NextPod = s.NextPod, s.nextPod
	s.spaces = factory.Core().V1().Namespaces().Informer().GetStore()

	factory.Start(ctx.Done())
	s.watches.await(tb, awaitSync(tb, factory))
	s.awaitVolumes(options.Objects)
	s.createNamespace(metav1.NamespaceDefault)
	s.createNodes(options.Nodes)
	return s
}

// awaitSync waits until the informers have listed their objects, and returns the number of those that use the fake
// client. It polls more often than the factory, which polls ten times per second.
func awaitSync(tb testing.TB, factory informers.SharedInformerFactory) int {
	now := make(chan struct{})
	close(now)
	var synced map[reflect.Type]bool
	await(tb, "the informers' lists", func() bool {
		synced = factory.WaitForCacheSync(now)
		for _, done := range synced {
			if !done {
				return false
			}
		}
		return true
	})
	n := 0
	for object := range synced {
		// Informers of plugins have their own clients.
		if strings.HasPrefix(object.Elem().PkgPath(), "k8s.io/api/") {
			n++
		}
	}
	return n
}

func parallelism(options Options) int32 {
	if options.Parallelism == 0 {
		return 1
	}
	return options.Parallelism
}

// percentage returns percentageOfNodesToScore. The search for nodes ends when this percentage of the nodes fits.
func percentage(options Options, configured int32) int32 {
	if options.AllNodes {
		return 100
	}
	return configured
}

// backoff returns the backoff of an unschedulable pod in seconds.
func backoff(options Options) int64 {
	if options.NoBackoff {
		return 0
	}
	return never
}

// Complete returns copies of pods with the defaults of the API server: namespace, UID and scheduler.
func (s *Scheduler) Complete(pods ...*v1.Pod) []*v1.Pod {
	var complete []*v1.Pod
	for _, pod := range pods {
		pod = pod.DeepCopy()
		if pod.Namespace == "" {
			pod.Namespace = metav1.NamespaceDefault
		}
		if pod.UID == "" {
			pod.UID = types.UID(key(pod))
		}
		if pod.Spec.SchedulerName == "" {
			pod.Spec.SchedulerName = s.profile
		}
		complete = append(complete, pod)
	}
	return complete
}

// CompareCache returns the differences between the cluster and what a patched scheduler keeps of it between cycles, as it logs
// them at SIGUSR2.
func (s *Scheduler) CompareCache() []string {
	type comparer interface {
		CompareCache(map[string]*framework.NodeInfo) []string
	}
	if profiles, ok := interface{}(s.Profiles).(comparer); ok {
		return profiles.CompareCache(s.SchedulerCache.Dump().Nodes)
	}
	return nil
}

// Decide makes one decision over a complete pod, and assumes the pod on the node: the part of a scheduling cycle whose
// duration depends on the number of nodes. If no node fits, it tries preemption, and returns the nominated node, if
// any, in addition to the error. It calls no plugin of a later extension point, and does not seed the random source.
func (s *Scheduler) Decide(pod *v1.Pod) (string, error) {
	state := framework.NewCycleState()
	state.SetRecordPluginMetrics(rand.Intn(100) < samplePercent)
	profile := s.Profiles[pod.Spec.SchedulerName]
	result, err := s.algorithm.Schedule(s.ctx, s.Extenders, profile, state, pod)
	if err != nil {
		nominated := ""
		if fitError, ok := err.(*framework.FitError); ok && profile.HasPostFilterPlugins() {
			preemption, _ := profile.RunPostFilterPlugins(s.ctx, state, pod, fitError.Diagnosis.NodeToStatusMap)
			if preemption != nil {
				nominated = preemption.NominatedNodeName
			}
		}
		return nominated, err
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = result.SuggestedHost
	return result.SuggestedHost, s.SchedulerCache.AssumePod(assumed)
}

// List makes a pod for Decide visible to the lister, as preemption requires. The pod is in no queue.
func (s *Scheduler) List(pod *v1.Pod) {
	s.tb.Helper()
	if err := s.pods.Add(pod); err != nil {
		s.tb.Fatal(err)
	}
}

// Schedule creates the pods in the given order, waits until all are in the scheduler's queue, and makes the scheduler
// take as many pods. It returns the decisions in order after the last scheduling cycle. Binding cycles may still run
// (see Settle).
func (s *Scheduler) Schedule(pods ...*v1.Pod) []Decision {
	s.tb.Helper()
	s.Create(pods...)
	return s.take(len(pods))
}

// Retry makes the scheduler retry the named unschedulable pods (namespace/name) once.
func (s *Scheduler) Retry(names ...string) []Decision {
	s.tb.Helper()
	again := make(map[string]*v1.Pod)
	for _, pod := range s.SchedulingQueue.PendingPods() {
		again[key(pod)] = pod
	}
	chosen := make(map[string]*v1.Pod)
	for _, name := range names {
		if again[name] == nil {
			s.tb.Fatalf("the pod %s is not in the scheduler's queue", name)
		}
		chosen[name] = again[name]
	}
	s.SchedulingQueue.Activate(chosen)
	return s.take(len(names))
}

// Next makes the scheduler take n pods that are in its queue, or will be in the next minute.
func (s *Scheduler) Next(n int) []Decision {
	s.tb.Helper()
	return s.take(n)
}

// AddNodes creates nodes in the given order, and waits until the scheduler has received them.
func (s *Scheduler) AddNodes(nodes ...*v1.Node) {
	s.tb.Helper()
	s.createNodes(nodes)
}

// PutNode creates or changes a node, and waits until the scheduler has received it. A node with another UID is deleted
// first.
func (s *Scheduler) PutNode(node *v1.Node) {
	s.tb.Helper()
	s.changes++
	node = node.DeepCopy()
	if known := s.known(node.Name); known != nil && known.UID != node.UID {
		s.DeleteNode(node.Name)
	}
	node.Annotations = map[string]string{"change": fmt.Sprint(s.changes)}
	if s.HasNode(node.Name) {
		s.UpdateNode(node)
	} else if _, err := s.Client.CoreV1().Nodes().Create(s.ctx, node, metav1.CreateOptions{}); err != nil {
		s.tb.Fatal(err)
	}
	s.await("the node in the scheduler's cache", func() bool {
		known := s.known(node.Name)
		return known != nil && known.Annotations["change"] == node.Annotations["change"]
	})
}

// DeleteNode deletes a node, if it exists, and waits until the scheduler has removed it.
func (s *Scheduler) DeleteNode(name string) {
	s.tb.Helper()
	if !s.HasNode(name) {
		return
	}
	if err := s.Client.CoreV1().Nodes().Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.tb.Fatal(err)
	}
	s.await("the end of the node", func() bool { return s.known(name) == nil })
}

// HasNode reports whether the cluster has a node.
func (s *Scheduler) HasNode(name string) bool {
	_, err := s.Client.CoreV1().Nodes().Get(s.ctx, name, metav1.GetOptions{})
	return err == nil
}

// known returns the scheduler's copy of a node, or nil.
func (s *Scheduler) known(name string) *v1.Node {
	if info := s.SchedulerCache.Dump().Nodes[name]; info != nil {
		return info.Node()
	}
	return nil
}

// DeletePod deletes a pod (namespace/name), if it exists, and waits until the scheduler has removed it.
func (s *Scheduler) DeletePod(name string) {
	s.tb.Helper()
	pod := s.pod(name)
	if pod == nil {
		return
	}
	s.watches.awaitRoom()
	if err := s.Client.Tracker().Delete(podResource, pod.Namespace, pod.Name); err != nil {
		s.tb.Fatal(err)
	}
	s.await("the end of the pod", func() bool {
		_, err := s.SchedulerCache.GetPod(pod)
		return err != nil && !s.waits(name)
	})
}

// Waiting returns the pods in the scheduler's queue as namespace/name, sorted.
func (s *Scheduler) Waiting() []string {
	var names []string
	for _, pod := range s.SchedulingQueue.PendingPods() {
		names = append(names, key(pod))
	}
	sort.Strings(names)
	return names
}

func (s *Scheduler) waits(name string) bool {
	for _, waiting := range s.Waiting() {
		if waiting == name {
			return true
		}
	}
	return false
}

// UpdateNode changes a node. It does not wait for the scheduler.
func (s *Scheduler) UpdateNode(node *v1.Node) {
	s.tb.Helper()
	if _, err := s.Client.CoreV1().Nodes().Update(s.ctx, node, metav1.UpdateOptions{}); err != nil {
		s.tb.Fatal(err)
	}
}

// Create creates pods in the given order, and waits until the scheduler has received them. Pods with a node count as
// placed; the others wait in the scheduler's queue.
func (s *Scheduler) Create(pods ...*v1.Pod) {
	s.tb.Helper()
	pods = s.Complete(pods...)
	for _, pod := range pods {
		s.createNamespace(pod.Namespace)
		if s.oneByOne {
			// Preemption compares nodes by the start time last, and uses the current time if it is missing.
			s.changes++
			started := metav1.Unix(int64(s.changes), 0)
			pod.Status.StartTime = &started
		}
		if _, err := s.Client.CoreV1().Pods(pod.Namespace).Create(s.ctx, pod, metav1.CreateOptions{}); err != nil {
			s.tb.Fatal(err)
		}
	}
	s.await("pods in the scheduler", func() bool { return s.knows(pods) })
}

// knows reports whether the scheduler has each of the pods in its cache or its queue.
func (s *Scheduler) knows(pods []*v1.Pod) bool {
	waiting := make(map[types.UID]bool)
	for _, pod := range s.SchedulingQueue.PendingPods() {
		waiting[pod.UID] = true
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && !waiting[pod.UID] {
			return false
		}
		if _, err := s.SchedulerCache.GetPod(pod); pod.Spec.NodeName != "" && err != nil {
			return false
		}
	}
	return true
}

// Attempts makes the scheduler take n pods from its queue, and returns what it decided after the last whole attempt: for
// a pod without a node that is after the queue has it again, and its event and its condition are written. before is
// called before each attempt. For benchmarks: nothing is awaited or seeded, and the scheduler must run nothing else.
func (s *Scheduler) Attempts(n int, before func()) []Decision {
	s.tb.Helper()
	if !s.started {
		s.started = true
		s.NextPod, s.Algorithm = s.nextAttempt, &observer{s.algorithm, s}
		go s.Scheduler.Run(s.ctx)
		<-s.idle
	}
	s.left, s.before, s.decisions = n, before, make([]Decision, 0, n)
	s.permits <- struct{}{}
	<-s.idle
	return s.decisions
}

// nextAttempt replaces the function with which the scheduler takes pods from its queue, for Attempts.
func (s *Scheduler) nextAttempt() *framework.QueuedPodInfo {
	if s.left == 0 {
		s.idle <- struct{}{}
		select {
		case <-s.permits:
		case <-s.ctx.Done():
			return nil
		}
	}
	s.left--
	s.before()
	return s.pop()
}

// observer records the decisions of the scheduler's algorithm, for Attempts.
type observer struct {
	scheduler.ScheduleAlgorithm
	scheduler *Scheduler
}

// Schedule calls the algorithm.
func (o *observer) Schedule(ctx context.Context, extenders []framework.Extender, profile framework.Framework, state *framework.CycleState,
	pod *v1.Pod) (scheduler.ScheduleResult, error) {
	result, err := o.ScheduleAlgorithm.Schedule(ctx, extenders, profile, state, pod)
	o.scheduler.decisions = append(o.scheduler.decisions, Decision{Pod: key(pod), Node: result.SuggestedHost})
	return result, err
}

// take permits the scheduler to take n pods from its queue, and waits until it requests the next one.
func (s *Scheduler) take(n int) []Decision {
	s.tb.Helper()
	if !s.started {
		s.started = true
		s.Algorithm = &witness{ScheduleAlgorithm: s.algorithm, scheduler: s}
		go s.Scheduler.Run(s.ctx)
	}
	before := s.given
	s.given += n
	for i := 0; i < n; i++ {
		s.permits <- struct{}{}
	}
	s.await("scheduling cycles", func() bool {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		return s.cycles == s.given
	})
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]Decision(nil), s.decisions[before:]...)
}

// AwaitPods starts the scheduler without pods to schedule, so that it can answer requests.
func (s *Scheduler) AwaitPods() {
	s.started = true
	go s.Scheduler.Run(s.ctx)
	s.permits <- struct{}{}
}

// ask starts a dry run of the previous cycle's pod: it runs before this cycle or a later one.
func (s *Scheduler) ask() {
	if !s.whatIfs || s.last == nil || !atomic.CompareAndSwapInt32(&s.asking, 0, 1) {
		return
	}
	go func(pod *v1.Pod) {
		defer atomic.StoreInt32(&s.asking, 0)
		if err := askWhatIf(s.ctx, s.Scheduler, pod); err == nil {
			atomic.AddInt32(&answered, 1)
		} else if s.ctx.Err() == nil {
			atomic.AddInt32(&refused, 1)
		}
	}(s.last)
}

// nextPod replaces the function with which the scheduler takes pods from its queue. When the scheduler calls it, the
// scheduling cycle of the previous pod has ended.
func (s *Scheduler) nextPod() *framework.QueuedPodInfo {
	s.applyPatches()
	s.awaitDeletions()
	if s.oneByOne {
		s.awaitQuiet()
	}
	s.mutex.Lock()
	s.cycles = len(s.decisions)
	s.mutex.Unlock()
	select {
	case <-s.permits:
		s.ask()
		podInfo := s.pop()
		if s.whatIfs && podInfo != nil {
			// A dry run of the same pod would be refused once the pod has a node.
			s.last = podInfo.Pod.DeepCopy()
			s.last.UID = "what-if"
		}
		s.reseed()
		return podInfo
	case <-s.ctx.Done():
		return nil
	}
}

// awaitDeletions waits until no deleted pod is in the scheduler's cache.
// It does not run in the test's goroutine, so it must not call t.Fatal.
func (s *Scheduler) awaitDeletions() {
	s.mutex.Lock()
	deleted := s.deleted
	s.deleted = nil
	s.mutex.Unlock()
	for _, pod := range deleted {
		gone := poll(func() bool {
			known, err := s.SchedulerCache.GetPod(pod)
			return err != nil || s.graceful && known.DeletionTimestamp != nil
		})
		if !gone {
			s.tb.Errorf("after %v the deleted pod %s is still in the scheduler's cache", waitTimeout, key(pod))
		}
	}
}

// awaitQuiet waits until all pods with a node are bound, and the queue has received the scheduler's updates of pending
// pods: a nomination affects the next decision, and an update during a pod's own cycle would add it to the queue twice.
func (s *Scheduler) awaitQuiet() {
	quiet := poll(func() bool {
		if len(s.SchedulerCache.Dump().AssumedPods) > 0 {
			return false
		}
		for _, pod := range s.SchedulingQueue.PendingPods() {
			if version, patched := s.patched[key(pod)]; patched && version != pod.ResourceVersion {
				return false
			}
		}
		return true
	})
	s.patched = map[string]string{}
	if !quiet {
		s.tb.Errorf("after %v a pod is not bound yet, or the queue does not have the current status of its pods", waitTimeout)
	}
}

// witness seeds the random source after each decision of the scheduler's algorithm, and records the decision.
type witness struct {
	scheduler.ScheduleAlgorithm
	scheduler *Scheduler
}

// Schedule calls the algorithm, or goes by a known outcome.
func (w *witness) Schedule(ctx context.Context, extenders []framework.Extender, profile framework.Framework, state *framework.CycleState,
	pod *v1.Pod) (scheduler.ScheduleResult, error) {
	// Preemption, the next step if there is no node, also uses random numbers.
	defer w.scheduler.reseed()
	outcome, known := "", false
	if w.scheduler.outcome != nil {
		outcome, known = w.scheduler.outcome(key(pod))
	}
	scoresOfCycle.take()
	var result scheduler.ScheduleResult
	var err error
	if known {
		result, err = w.scheduler.follow(profile, state, pod, outcome)
	} else {
		result, err = w.ScheduleAlgorithm.Schedule(ctx, extenders, profile, state, pod)
	}
	decision := Decision{Pod: key(pod), Node: result.SuggestedHost}
	if err != nil {
		decision = Decision{Pod: key(pod), Failure: err.Error()}
	}
	decision.Scores = text(scoresOfCycle.take())
	w.scheduler.mutex.Lock()
	defer w.scheduler.mutex.Unlock()
	w.scheduler.decisions = append(w.scheduler.decisions, decision)
	return result, err
}

// follow returns the outcome of another scheduler's cycle. A node must pass the filters, which also set the state that
// Reserve needs.
func (s *Scheduler) follow(profile framework.Framework, state *framework.CycleState, pod *v1.Pod, outcome string) (scheduler.ScheduleResult, error) {
	if outcome == NoNode {
		return scheduler.ScheduleResult{}, &framework.FitError{Pod: pod}
	}
	if err := s.updateSnapshot(profile); err != nil {
		return scheduler.ScheduleResult{}, err
	}
	node, err := profile.SnapshotSharedLister().NodeInfos().Get(outcome)
	if err != nil {
		return scheduler.ScheduleResult{}, errors.New(outcome)
	}
	status := profile.RunPreFilterPlugins(s.ctx, state, pod)
	if status.IsSuccess() {
		status = profile.RunFilterPluginsWithNominatedPods(s.ctx, state, pod, node)
	}
	return scheduler.ScheduleResult{SuggestedHost: outcome, EvaluatedNodes: 1, FeasibleNodes: 1}, status.AsError()
}

// reseed seeds the global random source. Only the scheduler's goroutine calls it.
func (s *Scheduler) reseed() {
	s.seed++
	//lint:ignore SA1019 the scheduler draws from the global source, which nothing else can seed
	rand.Seed(s.seed)
}

// Stop stops the scheduler and its informers before the end of the test.
func (s *Scheduler) Stop() { s.stop() }

// Settle waits until every binding cycle has ended and the scheduler has received its results. PostBind plugins may
// still be running, because their end cannot be observed.
func (s *Scheduler) Settle() {
	s.tb.Helper()
	s.await("binding cycles", func() bool { return s.recorder.outcomes() == s.given })
	s.await("the scheduler's cache", func() bool {
		count, err := s.SchedulerCache.PodCount()
		return err == nil && count == len(s.Bound())
	})
}

// Bound returns the node of each pod that has one, by the pod's namespace and name.
func (s *Scheduler) Bound() map[string]string {
	nodes := make(map[string]string)
	for name, pod := range s.Pods() {
		if pod.Spec.NodeName != "" {
			nodes[name] = pod.Spec.NodeName
		}
	}
	return nodes
}

// Pods returns all pods of the cluster, by their namespaces and names.
func (s *Scheduler) Pods() map[string]*v1.Pod {
	list, err := s.Client.CoreV1().Pods(metav1.NamespaceAll).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.tb.Fatal(err)
	}
	pods := make(map[string]*v1.Pod)
	for i := range list.Items {
		pods[key(&list.Items[i])] = &list.Items[i]
	}
	return pods
}

// Events returns the events that the scheduler and its plugins have sent so far.
func (s *Scheduler) Events() []Event {
	return s.recorder.all()
}

func (s *Scheduler) createNamespace(name string) {
	if s.names[name] {
		return
	}
	s.names[name] = true
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelMetadataName: name}}}
	if _, err := s.Client.CoreV1().Namespaces().Create(s.ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		s.tb.Fatal(err)
	}
}

func (s *Scheduler) createNodes(nodes []*v1.Node) {
	before := s.SchedulerCache.NodeCount()
	for _, node := range nodes {
		if _, err := s.Client.CoreV1().Nodes().Create(s.ctx, node, metav1.CreateOptions{}); err != nil {
			s.tb.Fatal(err)
		}
	}
	s.await("nodes in the scheduler's cache", func() bool { return s.SchedulerCache.NodeCount() == before+len(nodes) })
}

func (s *Scheduler) await(what string, done func() bool) {
	s.tb.Helper()
	await(s.tb, what, done)
}

func await(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	if !poll(done) {
		tb.Fatalf("timed out after %v waiting for %s", waitTimeout, what)
	}
}

// poll reports whether a condition becomes true in time. It polls often, because most of the hundreds of conditions of
// an oracle scenario become true at once.
func poll(done func() bool) bool {
	for began := time.Now(); !done(); time.Sleep(100 * time.Microsecond) {
		if time.Since(began) > waitTimeout {
			return false
		}
	}
	return true
}

func key(pod *v1.Pod) string {
	return fmt.Sprintf("%s/%s", pod.Namespace, pod.Name)
}
