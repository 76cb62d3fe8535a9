// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"sort"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

// A view is a snapshot as a profile sees it: by the profile's resources, in shares of the nodes' capacities, and with
// what is in flight. It is made when the snapshot comes and then read by all cycles until the next one comes.
//
// Two parts of a view change, word by word and atomically, because 16 workers filter and score at once:
//  1. loads: what was computed of a node, so that it is computed once for as long as the node's pods stay the same.
//     Every change to them gives a NodeInfo a new generation, which no other ever has, and measurements do not change
//     within a view; so a generation says all. Only what the scheduler's snapshot holds is kept: preemption and
//     nominated pods make copies of a NodeInfo and change them, and such a copy is computed each time. A writer takes
//     the node by writing busy for the generation, then writes the words, then the generation; who finds it taken goes
//     without. A reader that finds the same generation before and after has read the words that belong to it: if they
//     were written in between, it was with the same values.
//  2. rejected: what was rejected on a node, which only becomes less until it is taken away.
//
// Beside these, results has what came of a node for a kind of pods.
type view struct {
	snapshot  *measured.Snapshot // nil before the first
	resources []resource
	// index has the nodes' numbers by their names.
	index map[string]int32
	nodes []*v1.Node
	// samples of a node are those of all slots; nil if the snapshot does not know the node.
	samples [][]measured.Sample

	// loads holds for each node a generation and, for each resource, loadWords words.
	loads []uint64
	// rejected holds for each node and resource the smallest estimate of a pod that was rejected, as bits of a float64.
	rejected []uint64
	results  *results
	// strangers says that pods were rejected on nodes that are not in the view.
	strangers uint32

	// times are, for each resource, those of the measurements that there are, in order.
	times [][]int64
	// having is how many nodes have the resource.
	having []int
	// window is the shortest window, and settledAt the time such that a pod which began before it is in all
	// measurements.
	window, settledAt int64
	// oldest is the time before which a measurement was not fresh when the view was made.
	oldest int64
	// typical is, for each resource, what is measured of the nodes on the average.
	typical []average
}

// average is what is taken of a node for what is not measured of it: means over the nodes whose measurements were fresh
// when the view was made.
type average struct {
	// at is when the newest of them was made; notMeasured if there was none, and then load and points are 0.
	at           int64
	load, points float64
	// variation is the mean of the variations that were; not a number if none was.
	variation float64
	// perUnit is the mean of all that are known; 0 if none is.
	perUnit float64
}

const (
	loadWords        = 5
	unknown   uint64 = 0
	busy      uint64 = math.MaxUint64
)

// nothingRejected is more than any estimate.
var nothingRejected = math.Float64bits(math.Inf(1))

// load is what is known of a resource of a node, before the pod comes.
type load struct {
	// at is when it was measured, in nanoseconds since 1970; notMeasured if it was not.
	at int64
	// measured is as a share of the capacity, and so is what is in flight. Of a node that is not measured, what is in
	// flight is what came since the others were.
	measured, inFlight float64
	// perUnit is the share of the capacity that a unit is; 0 if the capacity is not known. Of a node that is not
	// measured either, it is what it is of the others.
	perUnit float64
	// variation is what the strategy Risk takes for the deviation; not a number if that was not measured.
	variation float64
}

// notMeasured is before every time.
const notMeasured int64 = math.MinInt64

// newView makes a view of a snapshot, which may be nil, and of the nodes that there are. Measurements before the time
// oldest are not fresh.
func newView(snapshot *measured.Snapshot, resources []resource, nodes []*v1.Node, oldest int64) *view {
	v := &view{
		snapshot:  snapshot,
		resources: resources,
		index:     make(map[string]int32, len(nodes)),
		nodes:     nodes,
		samples:   make([][]measured.Sample, len(nodes)),
		loads:     make([]uint64, len(nodes)*(1+loadWords*len(resources))),
		rejected:  make([]uint64, len(nodes)*len(resources)),
		results:   newResults(len(nodes)),
		times:     make([][]int64, len(resources)),
		having:    make([]int, len(resources)),
		typical:   make([]average, len(resources)),
		oldest:    oldest,
		window:    math.MaxInt64,
		settledAt: math.MaxInt64,
	}
	for i := range v.rejected {
		v.rejected[i] = nothingRejected
	}
	for i, node := range nodes {
		v.index[node.Name] = int32(i)
		if snapshot != nil {
			v.samples[i] = snapshot.Node(node.Name)
		}
		v.count(node, v.samples[i])
	}
	for r := range v.times {
		sort.Sort(byTime(v.times[r]))
		v.typical[r] = v.average(r)
		if window := resources[r].window; window < v.window {
			v.window = window
		}
		if times := v.times[r]; len(times) > 0 && times[0]-resources[r].window < v.settledAt {
			v.settledAt = times[0] - resources[r].window
		}
	}
	return v
}

