// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"sort"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
)

// A view is a snapshot converted for a profile: with the profile's resources, as shares of the nodes' capacities. It is
// made when the snapshot arrives, and all cycles read it until the next one arrives.
//
// Three parts change, atomically, because several workers filter and score in parallel: kept, the ended pods (see
// ended.go), and the notes of rejections (see waking.go).
type view struct {
	snapshot *collector.Snapshot // nil before the first
	// made is its time, in nanoseconds since 1970. Measurements from before oldest were too old then.
	made, oldest int64
	resources    []resource
	nodes        []*v1.Node
	// index maps node names to indices.
	index map[string]int32
	// measured has the loads of each node without pods in flight.
	measured [][]load
	// kept has the last computed *kept of each node, and gone its []run of ended pods, after goings changes.
	kept, gone []atomic.Value
	goings     []uint32
	// scales are those of the estimates of owners' pods.
	scales map[scaleKey]*scale

	// rejected is 1 for each node and resource for which a pod was rejected.
	rejected []uint32
	// rejectedUnknown is 1 if a pod was rejected on a node that is not in the view.
	rejectedUnknown uint32

	// times has the sorted times of the measurements of each resource.
	times [][]int64
	// having has the number of nodes that have each resource.
	having []int
	// window is the shortest window. A pod that started before settledAt is in all measurements.
	window, settledAt int64
	// typical has the average of the measurements of each resource.
	typical []average
}

// kept has the loads of a node with pods in flight. They are valid until the node's pods change: each change gives a
// NodeInfo a new, unique generation, also in the copies that preemption makes, and each end of a pod another number of goings.
type kept struct {
	generation int64
	goings     uint32
	loads      []load
}

