// SPDX-License-Identifier: Apache-2.0

// Package replay runs upstream's whole scheduler in virtual time, on a cluster in memory. Pods are created, run, end,
// and are evicted and replaced by their owners; nodes come, fail and go.
//
// All of it runs in one bubble of testing/synctest: a clock that all goroutines share, those of the scheduler, of its
// plugins and of plugins of other projects, and that moves on to the next timer when all of them wait. So no plugin needs
// a clock that tests can replace, and none can use another one.
//
// Two runs with the same input and the same seed are the same. This requires:
//  1. Parallelism is 1. The scheduler takes a pod from its queue only when everything else waits, and the next one only
//     after all effects of the previous one.
//  2. Changes that goroutines ask for at the same virtual time are made in the order of their objects' names.
//  3. The global random source, which the scheduler uses to choose among equal nodes, is seeded for each attempt.
//  4. A process runs one simulation: metrics and the random source are global. See Process.
package replay

import (
	"container/heap"
	"context"
	"errors"
	"math/rand"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// Options configure a simulation.
type Options struct {
	// Config is a complete and valid configuration.
	Config *schedulerconfig.KubeSchedulerConfiguration
	// Registry has the plugins that the scheduler does not have by itself.
	Registry frameworkruntime.Registry
	// Cluster is the state at the start. The simulation takes its objects.
	Cluster *input.Cluster
	// Seed is the seed of the choice among nodes with equal scores.
	Seed int64
	// Scheduler are further options of the scheduler.
	Scheduler []scheduler.Option
	// NoPreemption makes pods preempt nothing.
	NoPreemption bool
	// Question is whether only the end matters, not the time: pods have no grace period.
	Question bool
	// Again is whether PlaceAgain is called: only the end matters, too.
	Again bool
	// History is whether events are the history of a cluster: its controllers have made pods again, those of DaemonSets on new nodes, too.
	History bool
	// Explain has the namespaces and names of the pods whose records Outcome has. The patched scheduler keeps records.
	Explain map[string]bool
	// PriceLabel is the node label with the node's price for an hour; empty for none.
	PriceLabel string
	// Hot is the share of a node's CPU or memory above which it is hot.
	Hot float64
}

// bubble calls do in a bubble in which the clock starts at the given time. It does not return: the scheduler's goroutines
// never end, and a bubble waits for all of them. So do ends the process.
func bubble(start time.Time, do func()) {
	// The scheduler's debugger waits for this signal. The goroutine that receives signals starts with the first call, and
	// would stop the clock of the bubble.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
	go func() {
		for do := range outside {
			go do()
		}
	}()
	// The bubble needs nothing of the test: TestBubble.
	synctest.Test(&testing.T{}, func(*testing.T) {
		// Goroutines that wait for a channel from outside of the bubble would stop the clock.
		wait.NeverStop = make(chan struct{})
		time.Sleep(time.Until(start))
		do()
	})
}

// interrupted is 1 after Interrupt. A goroutine of the bubble cannot wait for another one outside.
var interrupted int32

// Interrupt ends Advance. It may be called at any time, also from outside of the bubble.
func Interrupt() { atomic.StoreInt32(&interrupted, 1) }

// ErrInterrupted is returned by Advance after Interrupt.
var ErrInterrupted = errors.New("interrupted")

// Simulation is a scheduler with its cluster. Its methods are for one goroutine.
type Simulation struct {
	*scheduler.Scheduler
	options Options
	context context.Context
	start   time.Time
	store   *store
	api     *api
	pods    map[string]*pod // by namespace/name
	nodes   map[string]*node
	budgets []*budget
	permits chan struct{}
	cycles  int64
	agenda  agenda
	entries int
	// claims is the number of claims that controllers made.
	claims int
	// retries is the number of evictions to retry in the agenda, and moves counts the pods that were placed or ended.
	retries, moves int
	// adopted is the number of the snapshot's pods with a node, in nanoseconds.
	adopted time.Duration
	measure *measurements
	// named are the pods of a history by namespace/name, the latest of each name.
	named map[string]*pod
	// all are the pods that were without a node at some time.
	all         []*pod
	preemptions []preemption
	// notes counts the pods that are not scheduled as they say.
	notes     map[string]int
	extenders []*extender
	// These are the metrics of the scheduler's queues, which are expensive to look up.
	active, backoff, unschedulable queued
	drainNotes                     sync.Once
}

// New starts a scheduler on a cluster, in a bubble. Nothing is scheduled before Settle.
func New(ctx context.Context, options Options) (*Simulation, error) {
	s := &Simulation{
		options: options, context: ctx, start: time.Now(), pods: map[string]*pod{}, nodes: map[string]*node{},
		named: map[string]*pod{}, permits: make(chan struct{}), notes: map[string]int{},
	}
	var config *rest.Config
	s.api, config = newAPI(s)
	requests, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	client := client{requests, s.api}
	store, factory := newStore(client)
	s.store = store
	// Informers of other projects list their objects when their plugins are created.
	for _, object := range options.Cluster.Custom {
		store.put(object)
	}
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamicFactory := dynamicinformer.NewDynamicSharedInformerFactory(custom, 0)
	given := options.Config
	s.Scheduler, err = scheduler.New(client, factory, dynamicFactory, s.newRecorder, ctx.Done(), append([]scheduler.Option{
		scheduler.WithComponentConfigVersion(given.TypeMeta.APIVersion),
		scheduler.WithKubeConfig(config),
		scheduler.WithProfiles(given.Profiles...),
		scheduler.WithPercentageOfNodesToScore(given.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(options.Registry),
		scheduler.WithPodMaxBackoffSeconds(given.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(given.PodInitialBackoffSeconds),
		scheduler.WithParallelism(1),
		scheduler.WithExtenders(given.Extenders...),
	}, options.Scheduler...)...)
	if err != nil {
		return nil, err
	}
	s.active, s.backoff, s.unschedulable = metrics.ActivePods(), metrics.BackoffPods(), metrics.UnschedulablePods()
	if err := s.useExtenders(client); err != nil {
		return nil, err
	}
	dynamicFactory.Start(ctx.Done())
	factory.Start(ctx.Done()) // Informers of plugins; tables need no start.
	pop := s.NextPod
	s.NextPod = func() *framework.QueuedPodInfo {
		<-s.permits
		s.cycles++
		// The source takes a seed modulo 2³¹-1: with this stride, no two seeds share the numbers of their attempts.
		rand.Seed(s.options.Seed*10000019 + s.cycles)
		info := pop()
		s.taken(info)
		return info
	}
	s.measure = newMeasurements(s)
	synctest.Wait() // NodeLoad's collector looks once before the nodes are there.
	if err := s.load(options.Cluster); err != nil {
		return nil, err
	}
	go s.Scheduler.Run(ctx)
	synctest.Wait()
	return s, nil
}

// load adds the cluster's objects in an order in which each one finds those that it needs.
func (s *Simulation) load(cluster *input.Cluster) error {
	for _, object := range cluster.Objects {
		s.store.put(object)
	}
	if err := s.loadBudgets(); err != nil {
		return err
	}
	for _, node := range cluster.Nodes {
		s.AddNode(node)
	}
	s.store.synced = true
	for uid, found := range cluster.Later {
		laterfields.Pods.Set(uid, found)
	}
	for _, pod := range cluster.Pods {
		s.adopt(pod)
	}
	return nil
}

// spacing is the time between the creations of two pods, and between two attempts: the queue sorts by time.
const spacing = time.Microsecond

// pause sleeps for that time, and lets goroutines finish whose timers fire at the same time.
func (s *Simulation) pause() {
	s.api.publish()
	time.Sleep(spacing)
	synctest.Wait()
}

// Settle schedules all pods that the queue has ready, until everything waits for the clock, or until Interrupt.
func (s *Simulation) Settle() {
	for atomic.LoadInt32(&interrupted) == 0 {
		synctest.Wait()
		if s.api.apply() {
			continue
		}
		if gauge(s.active) == 0 {
			return
		}
		s.pause()
		s.permits <- struct{}{}
	}
}

// queued is the metric of a queue.
type queued interface{ Write(*dto.Metric) error }

// gauge returns the value of a metric.
func gauge(metric queued) float64 {
	var written dto.Metric
	if err := metric.Write(&written); err != nil {
		panic(err) // The metric of a queue can always be written.
	}
	return written.GetGauge().GetValue()
}

// pending returns the number of pods that wait in the queue.
func (s *Simulation) pending() float64 {
	return gauge(s.active) + gauge(s.backoff) + gauge(s.unschedulable)
}

// now returns the time since the start.
func (s *Simulation) now() time.Duration { return time.Since(s.start) }

// longestSleep is the longest time that a simulation skips at once.
const longestSleep = time.Hour

// maxBackoff is the longest time between two attempts.
func (s *Simulation) maxBackoff() time.Duration {
	return time.Duration(s.options.Config.PodMaxBackoffSeconds) * time.Second
}

// tick is the period in which the queue looks for pods whose backoff has ended.
const tick = time.Second

// Advance simulates until the given time since the start, or until Interrupt. With quiet, it
// ends early if nothing is left to do, or nothing but to retry pods for that long.
func (s *Simulation) Advance(until, quiet time.Duration, progress Progress) error {
	idle := s.now()
	for {
		if s.Settle(); atomic.LoadInt32(&interrupted) != 0 {
			return ErrInterrupted
		}
		now := s.now()
		s.measure.sample(now)
		progress(now, s.cycles)
		next, waiting := until, s.pending()
		if len(s.agenda) > 0 {
			idle = now
			if s.agenda[0].at < next {
				next = s.agenda[0].at
			}
		} else if quiet > 0 && len(s.measure.inFlight) == 0 && (waiting == 0 || now-idle >= quiet+s.maxBackoff()) {
			return nil
		}
		if waiting > 0 || len(s.measure.inFlight) > 0 {
			if after := now.Truncate(tick) + tick; after < next {
				next = after
			}
		}
		if s.measure.knowsUse && s.measure.nextUse < next {
			next = s.measure.nextUse
		}
		if now >= until {
			return nil
		}
		// Interrupt has its effect between two sleeps.
		if after := now + longestSleep; after < next {
			next = after
		}
		s.api.publish()
		timer := time.NewTimer(next - now)
		select {
		case <-timer.C:
		case <-s.api.wake:
			timer.Stop()
			continue
		}
		// Others whose timers fire at the same time, such as NodeLoad's, see the state before the events.
		synctest.Wait()
		for len(s.agenda) > 0 && s.agenda[0].at <= s.now() {
			heap.Pop(&s.agenda).(entry).do()
		}
	}
}

// after makes an event happen after a delay.
func (s *Simulation) after(delay time.Duration, do func()) { s.At(s.now()+delay, do) }

// At makes an event happen at a time since the start.
func (s *Simulation) At(at time.Duration, do func()) {
	s.entries++
	heap.Push(&s.agenda, entry{at, s.entries, do})
}

// entry is an event to come.
type entry struct {
	at time.Duration
	// number orders events of the same time.
	number int
	do     func()
}

// agenda is a heap of events by time.
type agenda []entry

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].number < a[j].number
}
func (a agenda) Swap(i, j int)           { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(added interface{}) { *a = append(*a, added.(entry)) }
func (a *agenda) Pop() interface{} {
	last := len(*a) - 1
	popped := (*a)[last]
	(*a)[last] = entry{}
	*a = (*a)[:last]
	return popped
}

// profile returns the name of the first profile.
func (s *Simulation) profile() string { return s.options.Config.Profiles[0].SchedulerName }
