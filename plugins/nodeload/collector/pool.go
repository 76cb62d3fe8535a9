// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/utils/clock"
)

// Resource is what is asked about a resource, and the unit of the answer.
type Resource struct {
	source.Query
	Unit config.NodeLoadUnit
}

// Spec is what a profile wants to know, and from where.
type Spec struct {
	Prometheus config.NodeLoadPrometheus
	// RefreshInterval is the time between two refreshes; of several profiles the shortest counts.
	RefreshInterval time.Duration
	// MaxSampleAge is how old a sample may be to count. The snapshots have older ones too.
	MaxSampleAge time.Duration
	NodeMatch    config.NodeLoadNodeMatch
	Resources    []Resource
	// Capacity returns what a node has of Resources[resource], in the unit of its values, and whether that is known. It
	// is called for resources with absolute values only, by the collector's goroutine.
	Capacity func(node *v1.Node, resource int) (float64, bool)
}

// Pool has the collectors of a scheduler, one for each source.
type Pool struct {
	clock   clock.Clock
	random  func() float64
	connect func(prometheus config.NodeLoadPrometheus) (asker, error)

	mu     sync.Mutex
	shared []*share // by number; nil where one has ended
}

// share is a collector with what tells whether it is the one for a Spec.
type share struct {
	*collector
	prometheus config.NodeLoadPrometheus
	begin      func() // starts the goroutine, once
	ending     bool
}

// NewPool returns a pool without collectors. A process has one: the numbers in its metrics begin at 0. A collector's
// goroutine ends with its last subscription. The framework never tells a plugin that it is not needed any more, so in a
// scheduler it runs, and asks, until the process ends; nothing of it has to be kept. Who makes plugins for less than
// that, such as a test, has to close their subscriptions.
func NewPool() *Pool {
	return newPool(clock.RealClock{}, nil, func(prometheus config.NodeLoadPrometheus) (asker, error) {
		return source.New(prometheus)
	})
}

// newPool returns a pool with a clock and a source of its own. Without random each collector has its own.
func newPool(clock clock.Clock, random func() float64, connect func(config.NodeLoadPrometheus) (asker, error)) *Pool {
	return &Pool{clock: clock, random: random, connect: connect}
}

// Subscribe lets a profile take part in the refreshes. swapped, which may be nil, is called with each snapshot after
// Snapshot returns it, one call at a time, by the goroutine that refreshes: it must neither wait nor close a
// subscription. It is not called for refreshes that failed, nor after Close. The recorder, which may be nil, gets the
// events.
func (p *Pool) Subscribe(spec Spec, nodes coreinformers.NodeInformer, recorder events.EventRecorder, profile string,
	swapped func(*measured.Snapshot)) (*Subscription, error) {
	if len(spec.Resources) == 0 || spec.RefreshInterval <= 0 || spec.MaxSampleAge <= 0 {
		return nil, errors.New("collector: nothing to refresh, because there are no resources, or no times; " +
			"next: give resources, refreshInterval and maxSampleAge, each more than 0")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	shared, err := p.find(&spec, nodes)
	if err != nil {
		return nil, fmt.Errorf("collector: source of measurements cannot be made: %w", err)
	}
	s := &Subscription{pool: p, share: shared, spec: spec, recorder: recorder, profile: profile, swapped: swapped}
	shared.add(s)
	shared.begin() // with something to ask for
	return s, nil
}

// find returns the collector for a Spec, and makes one if there is none. p.mu is held.
func (p *Pool) find(spec *Spec, nodes coreinformers.NodeInformer) (*share, error) {
	number := len(p.shared)
	for i, shared := range p.shared {
		switch {
		case shared == nil:
			if i < number {
				number = i
			}
		case !shared.ending && shared.match.NodeLoadNodeMatch == spec.NodeMatch &&
			apiequality.Semantic.DeepEqual(shared.prometheus, spec.Prometheus):
			return shared, nil
		}
	}
	client, err := p.connect(spec.Prometheus)
	if err != nil {
		return nil, err
	}
	random := p.random
	if random == nil {
		random = rand.New(rand.NewSource(p.clock.Now().UnixNano() + int64(number))).Float64
	}
	label := strconv.Itoa(number)
	ctx, cancel := context.WithCancel(context.Background())
	shared := &share{
		prometheus: *spec.Prometheus.DeepCopy(),
		collector: &collector{
			label:   label,
			match:   match{NodeLoadNodeMatch: spec.NodeMatch},
			lister:  nodes.Lister(),
			synced:  nodes.Informer().HasSynced,
			source:  client,
			clock:   p.clock,
			random:  random,
			metrics: newGauges(label),
			cancel:  cancel,
			done:    make(chan struct{}),
			wake:    make(chan struct{}, 1),
			status:  Status{Source: label},
		},
	}
	if number == len(p.shared) {
		p.shared = append(p.shared, nil)
	}
	p.shared[number] = shared
	var once sync.Once
	shared.begin = func() { once.Do(func() { go shared.run(ctx) }) }
	return shared, nil
}

// leave ends a subscription, and its collector if it was the last.
func (p *Pool) leave(s *Subscription) {
	p.mu.Lock()
	last := s.share.remove(s)
	s.share.ending = last
	p.mu.Unlock()
	s.silence()
	if !last {
		return
	}
	s.share.cancel()
	<-s.share.done
	s.share.source.Close()
	s.share.metrics.remove()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, shared := range p.shared {
		if shared == s.share {
			p.shared[i] = nil // only now may another have its number, and so its metrics
		}
	}
}
