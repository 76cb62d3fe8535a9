// SPDX-License-Identifier: Apache-2.0

// Package decision runs the scheduler without an API server, for tests and benchmarks: upstream's own scheduler over a
// fake client, with the nodes, the configuration and the plugins that it is given.
//
// Schedule sends pods through the queue and through whole scheduling and binding cycles; Decide makes one decision and
// nothing else, which is what a benchmark times.
//
// Two runs with the same input and the same seed, at parallelism 1, make the same decisions. What that takes:
//  1. Nodes and pods are created one after the other once the informers watch: a fake client lists in no order, and
//     loses what is created between an informer's list and its watch.
//  2. The global random source, from which the scheduler draws, is seeded for each decision: others draw from it too,
//     such as the scheduler's trace of a cycle that took longer than 100 ms. So only one scheduler may decide at a
//     time: no t.Parallel.
//  3. The scheduler takes a pod from its queue only when Schedule, Retry or Next says so, and no backoff ends by
//     itself. A pod that found no node is tried again by Retry alone, unless the test asks for no backoff.
//  4. It comes for the next pod only when the pods that the one before preempted are gone.
package decision

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

const (
	// patience is how long anything is waited for: it only bounds a test that fails.
	patience = time.Minute
	// batch is how many objects are created before the informers must have seen them: a fake watch holds 100.
	batch = 50
	// never is a backoff, in seconds, that no test outlives.
	never = 24 * 60 * 60
	// samplePercent is in how many of a hundred cycles the scheduler measures each plugin.
	samplePercent = 10
)

// Options say what scheduler to make.
type Options struct {
	// Config is a KubeSchedulerConfiguration in YAML, in any version that the scheduler reads; the default one if
	// empty.
	Config string
	// Plugins are the plugins that the configuration can name besides upstream's own.
	Plugins frameworkruntime.Registry
	// Nodes are the cluster's, in the order in which the scheduler gets to know them.
	Nodes []*v1.Node
	// Parallelism is how many workers filter and score, instead of what the configuration says; 1 if not given.
	Parallelism int32
	// Seed is the seed of the global random source, from which the scheduler draws between nodes of equal scores.
	Seed int64
	// NoBackoff lets a pod that found no node be tried as soon as an event of the cluster says that it might (see
	// Next).
	NoBackoff bool
}

// Scheduler is upstream's scheduler with the cluster that it sees.
type Scheduler struct {
	*scheduler.Scheduler
	// Client holds the cluster's objects. It binds pods as the API server does.
	Client *fake.Clientset

	tb        testing.TB
	ctx       context.Context
	algorithm scheduler.ScheduleAlgorithm
	names     map[string]bool // of namespaces that exist
	profile   string          // of pods that name no scheduler
	seed      int64
	recorder  recorder
	started   bool
	pop       func() *framework.QueuedPodInfo
	permits   chan struct{} // one for each pod that may be taken from the queue
	given     int           // permits

	mutex     sync.Mutex
	decisions []Decision
	cycles    int // scheduling cycles that ended, not counting their binding cycles
	deleted   []*v1.Pod
}

// Decision is the outcome of one scheduling cycle up to the choice of a node.
type Decision struct {
	// Pod is the pod's namespace and name.
	Pod string
	// Node is the node chosen; empty if there is none.
	Node string
	// Failure says why there is none, as the pod's event does.
	Failure string
}

