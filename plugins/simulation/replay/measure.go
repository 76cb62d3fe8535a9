// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"sort"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

const (
	// mostSamples limits the points of a curve.
	mostSamples = 600
	// useInterval is the period in which use is measured.
	useInterval = 15 * time.Second
	// typical is the share of pods, by frequency of their shape, that fragmentation is measured for, and mostShapes the
	// limit of their shapes.
	typical    = 0.95
	mostShapes = 64
)

// totals are sums over a node's pods, or over a zone's nodes, by resource, in the order of measurements.resources, in thousandths of cores, bytes,
// or units: sums of whole numbers are exact.
type totals struct {
	allocated, used, capacity []float64
	// stranded is what no typical pod can use, weighted by the pods' frequency.
	stranded []float64
}

// sums are sums over all nodes for a resource.
type sums struct {
	capacity, allocated, stranded float64
	// nodes have some of the resource. share and square are the sums of their allocated shares and of the squares of these.
	nodes, share, square float64
	// These are the same for use, as of the last measurement.
	used, usedShare, usedSquare float64
}

// measurements are sums over time and over nodes.
type measurements struct {
	simulation *Simulation
	resources  []v1.ResourceName
	shapes     []shape
	knowsUse   bool

	sums  []sums // by resource
	zones map[string]*totals
	// zoned is whether there were several zones at the start: then their difference is a curve.
	zoned bool
	empty int
	spent float64 // price of the nodes with pods, for an hour
	hot   int

	// last is the time up to which values are integrated in integrals.
	last              time.Duration
	names             []string
	values, integrals []float64

	samples []result.Sample
	every   time.Duration
	nextUse time.Duration
	moment  *moment
	// mutex guards what goroutines of bindings change.
	mutex    sync.Mutex
	inFlight map[*pod]bool
	gangs    map[string]*gang
	// gangTimes is set with the figures of gangs.
	gangTimes []result.Gang
	// lost is the requests of evicted pods multiplied by the time that they ran, in resource-seconds.
	lost   map[v1.ResourceName]float64
	usable usable
}

// shape is a pod's requests with its share of all typical pods.
type shape struct {
	requests []float64
	share    float64
}

// gang is a group of pods that run together.
type gang struct {
	first    time.Duration
	size     int // 0: all pods
	created  int
	bound    []*pod
	complete time.Duration // -1: not yet
	held     int64         // thousandths of core-seconds: a sum of whole numbers has no order
}

// moment is when the nodes' state is reported.
type moment struct {
	at    time.Duration
	nodes []result.Node
}

// preemption is a pod that was evicted for another.
type preemption struct {
	at         time.Duration
	victim, by string
	node       string
}

func newMeasurements(s *Simulation) *measurements {
	m := &measurements{
		simulation: s, zones: map[string]*totals{}, inFlight: map[*pod]bool{}, gangs: map[string]*gang{},
		lost: map[v1.ResourceName]float64{}, every: tick,
	}
	known := map[v1.ResourceName]bool{v1.ResourceCPU: true} // It is the first.
	for _, n := range s.options.Cluster.Nodes {
		for name, quantity := range n.Status.Allocatable {
			if name == v1.ResourceCPU || name == v1.ResourceMemory || strings.Contains(string(name), "/") && !quantity.IsZero() {
				known[name] = true
			}
		}
	}
	for name := range known {
		m.resources = append(m.resources, name)
	}
	sort.Slice(m.resources, func(i, j int) bool {
		a, b := strings.Contains(string(m.resources[i]), "/"), strings.Contains(string(m.resources[j]), "/")
		return !a && b || a == b && m.resources[i] < m.resources[j]
	})
	m.sums = make([]sums, len(m.resources))
	return m
}

// vector returns the amounts of a list in the order of resources.
func (m *measurements) vector(list v1.ResourceList) []float64 {
	amounts := make([]float64, len(m.resources))
	for i, name := range m.resources {
		if quantity, ok := list[name]; ok {
			if name == v1.ResourceCPU {
				amounts[i] = float64(quantity.MilliValue())
			} else {
				amounts[i] = float64(quantity.Value())
			}
		}
	}
	return amounts
}