// average returns the average of a resource.
func (v *view) average(r int) average {
	of := average{at: notMeasured}
	var loads, variations, variation, capacities float64
	for node, object := range v.nodes {
		known := v.measured(node, r, object)
		if known.perUnit > 0 {
			capacities++
			of.perUnit += known.perUnit
		}
		if known.at < v.oldest || known.at == notMeasured {
			continue
		}
		if known.at > of.at {
			of.at = known.at
		}
		loads++
		of.load += known.measured
		of.points += v.resources[r].points(known.measured, known.variation)
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
	of.variation = variation / variations // of none: not a number
	return of
}

type byTime []int64

func (t byTime) Len() int           { return len(t) }
func (t byTime) Less(i, j int) bool { return t[i] < t[j] }
func (t byTime) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// count counts a node among those that have a resource, and its measurements.
func (v *view) count(node *v1.Node, samples []measured.Sample) {
	for r := range v.resources {
		resource := &v.resources[r]
		if resource.estimator.extended {
			if _, has := resource.capacityOf(node); !has {
				continue
			}
		}
		v.having[r]++
		if sample, missing := resource.of(samples); missing == measured.Present {
			v.times[r] = append(v.times[r], sample.At)
		}
	}
}

// find returns the node's number, and -1 for one that is not in the view.
func (v *view) find(name string) int {
	if i, found := v.index[name]; found {
		return int(i)
	}
	return -1
}

// oldestAt returns the time, in nanoseconds since 1970, before which a measurement is too old at another time. All are
// if the clock was set back since the snapshot came; the next one is by the clock as it is.
func (v *view) oldestAt(now time.Time, maxAge time.Duration) int64 {
	// By the time of day, which is what measurements have; Sub would go by time as it has passed.
	if v.snapshot != nil && v.snapshot.Taken.UnixNano()-now.UnixNano() > int64(measured.Ahead) {
		return math.MaxInt64
	}
	return now.Add(-maxAge).UnixNano()
}

// fresh returns how many measurements of a resource are not older than a time.
func (v *view) fresh(r int, oldest int64) int {
	times := v.times[r]
	return len(times) - sort.Search(len(times), func(i int) bool { return times[i] >= oldest })
}

// needed returns how many measurements of a resource make the share of the nodes, in percent.
func (v *view) needed(r int, percent int) int {
	return (v.having[r]*percent + 99) / 100
}

// blind says whether too few nodes have a measurement of a resource that is not older than a time. If there is no node
// that could have one, they are too few unless none are needed.
func (v *view) blind(r int, oldest int64, percent int) bool {
	if v.having[r] == 0 {
		return percent > 0
	}
	return v.fresh(r, oldest) < v.needed(r, percent)
}

// blindAfter returns the time such that a resource is blind, and was not before, when only measurements after it count;
// false if that never comes.
func (v *view) blindAfter(r, percent int) (int64, bool) {
	times, needed := v.times[r], v.needed(r, percent)
	if needed == 0 || len(times) < needed {
		return 0, false
	}
	return times[len(times)-needed], true
}

// nextOld returns the first time at which a measurement of a resource is made that is not before another time; false if
// there is none.
func (v *view) nextOld(r int, oldest int64) (int64, bool) {
	times := v.times[r]
	if i := len(times) - v.fresh(r, oldest); i < len(times) {
		return times[i], true
	}
	return 0, false
}

// missing says why there is no measurement of a resource of a node that is not older than a time; Present if there is
// one. The node may be -1.
func (v *view) missing(node, r int, oldest int64) measured.Missing {
	if node < 0 {
		return measured.NoSeries
	}
	sample, missing := v.resources[r].of(v.samples[node])
	if missing == measured.Present && sample.At < oldest {
		return measured.TooOld
	}
	return missing
}

// readLoads puts what was kept of a node into the first of the loads, one for each resource; false if there is nothing
// of the NodeInfo's generation.
func (v *view) readLoads(node int, nodeInfo *framework.NodeInfo, into *[maxResources]load) bool {
	return read(v.words(node), uint64(nodeInfo.Generation), into[:len(v.resources)])
}

// writeLoads keeps what was computed of a node.
func (v *view) writeLoads(node int, nodeInfo *framework.NodeInfo, loads *[maxResources]load) {
	if generation := uint64(nodeInfo.Generation); generation != unknown {
		write(v.words(node), generation, loads[:len(v.resources)])
	}
}

func (v *view) words(node int) []uint64 {
	stride := 1 + loadWords*len(v.resources)
	return v.loads[node*stride : (node+1)*stride]
}

func read(words []uint64, generation uint64, into []load) bool {
	if generation == unknown || atomic.LoadUint64(&words[0]) != generation {
		return false
	}
	for i := range into {
		at := words[1+loadWords*i : 1+loadWords*i+loadWords]
		into[i].at = int64(atomic.LoadUint64(&at[0]))
		into[i].measured = math.Float64frombits(atomic.LoadUint64(&at[1]))
		into[i].inFlight = math.Float64frombits(atomic.LoadUint64(&at[2]))
		into[i].perUnit = math.Float64frombits(atomic.LoadUint64(&at[3]))
		into[i].variation = math.Float64frombits(atomic.LoadUint64(&at[4]))
	}
	return atomic.LoadUint64(&words[0]) == generation
}

func write(words []uint64, generation uint64, loads []load) {
	before := atomic.LoadUint64(&words[0])
	if before == busy || before == generation || !atomic.CompareAndSwapUint64(&words[0], before, busy) {
		return
	}
	for i := range loads {
		at := words[1+loadWords*i : 1+loadWords*i+loadWords]
		atomic.StoreUint64(&at[0], uint64(loads[i].at))
		atomic.StoreUint64(&at[1], math.Float64bits(loads[i].measured))
		atomic.StoreUint64(&at[2], math.Float64bits(loads[i].inFlight))
		atomic.StoreUint64(&at[3], math.Float64bits(loads[i].perUnit))
		atomic.StoreUint64(&at[4], math.Float64bits(loads[i].variation))
	}
	atomic.StoreUint64(&words[0], generation)
}

// compute puts together what is measured and what is in flight. No pod counts for more than the node has, whatever it
// says of itself. The node may be -1; its object is the NodeInfo's, which may be newer than the view's.
func (v *view) compute(node int, nodeInfo *framework.NodeInfo, into *[maxResources]load) {
	// since is when the measurement was made in which pods are or are not; that of the others if the node has none.
	var since [maxResources]int64
	var settledAt int64 = math.MaxInt64
	for r := range v.resources {
		into[r] = v.measured(node, r, nodeInfo.Node())
		if since[r] = into[r].at; since[r] < v.oldest {
			since[r] = v.typical[r].at
			if into[r].perUnit == 0 {
				into[r].perUnit = v.typical[r].perUnit
			}
		}
		if into[r].perUnit == 0 {
			since[r] = notMeasured
		}
		if since[r] != notMeasured && since[r]-v.resources[r].window < settledAt {
			settledAt = since[r] - v.resources[r].window
		}
	}
	if settledAt == math.MaxInt64 {
		return
	}
	for _, podInfo := range nodeInfo.Pods {
		first := startOf(podInfo.Pod, v.window)
		if first <= settledAt {
			continue
		}
		for r := range v.resources {
			if since[r] == notMeasured {
				continue
			}
			resource, start := &v.resources[r], first
			if resource.window != v.window {
				start = startOf(podInfo.Pod, resource.window)
			}
			if lack := lacking(start, since[r], resource.window); lack > 0 {
				into[r].inFlight += lack * math.Min(1, resource.estimator.estimate(podInfo.Pod)*into[r].perUnit)
			}
		}
	}
}

// measured returns the load of a resource of a node, which may be -1, without what is in flight.
func (v *view) measured(node, r int, object *v1.Node) load {
	resource := &v.resources[r]
	found := load{at: notMeasured, variation: math.NaN()}
	capacity, known := resource.capacityOf(object)
	if known {
		found.perUnit = 1 / capacity
	}
	if node < 0 {
		return found
	}
	sample, missing := resource.of(v.samples[node])
	if missing != measured.Present {
		return found
	}
	if share, ok := resource.share(sample.Value, capacity); ok {
		found.at, found.measured = sample.At, share
	}
	if sample.HasDeviation {
		if share, ok := resource.share(sample.Deviation, capacity); ok {
			found.variation = variation(share, resource.sensitivity, resource.margin)
		}
	}
	return found
}

// with returns the load with a pod that has an estimate.
func (l *load) with(estimate float64) float64 {
	return l.measured + l.inFlight + estimate*l.perUnit
}

// reject notes that a pod with an estimate was rejected on a node for a resource.
func (v *view) reject(node, r int, estimate float64) {
	if node < 0 {
		atomic.StoreUint32(&v.strangers, 1)
		return
	}
	word := &v.rejected[node*len(v.resources)+r]
	for {
		before := atomic.LoadUint64(word)
		if math.Float64frombits(before) <= estimate {
			return
		}
		if atomic.CompareAndSwapUint64(word, before, math.Float64bits(estimate)) {
			return
		}
	}
}

// age returns how old what was measured at a time is, in nanoseconds since 1970.
func age(at int64, now time.Time) time.Duration {
	return time.Duration(now.UnixNano() - at)
}
