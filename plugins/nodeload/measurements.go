// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
)

// measurements are a snapshot converted for a profile: with the profile's resources, as shares of the nodes'
// capacities. They never change.
type measurements struct {
	snapshot *collector.Snapshot // nil before the first
	// made is their time, in nanoseconds since 1970. Measurements from before oldest were too old then.
	made, oldest int64
	resources    []resource
	// columns has the resources' columns in the snapshot; -1 if it has none.
	columns []int
	nodes   []*v1.Node
	index   map[string]int32 // of nodes, by name
	// measured has the loads of each node without pods in flight.
	measured [][]load
	// usedByPods has the measured use of each resource by pods, by NAMESPACE/NAME.
	usedByPods []map[string]collector.Sample

	// By resource: the sorted times of the measurements, the number of nodes that have it, and the average measurement.
	times   [][]int64
	having  []int
	typical []average
	window  int64 // the shortest
}

// average replaces a node's missing measurements: it has means over the nodes whose measurements were fresh when the
// measurements were converted.
type average struct {
	// at is the time of the newest measurement; notMeasured if there is none, and then load and points are 0.
	at           int64
	load, points float64
	variation    float64 // the mean; NaN if there is none
	perUnit      float64 // the mean of the known values; 0 if none is known
}

// load is the load of a node for a resource, without the pod that is being scheduled.
type load struct {
	// at is the time of the measurement, in nanoseconds since 1970; notMeasured if there is none.
	at int64
	// measured and inFlight are shares of the capacity. inFlight is negative if more pods have ended than started.
	measured, inFlight float64
	// since is the time of the measurement to which pods in flight are added: that of the other nodes if the node's is
	// missing or was too old when the view was made; notMeasured if pods in flight cannot be added.
	since int64
	// perUnit is 1 / capacity; 0 if the capacity is unknown. For a node that is not measured either, it is the others'
	// average.
	perUnit float64
	// variation is the variation for the strategy Risk; NaN if the deviation was not measured.
	variation float64
}

// notMeasured is before every time.
const notMeasured int64 = math.MinInt64

// newMeasurements converts a snapshot, which may be nil, for the current nodes. Measurements that are older than maxAge
// are not fresh.
func newMeasurements(
	snapshot *collector.Snapshot, resources []resource, nodes []*v1.Node, now time.Time, maxAge time.Duration,
) *measurements {
	m := &measurements{
		snapshot: snapshot, made: now.UnixNano(), oldest: now.Add(-maxAge).UnixNano(), resources: resources, nodes: nodes,
		columns: make([]int, len(resources)), index: make(map[string]int32, len(nodes)), measured: make([][]load, len(nodes)),
		usedByPods: make([]map[string]collector.Sample, len(resources)), times: make([][]int64, len(resources)),
		having: make([]int, len(resources)), typical: make([]average, len(resources)), window: math.MaxInt64,
	}
	for r := range resources {
		resource := &resources[r]
		m.columns[r] = -1
		if snapshot == nil {
			continue
		}
		if column, known := snapshot.Column(resource.asked); known {
			m.columns[r] = column
		}
		if resource.askedOfPods.Pods {
			m.usedByPods[r] = snapshot.Pods(resource.askedOfPods)
		}
	}
	for i, node := range nodes {
		m.index[node.Name] = int32(i)
		m.measured[i] = m.measure(node)
	}
	for r := range resources {
		resource := &resources[r]
		m.typical[r] = m.average(r)
		for _, node := range nodes {
			if _, has := resource.capacity.Of(node); !has && resource.estimator.extended {
				continue
			}
			m.having[r]++
			if sample, missing := m.sample(node.Name, r); missing == collector.Present {
				m.times[r] = append(m.times[r], sample.At)
			}
		}
		sort.Slice(m.times[r], func(i, j int) bool { return m.times[r][i] < m.times[r][j] })
		if resource.window < m.window {
			m.window = resource.window
		}
		for _, loads := range m.measured {
			m.account(r, &loads[r])
		}
	}
	return m
}

// sample returns the sample of a node for a resource, or the reason why it is missing.
func (m *measurements) sample(node string, r int) (*collector.Sample, collector.Missing) {
	if m.columns[r] < 0 || m.snapshot.Nodes[node] == nil {
		return nil, collector.NoSeries
	}
	sample := &m.snapshot.Nodes[node][m.columns[r]]
	return sample, sample.Missing
}