// Expect sets the pods for which fragmentation is measured, and the time at which the nodes are reported.
func (s *Simulation) Expect(workloads []*input.Workload, at time.Duration) {
	m := s.measure
	s.At(at, func() {}) // The clock stops at the moment.
	m.moment, m.names, m.integrals, m.values = &moment{at: at}, nil, nil, nil
	counts, requests, all := map[string]float64{}, map[string][]float64{}, 0.0
	count := func(w *input.Workload, n int) {
		amounts := m.vector(requestsOf(w.Pod))
		var key strings.Builder
		for _, amount := range amounts {
			key.WriteString(formatted(amount) + " ")
		}
		counts[key.String()] += float64(n)
		requests[key.String()] = amounts
		all += float64(n)
		m.knowsUse = m.knowsUse || len(w.Use) > 0
	}
	for _, w := range workloads {
		count(w, w.Count)
	}
	for _, key := range namesOf(s.pods) {
		count(s.pods[key].workload, 1)
	}
	m.knowsUse = m.knowsUse || len(s.options.Cluster.NodeUse) > 0
	m.zoned = len(m.zones) > 1
	m.measureBase()
	var keys []string
	for key := range counts {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool {
		return counts[keys[i]] > counts[keys[j]] || counts[keys[i]] == counts[keys[j]] && keys[i] < keys[j]
	})
	sum := 0.0
	for _, key := range keys {
		if len(m.shapes) > 0 && sum >= typical*all || len(m.shapes) == mostShapes {
			break
		}
		sum += counts[key]
		m.shapes = append(m.shapes, shape{requests[key], counts[key]})
	}
	for i := range m.shapes {
		m.shapes[i].share /= sum
	}
	for _, name := range namesOf(s.nodes) {
		m.change(s.nodes[name], func() {})
	}
}

// added counts a new node, and gone one that was removed.
func (m *measurements) added(n *node) {
	n.capacity, n.allocated = m.vector(n.allocatable), make([]float64, len(m.resources))
	n.base = make([]float64, len(m.resources))
	n.used, n.stranded = make([]float64, len(m.resources)), make([]float64, len(m.resources))
	m.change(n, nil)
}

// move gives a node the place and the resources of another one.
func (m *measurements) move(n, to *node) {
	m.change(n, func() {
		n.zone, n.price, n.allocatable, n.capacity = to.zone, to.price, to.allocatable, m.vector(to.allocatable)
	})
}

func (m *measurements) gone(n *node) {
	m.integrate()
	m.count(n, -1)
	m.values = m.values[:0]
}

// change counts a node again after a change; do is nil for a new node.
func (m *measurements) change(n *node, do func()) {
	m.integrate()
	if do != nil {
		m.count(n, -1)
		do()
	}
	for i := range n.stranded {
		n.stranded[i] = 0
	}
	for _, of := range m.shapes {
		fits := len(n.pods) < int(n.allocatable.Pods().Value())
		for i, amount := range of.requests {
			fits = fits && (amount == 0 || n.allocated[i]+amount <= n.capacity[i])
		}
		for i, amount := range of.requests {
			if free := n.capacity[i] - n.allocated[i]; free > 0 && (!fits || amount == 0) {
				n.stranded[i] += of.share * free
			}
		}
	}
	m.count(n, 1)
	m.values = m.values[:0]
}