// New makes a scheduler whose cluster has the given nodes and the namespace default. It ends with the test.
func New(tb testing.TB, options Options) *Scheduler {
	tb.Helper()
	config := configuration(tb, options.Config)
	ctx, cancel := context.WithCancel(context.Background())
	s := &Scheduler{
		Client:  fake.NewSimpleClientset(),
		tb:      tb,
		names:   make(map[string]bool),
		profile: config.Profiles[0].SchedulerName,
		ctx:     ctx,
		permits: make(chan struct{}, 1<<20),
		seed:    options.Seed << 32,
	}
	s.Client.PrependReactor("create", "pods", s.bind)
	s.Client.PrependReactor("delete", "pods", s.noteDeletion)
	watches := watchesOf(s.Client)
	tb.Cleanup(cancel)

	informers := scheduler.NewInformerFactory(s.Client, 0)
	made, err := scheduler.New(s.Client, informers, nil, func(string) events.EventRecorder { return &s.recorder }, ctx.Done(),
		scheduler.WithProfiles(config.Profiles...),
		scheduler.WithExtenders(config.Extenders...),
		scheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		scheduler.WithComponentConfigVersion(config.TypeMeta.APIVersion),
		scheduler.WithParallelism(parallelism(options)),
		scheduler.WithPodInitialBackoffSeconds(backoff(options)),
		scheduler.WithPodMaxBackoffSeconds(backoff(options)),
		scheduler.WithFrameworkOutOfTreeRegistry(options.Plugins))
	if err != nil {
		tb.Fatal(err)
	}
	s.Scheduler, s.algorithm = made, made.Algorithm
	s.pop, s.NextPod = s.NextPod, s.nextPod

	informers.Start(ctx.Done())
	watches.await(tb, len(informers.WaitForCacheSync(ctx.Done())))
	s.createNamespace(metav1.NamespaceDefault)
	s.createNodes(options.Nodes)
	return s
}

func parallelism(options Options) int32 {
	if options.Parallelism == 0 {
		return 1
	}
	return options.Parallelism
}

// backoff is how many seconds a pod that found no node must wait.
func backoff(options Options) int64 {
	if options.NoBackoff {
		return 0
	}
	return never
}

// Complete returns copies of pods with what the API server would have filled in: namespace, UID and scheduler.
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