// measure returns the measured loads of a node.
func (m *measurements) measure(node *v1.Node) []load {
	loads := make([]load, len(m.resources))
	for r := range loads {
		resource, l := &m.resources[r], &loads[r]
		*l = load{at: notMeasured, since: notMeasured, variation: math.NaN()}
		capacity, known := resource.capacity.Of(node)
		if known {
			l.perUnit = 1 / capacity
		}
		sample, missing := m.sample(node.Name, r)
		if missing != collector.Present {
			continue
		}
		if share, ok := resource.share(sample.Value, capacity); ok {
			l.at, l.measured = sample.At, share
		}
		if share, ok := resource.share(sample.Deviation, capacity); ok && sample.HasDeviation {
			l.variation = variation(share, resource.sensitivity, resource.margin)
		}
	}
	return loads
}

// average returns the average of a resource. Each load counts for at most the capacity, so that a single error of an
// exporter does not make all other nodes look idle.
func (m *measurements) average(r int) average {
	of := average{at: notMeasured}
	var loads, variations, variation, capacities float64
	for _, node := range m.measured {
		l := &node[r]
		if l.perUnit > 0 {
			capacities++
			of.perUnit += l.perUnit
		}
		if l.at < m.oldest || l.at == notMeasured {
			continue
		}
		if l.at > of.at {
			of.at = l.at
		}
		loads++
		of.load += math.Min(1, l.measured)
		of.points += m.resources[r].points(math.Min(1, l.measured), l.variation)
		if !math.IsNaN(l.variation) {
			variations++
			variation += l.variation
		}
	}
	if capacities > 0 {
		of.perUnit /= capacities
	}
	if loads > 0 {
		of.load /= loads
		of.points /= loads
	}
	of.variation = variation / variations // NaN if there is none
	return of
}

// account sets the time after which pods are in flight, for a measured or unmeasured load.
func (m *measurements) account(r int, l *load) {
	l.since = l.at
	if l.at < m.oldest {
		l.since = m.typical[r].at
		if l.perUnit == 0 {
			l.perUnit = m.typical[r].perUnit
		}
	}
	if l.perUnit == 0 {
		l.since = notMeasured
	}
}

// find returns the node's index; -1 for a node that is not among them.
func (m *measurements) find(name string) int {
	if i, found := m.index[name]; found {
		return int(i)
	}
	return -1
}

// findAt returns the index of the node on which a pod began at a time; -1 if there is none, or if the node was created
// later: then the pod ran on an earlier node with this name.
func (m *measurements) findAt(name string, start int64) int {
	node := m.find(name)
	if node >= 0 && start < m.nodes[node].CreationTimestamp.UnixNano() {
		return -1
	}
	return node
}

// fresh returns the number of measurements of a resource that are not older than a time.
func (m *measurements) fresh(r int, oldest int64) int {
	times := m.times[r]
	return len(times) - sort.Search(len(times), func(i int) bool { return times[i] >= oldest })
}

// blind reports whether too few of the nodes that have the resource have a measurement of it that is not older than a
// time. If no node has the resource, they are too few unless none are required.
func (m *measurements) blind(r int, oldest int64, percent int) bool {
	if m.having[r] == 0 {
		return percent > 0
	}
	return m.fresh(r, oldest)*100 < m.having[r]*percent
}

// lacks reports whether the measurements of a node lack a part of a pod that runs since a time.
func (m *measurements) lacks(node int, start int64) bool {
	for r, l := range m.measured[node] {
		if l.since != notMeasured && Lacking(start, Running, l.since, m.resources[r].window) > 0 {
			return true
		}
	}
	return false
}

// share returns an estimate as a share of the capacity, at most 1.
func (l *load) share(estimate float64) float64 { return math.Min(1, estimate*l.perUnit) }

// now returns the load without the pod that is being scheduled.
func (l *load) now() float64 {
	if load := l.measured + l.inFlight; load > 0 { // faster than math.Max
		return load
	}
	return 0
}

// with returns the load with a pod of the given estimate.
func (l *load) with(estimate float64) float64 { return l.now() + l.share(estimate) }