// count adds a node to the sums, or takes it away.
func (m *measurements) count(n *node, sign float64) {
	zone := m.zones[n.zone]
	if zone == nil {
		zone = &totals{allocated: make([]float64, len(m.resources)), capacity: make([]float64, len(m.resources))}
		m.zones[n.zone] = zone
	}
	for i := range m.sums {
		of := &m.sums[i]
		of.capacity += sign * n.capacity[i]
		of.allocated += sign * n.allocated[i]
		of.stranded += sign * n.stranded[i]
		zone.allocated[i] += sign * n.allocated[i]
		zone.capacity[i] += sign * n.capacity[i]
		if n.capacity[i] > 0 {
			share := n.allocated[i] / n.capacity[i]
			of.share += sign * share
			of.square += sign * share * share
			of.nodes += sign
		}
	}
	if len(n.pods) == 0 {
		m.empty += int(sign)
	} else {
		m.spent += sign * n.price
	}
}

// created counts a pod without a node.
func (m *measurements) created(p *pod) {
	if p.gang != "" {
		g := m.gangs[p.gang]
		if g == nil {
			g = &gang{first: m.simulation.now(), size: p.workload.GangSize, complete: -1}
			m.gangs[p.gang] = g
		}
		g.created++
	}
}

// placed counts a pod on its node.
func (m *measurements) placed(p *pod) {
	if p.node == nil {
		return
	}
	m.change(p.node, func() {
		p.node.pods[p.key] = p
		for i, amount := range p.requests {
			p.node.allocated[i] += amount
		}
	})
	if g := m.gangs[p.gang]; p.gang != "" && g != nil && g.complete < 0 {
		g.bound = append(g.bound, p)
		if size := g.size; len(g.bound) >= size && (size > 0 || len(g.bound) >= g.created) {
			g.complete = m.simulation.now()
			for _, member := range g.bound {
				g.held += held(member, g.complete-member.bound)
			}
		}
	}
}

// held returns the CPU of a pod for a time, in thousandths of core-seconds.
func held(p *pod, during time.Duration) int64 {
	return int64(p.requests[0]) * during.Milliseconds() / 1000
}

// removed counts a pod that left its node.
func (m *measurements) removed(p *pod) {
	m.mutex.Lock()
	delete(m.inFlight, p)
	m.mutex.Unlock()
	m.leaveGang(p)
	if p.node == nil || p.node.pods[p.key] != p {
		return
	}
	m.change(p.node, func() {
		delete(p.node.pods, p.key)
		for i, amount := range p.requests {
			p.node.allocated[i] -= amount
		}
	})
}

// leaveGang counts a pod no longer as a member of a gang that is incomplete.
func (m *measurements) leaveGang(p *pod) {
	g := m.gangs[p.gang]
	if g == nil || g.complete >= 0 {
		return
	}
	for i, member := range g.bound {
		if member == p {
			g.held += held(p, m.simulation.now()-p.bound)
			g.bound = append(g.bound[:i:i], g.bound[i+1:]...)
			return
		}
	}
}

// evicted counts the work of a pod that is lost.
func (m *measurements) evicted(p *pod) {
	if !p.running {
		return
	}
	for i, amount := range p.requests {
		m.lost[m.resources[i]] += amount * (m.simulation.now() - p.started).Seconds()
	}
}

// began notes that an attempt has begun. The caller holds the pod's lock, as for decided and preempted.
func (m *measurements) began(p *pod) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.inFlight[p] = true
}

// decided notes that an attempt has ended.
func (m *measurements) decided(p *pod) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if p.takenAt >= 0 && p.gang != "" {
		if g := m.gangs[p.gang]; g != nil && g.complete < 0 {
			g.held += held(p, m.simulation.now()-p.takenAt)
		}
	}
	p.takenAt = -1
	delete(m.inFlight, p)
}

func (m *measurements) preempted(p *pod, by string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if p.node != nil {
		m.simulation.preemptions = append(m.simulation.preemptions, preemption{m.simulation.now(), p.key, by, p.node.name})
	}
}

// deviation returns the standard deviation of n shares, given their sum and the sum of their squares.
func deviation(n, sum, square float64) float64 {
	if n == 0 {
		return 0
	}
	return math.Sqrt(math.Max(0, square/n-(sum/n)*(sum/n)))
}

func percent(part, of float64) float64 {
	if of == 0 {
		return 0
	}
	return 100 * part / of
}