// Decide makes one decision over a complete pod, and assumes the pod on the node: the part of a scheduling cycle whose
// duration depends on the number of nodes. No cluster object changes, no plugin of a later extension point is called,
// and nothing is seeded.
func (s *Scheduler) Decide(pod *v1.Pod) (string, error) {
	state := framework.NewCycleState()
	state.SetRecordPluginMetrics(rand.Intn(100) < samplePercent)
	result, err := s.algorithm.Schedule(s.ctx, s.Extenders, s.Profiles[pod.Spec.SchedulerName], state, pod)
	if err != nil {
		return "", err
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = result.SuggestedHost
	return result.SuggestedHost, s.SchedulerCache.AssumePod(assumed)
}

// Schedule creates the pods in the given order and, when all are in the scheduler's queue, has it take as many from
// there. It returns what was decided, in order, when the last scheduling cycle has ended; binding may go on (see
// Settle).
func (s *Scheduler) Schedule(pods ...*v1.Pod) []Decision {
	s.tb.Helper()
	s.Create(pods...)
	return s.take(len(pods))
}

// Retry has the scheduler try the named pods (namespace/name), which found no node before, once more.
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

// Next has the scheduler take n pods that are in its queue, or will be in the next minute.
func (s *Scheduler) Next(n int) []Decision {
	s.tb.Helper()
	return s.take(n)
}

// AddNodes creates nodes in the given order, and returns when the scheduler knows them.
func (s *Scheduler) AddNodes(nodes ...*v1.Node) {
	s.tb.Helper()
	s.createNodes(nodes)
}

// UpdateNode changes a node. The scheduler may see it later.
func (s *Scheduler) UpdateNode(node *v1.Node) {
	s.tb.Helper()
	if _, err := s.Client.CoreV1().Nodes().Update(s.ctx, node, metav1.UpdateOptions{}); err != nil {
		s.tb.Fatal(err)
	}
}

// Create creates pods in the given order, and returns when the scheduler knows them. Those with a node are just there;
// those without wait in the scheduler's queue.
func (s *Scheduler) Create(pods ...*v1.Pod) {
	s.tb.Helper()
	pods = s.Complete(pods...)
	for i, pod := range pods {
		s.createNamespace(pod.Namespace)
		if _, err := s.Client.CoreV1().Pods(pod.Namespace).Create(s.ctx, pod, metav1.CreateOptions{}); err != nil {
			s.tb.Fatal(err)
		}
		if (i+1)%batch == 0 || i+1 == len(pods) {
			created := pods[i/batch*batch : i+1]
			s.await("pods in the scheduler", func() bool { return s.knows(created) })
		}
	}
}

// knows tells whether the scheduler has each of the pods in its cache, or waiting in its queue.
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

// take lets the scheduler take n pods from its queue, and waits until it comes back for the next one.
func (s *Scheduler) take(n int) []Decision {
	s.tb.Helper()
	if !s.started {
		s.started = true
		s.Algorithm = &witness{ScheduleAlgorithm: s.algorithm, scheduler: s, seed: s.seed}
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

// nextPod is the scheduler's way to its queue. When it comes for the next pod, the cycle of the one before has ended.
func (s *Scheduler) nextPod() *framework.QueuedPodInfo {
	s.awaitDeletions()
	s.mutex.Lock()
	s.cycles = len(s.decisions)
	s.mutex.Unlock()
	select {
	case <-s.permits:
		return s.pop()
	case <-s.ctx.Done():
		return nil
	}
}

// awaitDeletions waits until no pod that was deleted is in the scheduler's cache. It is not called by the test's
// goroutine, which alone may end the test.
func (s *Scheduler) awaitDeletions() {
	s.mutex.Lock()
	deleted := s.deleted
	s.deleted = nil
	s.mutex.Unlock()
	for _, pod := range deleted {
		err := wait.PollImmediate(time.Millisecond, patience, func() (bool, error) {
			_, err := s.SchedulerCache.GetPod(pod)
			return err != nil, nil
		})
		if err != nil {
			s.tb.Errorf("waited %v in vain for the end of the deleted pod %s", patience, key(pod))
		}
	}
}

// witness seeds the random source for each decision of the scheduler's algorithm, and writes the decision down.
type witness struct {
	scheduler.ScheduleAlgorithm
	scheduler *Scheduler
	seed      int64
}

// Schedule makes the decision as the algorithm does.
func (w *witness) Schedule(ctx context.Context, extenders []framework.Extender, profile framework.Framework, state *framework.CycleState,
	pod *v1.Pod) (scheduler.ScheduleResult, error) {
	w.reseed()
	// Preemption, which comes next if there is no node, draws too.
	defer w.reseed()
	result, err := w.ScheduleAlgorithm.Schedule(ctx, extenders, profile, state, pod)
	decision := Decision{Pod: key(pod), Node: result.SuggestedHost}
	if err != nil {
		decision = Decision{Pod: key(pod), Failure: err.Error()}
	}
	w.scheduler.mutex.Lock()
	defer w.scheduler.mutex.Unlock()
	w.scheduler.decisions = append(w.scheduler.decisions, decision)
	return result, err
}

func (w *witness) reseed() {
	w.seed++
	//lint:ignore SA1019 the scheduler draws from the global source, which nothing else can seed
	rand.Seed(w.seed)
}

// Settle waits until every binding cycle has ended, and until the scheduler has seen what came of it. (PostBind plugins
// may still be running: nothing that can be seen follows them.)
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
	pods, err := s.Client.CoreV1().Pods(metav1.NamespaceAll).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.tb.Fatal(err)
	}
	nodes := make(map[string]string)
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Spec.NodeName != "" {
			nodes[key(pod)] = pod.Spec.NodeName
		}
	}
	return nodes
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
	for i, node := range nodes {
		if _, err := s.Client.CoreV1().Nodes().Create(s.ctx, node, metav1.CreateOptions{}); err != nil {
			s.tb.Fatal(err)
		}
		if (i+1)%batch == 0 || i+1 == len(nodes) {
			s.await("nodes in the scheduler's cache", func() bool { return s.SchedulerCache.NodeCount() == before+i+1 })
		}
	}
}

func (s *Scheduler) await(what string, done func() bool) {
	s.tb.Helper()
	await(s.tb, what, done)
}

func await(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	err := wait.PollImmediate(time.Millisecond, patience, func() (bool, error) { return done(), nil })
	if err != nil {
		tb.Fatalf("waited %v in vain for %s", patience, what)
	}
}

func key(pod *v1.Pod) string {
	return fmt.Sprintf("%s/%s", pod.Namespace, pod.Name)
}