// average replaces a node's missing measurements: it has means over the nodes whose measurements were fresh when the
// view was made.
type average struct {
	// at is the time of the newest measurement; notMeasured if there is none, and then load and points are 0.
	at           int64
	load, points float64
	// variation is the mean of the variations; NaN if there is none.
	variation float64
	// perUnit is the mean of the known values; 0 if none is known.
	perUnit float64
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

// newView returns a view of a snapshot, which may be nil, and of the current nodes. Measurements that are older than
// maxAge are not fresh.
func newView(snapshot *collector.Snapshot, resources []resource, nodes []*v1.Node, now time.Time, maxAge time.Duration) *view {
	oldest := now.Add(-maxAge).UnixNano()
	v := &view{
		snapshot:  snapshot,
		made:      now.UnixNano(),
		oldest:    oldest,
		resources: resources,
		nodes:     nodes,
		index:     make(map[string]int32, len(nodes)),
		measured:  make([][]load, len(nodes)),
		kept:      make([]atomic.Value, len(nodes)),
		gone:      make([]atomic.Value, len(nodes)),
		goings:    make([]uint32, len(nodes)),
		rejected:  make([]uint32, len(nodes)*len(resources)),
		times:     make([][]int64, len(resources)),
		having:    make([]int, len(resources)),
		typical:   make([]average, len(resources)),
		window:    math.MaxInt64,
		settledAt: math.MaxInt64,
	}
	for i, node := range nodes {
		v.index[node.Name] = int32(i)
		v.measured[i] = v.measurements(node)
		v.gone[i].Store([]run(nil))
	}
	for r := range resources {
		resource := &resources[r]
		v.typical[r] = v.average(r, oldest)
		for _, node := range nodes {
			if _, has := resource.capacity.Of(node); !has && resource.estimator.extended {
				continue
			}
			v.having[r]++
			if sample, missing := v.sample(node.Name, r); missing == collector.Present {
				v.times[r] = append(v.times[r], sample.At)
			}
		}
		sort.Slice(v.times[r], func(i, j int) bool { return v.times[r][i] < v.times[r][j] })
		if resource.window < v.window {
			v.window = resource.window
		}
	}
	for _, loads := range v.measured {
		for r := range loads {
			v.account(r, &loads[r], oldest)
		}
	}
	return v
}

// sample returns the sample of a node for a resource, or the reason why it is missing.
func (v *view) sample(node string, r int) (*collector.Sample, collector.Missing) {
	if v.snapshot == nil {
		return nil, collector.NoSeries
	}
	column, known := v.snapshot.Column(v.resources[r].asked)
	samples := v.snapshot.Nodes[node]
	if !known || samples == nil {
		return nil, collector.NoSeries
	}
	return &samples[column], samples[column].Missing
}

// measurements returns the measured loads of a node.
func (v *view) measurements(node *v1.Node) []load {
	loads := make([]load, len(v.resources))
	for r := range loads {
		resource, l := &v.resources[r], &loads[r]
		*l = load{at: notMeasured, since: notMeasured, variation: math.NaN()}
		capacity, known := resource.capacity.Of(node)
		if known {
			l.perUnit = 1 / capacity
		}
		sample, missing := v.sample(node.Name, r)
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
func (v *view) average(r int, oldest int64) average {
	of := average{at: notMeasured}
	var loads, variations, variation, capacities float64
	for _, node := range v.measured {
		known := &node[r]
		if known.perUnit > 0 {
			capacities++
			of.perUnit += known.perUnit
		}
		if known.at < oldest || known.at == notMeasured {
			continue
		}
		if known.at > of.at {
			of.at = known.at
		}
		loads++
		of.load += math.Min(1, known.measured)
		of.points += v.resources[r].points(math.Min(1, known.measured), known.variation)
		if !math.IsNaN(known.variation) {
			variations++
			variation += known.variation
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
func (v *view) account(r int, l *load, oldest int64) {
	l.since = l.at
	if l.at < oldest {
		l.since = v.typical[r].at
		if l.perUnit == 0 {
			l.perUnit = v.typical[r].perUnit
		}
	}
	if l.perUnit == 0 {
		l.since = notMeasured
	}
	if l.since != notMeasured && l.since-v.resources[r].window < v.settledAt {
		v.settledAt = l.since - v.resources[r].window
	}
}

// find returns the node's index; -1 for a node that is not in the view.
func (v *view) find(name string) int {
	if i, found := v.index[name]; found {
		return int(i)
	}
	return -1
}

// oldestAt returns the time, in nanoseconds since 1970, before which a measurement is too old now. All are too old if
// the clock was set back since the snapshot arrived.
func (v *view) oldestAt(now time.Time, maxAge time.Duration) int64 {
	// Measurements have wall-clock times; Sub would use the monotonic clock.
	if v.snapshot != nil && v.snapshot.Taken.UnixNano()-now.UnixNano() > int64(collector.Ahead) {
		return math.MaxInt64
	}
	return now.Add(-maxAge).UnixNano()
}

// fresh returns the number of measurements of a resource that are not older than a time.
func (v *view) fresh(r int, oldest int64) int {
	times := v.times[r]
	return len(times) - sort.Search(len(times), func(i int) bool { return times[i] >= oldest })
}

// blind reports whether too few of the nodes that have the resource have a measurement of it that is not older than a
// time. If no node has the resource, they are too few unless none are required.
func (v *view) blind(r int, oldest int64, percent int) bool {
	if v.having[r] == 0 {
		return percent > 0
	}
	return v.fresh(r, oldest)*100 < v.having[r]*percent
}

// loads returns the loads of a node with pods in flight. They must not be changed.
func (v *view) loads(nodeInfo *framework.NodeInfo) []load {
	node := nodeInfo.Node()
	number, goings := v.find(node.Name), uint32(0)
	if number >= 0 {
		goings = atomic.LoadUint32(&v.goings[number])
		if k, ok := v.kept[number].Load().(*kept); ok && k.generation == nodeInfo.Generation && k.goings == goings {
			return k.loads
		}
	}
	loads := v.loadsWithout(number, node)
	for _, podInfo := range nodeInfo.Pods {
		v.add(loads, v.runOf(podInfo.Pod), 1)
	}
	if number >= 0 {
		v.kept[number].Store(&kept{nodeInfo.Generation, goings, loads})
	}
	return loads
}

// loadsWithout returns the loads of a node without pods in flight, and without what is left of ended pods. A node with
// the index -1 is not measured.
func (v *view) loadsWithout(number int, node *v1.Node) []load {
	if number >= 0 {
		loads := append([]load(nil), v.measured[number]...)
		for _, of := range v.gone[number].Load().([]run) {
			v.add(loads, of, 1)
		}
		return loads
	}
	loads := make([]load, len(v.resources))
	for r := range loads {
		loads[r] = load{at: notMeasured, variation: math.NaN(), since: v.typical[r].at, perUnit: v.typical[r].perUnit}
		if capacity, known := v.resources[r].capacity.Of(node); known {
			loads[r].perUnit = 1 / capacity
		}
		if loads[r].perUnit == 0 {
			loads[r].since = notMeasured
		}
	}
	return loads
}

// add reports whether a pod is in flight on its node. It adds the pod times a factor to the node's loads; if it has
// ended, it takes it off. Each pod counts for at most the node's capacity. A pod that leaves, and whose use of a resource
// was not measured, counts as one that stays.
func (v *view) add(loads []load, of run, times float64) bool {
	// Most pods are in all measurements.
	first := startOf(of.pod, v.window, v.made)
	if of.end == running && first <= v.settledAt {
		return false
	}
	inFlight, owner := false, ownerOf(of.pod)
	for r := range loads {
		resource, l, start, end := &v.resources[r], &loads[r], first, of.end
		if end == leaving && of.used[r] < 0 {
			end = running
		}
		if l.since == notMeasured || end != running && l.since != l.at {
			continue
		}
		if resource.window != v.window {
			start = startOf(of.pod, resource.window, v.made)
		}
		lack := lacking(start, end, l.since, resource.window)
		inFlight = inFlight || lack > 0
		if lack == 0 || times == 0 {
			continue
		}
		use := resource.estimator.estimate(of.pod, v.scale(owner, r))
		if end != running && of.used[r] >= 0 {
			use = of.used[r]
		}
		l.inFlight += times * lack * l.share(use)
	}
	return inFlight
}

// addAll adds the pods in flight to the loads of some nodes, by their indices. It returns the number of pods in flight
// on all nodes of the view.
func (v *view) addAll(pods []*v1.Pod, to map[int][]load) int {
	count := 0
	for _, pod := range pods {
		node := v.find(pod.Spec.NodeName)
		if node < 0 {
			continue
		}
		loads, times := to[node], 1.0
		if loads == nil {
			loads, times = v.measured[node], 0
		}
		if v.add(loads, v.runOf(pod), times) {
			count++
		}
	}
	return count
}

// share returns an estimate as a share of the capacity, at most 1.
func (l *load) share(estimate float64) float64 {
	return math.Min(1, estimate*l.perUnit)
}

// now returns the load without the pod that is being scheduled.
func (l *load) now() float64 {
	if load := l.measured + l.inFlight; load > 0 {
		return load
	}
	return 0
}

// with returns the load with a pod of the given estimate.
func (l *load) with(estimate float64) float64 {
	return l.now() + l.share(estimate)
}