// The curves. Each name is also that of a figure, the mean over time.
const (
	allocation    = "allocation_percent"
	utilization   = "utilization_percent"
	fragmentation = "fragmentation_percent"
	spread        = "node_deviation_percent"
	usedSpread    = "node_use_deviation_percent"
	skew          = "zone_skew_percent"
	emptyNodes    = "empty_nodes"
	hotNodes      = "hot_nodes"
	cost          = "cost_per_hour"
)

func labelled(name string, resource v1.ResourceName) string {
	return name + `{resource="` + string(resource) + `"}`
}

// current returns the values of all curves.
func (m *measurements) current() []float64 {
	if len(m.values) > 0 {
		return m.values
	}
	first := m.names == nil
	add := func(name string, of v1.ResourceName, value float64) {
		if first && of != "" {
			name = labelled(name, of)
		}
		if first {
			m.names = append(m.names, name)
		}
		m.values = append(m.values, value)
	}
	for i, name := range m.resources {
		of := &m.sums[i]
		add(allocation, name, percent(of.allocated, of.capacity))
		add(fragmentation, name, percent(of.stranded, of.capacity))
		add(spread, name, 100*deviation(of.nodes, of.share, of.square))
		if m.zoned {
			least, most := math.Inf(1), math.Inf(-1)
			for _, zone := range m.zones {
				if zone.capacity[i] > 0 {
					share := percent(zone.allocated[i], zone.capacity[i])
					least, most = math.Min(least, share), math.Max(most, share)
				}
			}
			add(skew, name, math.Max(0, most-least))
		}
		if m.knowsUse && i < 2 {
			add(utilization, name, percent(of.used, of.capacity))
			add(usedSpread, name, 100*deviation(of.nodes, of.usedShare, of.usedSquare))
		}
	}
	add(emptyNodes, "", float64(m.empty))
	if m.knowsUse {
		add(hotNodes, "", float64(m.hot))
	}
	if m.simulation.options.PriceLabel != "" {
		add(cost, "", m.spent)
	}
	if m.integrals == nil {
		m.integrals = make([]float64, len(m.values))
	}
	return m.values
}

// integrate adds the values up to now.
func (m *measurements) integrate() {
	now := m.simulation.now()
	if m.shapes == nil && m.moment == nil {
		m.last = now
		return // not yet begun
	}
	if now == m.last {
		return
	}
	for i, value := range m.current() {
		m.integrals[i] += value * (now - m.last).Seconds()
	}
	m.last = now
}

// sample adds points to the curves, and measures use.
func (m *measurements) sample(now time.Duration) {
	if m.moment != nil && m.moment.nodes == nil && now >= m.moment.at {
		m.moment.nodes = m.simulation.nodeStates()
	}
	if m.knowsUse && now >= m.nextUse {
		m.measureUse(now)
		m.nextUse = now + useInterval
	}
	if n := len(m.samples); n > 0 && now < time.Duration(m.samples[n-1].Seconds*float64(time.Second))+m.every {
		return
	}
	point := result.Sample{Seconds: round(now.Seconds()), Values: map[string]float64{"pods pending": m.simulation.pending()}}
	for i, value := range m.current() {
		figure := figureOf(m.names[i])
		point.Values[figure.Title+", "+figure.Unit] = round(value)
	}
	m.samples = append(m.samples, point)
	if len(m.samples) > mostSamples {
		var half []result.Sample
		for i := 0; i < len(m.samples); i += 2 {
			half = append(half, m.samples[i])
		}
		m.samples = half
		m.every *= 2
	}
}

// Current returns the current values of all curves, by name.
func (s *Simulation) Current() map[string]float64 {
	current := map[string]float64{"pods_pending": s.pending()}
	for i, value := range s.measure.current() {
		current[s.measure.names[i]] = round(value)
	}
	return current
}

// round drops digits that differ between processors.
func round(value float64) float64 { return math.Round(value*1e6)/1e6 + 0 }
