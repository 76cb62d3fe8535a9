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

// A view is a snapshot as a profile sees it: by the profile's resources, in shares of the nodes' capacities. It is made
// when the snapshot comes and then read by all cycles until the next one comes.
//
// Two parts of it change, atomically, because 16 workers filter and score at once: kept, and what is noted of
// rejections (see waking.go).
type view struct {
	snapshot *measured.Snapshot // nil before the first
	// made is when, in nanoseconds since 1970.
	made      int64
	resources []resource
	nodes     []*v1.Node
	// index has the nodes' numbers by their names.
	index map[string]int32
	// measured has for each node its loads without what is in flight.
	measured [][]load
	// kept has for each node the *kept that was computed last.
	kept []atomic.Value

	// rejected says for each node and resource, with 1, that a pod was rejected there.
	rejected []uint32
	// strangers says, with 1, that a pod was rejected on a node that is not in the view.
	strangers uint32

	// times are, for each resource, those of the measurements that there are, in order.
	times [][]int64
	// having is how many nodes have the resource.
	having []int
	// window is the shortest window, and settledAt the time such that a pod which began before it is in all
	// measurements.
	window, settledAt int64
	// typical is, for each resource, what is measured of the nodes on the average.
	typical []average
}

// kept are the loads of a node with what is in flight. They hold for as long as the node's pods stay the same: each
// change to them gives a NodeInfo a new generation, which no other ever has, copies that preemption makes among them.
type kept struct {
	generation int64
	loads      []load
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

// load is what is known of a resource of a node, before the pod comes.
type load struct {
	// at is when it was measured, in nanoseconds since 1970; notMeasured if it was not.
	at int64
	// measured is as a share of the capacity, and so is what is in flight.
	measured, inFlight float64
	// since is when the measurement was made that pods in flight are not in: that of the others if the node's is
	// missing or was too old when the view was made; notMeasured if pods cannot be accounted for.
	since int64
	// perUnit is the share of the capacity that a unit is; 0 if the capacity is not known. Of a node that is not
	// measured either, it is what it is of the others.
	perUnit float64
	// variation is what the strategy Risk takes for the deviation; not a number if that was not measured.
	variation float64
}

// notMeasured is before every time.
const notMeasured int64 = math.MinInt64

// newView makes a view of a snapshot, which may be nil, and of the nodes that there are. Measurements that are older
// than maxAge now are not fresh.
func newView(snapshot *measured.Snapshot, resources []resource, nodes []*v1.Node, now time.Time, maxAge time.Duration) *view {
	oldest := now.Add(-maxAge).UnixNano()
	v := &view{
		snapshot:  snapshot,
		made:      now.UnixNano(),
		resources: resources,
		nodes:     nodes,
		index:     make(map[string]int32, len(nodes)),
		measured:  make([][]load, len(nodes)),
		kept:      make([]atomic.Value, len(nodes)),
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
	}
	for r := range resources {
		resource := &resources[r]
		v.typical[r] = v.average(r, oldest)
		for _, node := range nodes {
			if _, has := resource.capacityOf(node); !has && resource.estimator.extended {
				continue
			}
			v.having[r]++
			if sample, missing := v.sample(node.Name, r); missing == measured.Present {
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

// sample returns the sample of a resource of a node, and why it is not there.
func (v *view) sample(node string, r int) (*measured.Sample, measured.Missing) {
	if v.snapshot == nil {
		return nil, measured.NoSeries
	}
	return v.resources[r].of(v.snapshot.Node(node))
}

// measurements returns what is measured of a node.
func (v *view) measurements(node *v1.Node) []load {
	loads := make([]load, len(v.resources))
	for r := range loads {
		resource, l := &v.resources[r], &loads[r]
		*l = load{at: notMeasured, since: notMeasured, variation: math.NaN()}
		capacity, known := resource.capacityOf(node)
		if known {
			l.perUnit = 1 / capacity
		}
		sample, missing := v.sample(node.Name, r)
		if missing != measured.Present {
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

// average returns the average of a resource. No node counts for more than it has, so that a single mistake of an
// exporter does not make all others look idle.
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
	of.variation = variation / variations // of none: not a number
	return of
}

// account says from when on pods are in flight, of a node's load that was or was not measured.
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

// blind says whether too few nodes, of those that have the resource, have a measurement of it that is not older than a
// time. If there is no node that could have one, they are too few unless none are needed.
func (v *view) blind(r int, oldest int64, percent int) bool {
	if v.having[r] == 0 {
		return percent > 0
	}
	return v.fresh(r, oldest)*100 < v.having[r]*percent
}

// loads returns what is known of a node, with what is in flight. They must not be changed.
func (v *view) loads(nodeInfo *framework.NodeInfo) []load {
	node := nodeInfo.Node()
	number := v.find(node.Name)
	if number >= 0 {
		if k, ok := v.kept[number].Load().(*kept); ok && k.generation == nodeInfo.Generation {
			return k.loads
		}
	}
	loads := v.loadsWithout(number, node)
	for _, podInfo := range nodeInfo.Pods {
		v.add(loads, podInfo.Pod, true)
	}
	if number >= 0 {
		v.kept[number].Store(&kept{nodeInfo.Generation, loads})
	}
	return loads
}

// loadsWithout returns what is known of a node without what is in flight. One whose number is -1 is as one that is not
// measured.
func (v *view) loadsWithout(number int, node *v1.Node) []load {
	if number >= 0 {
		return append([]load(nil), v.measured[number]...)
	}
	loads := make([]load, len(v.resources))
	for r := range loads {
		loads[r] = load{at: notMeasured, variation: math.NaN(), since: v.typical[r].at, perUnit: v.typical[r].perUnit}
		if capacity, known := v.resources[r].capacityOf(node); known {
			loads[r].perUnit = 1 / capacity
		}
		if loads[r].perUnit == 0 {
			loads[r].since = notMeasured
		}
	}
	return loads
}

// add adds what is in flight of a pod to the loads of its node, or leaves them as they are, and says whether that is
// any. No pod counts for more than the node has, whatever it says of itself.
func (v *view) add(loads []load, pod *v1.Pod, sum bool) bool {
	// Most pods are in all measurements.
	first := startOf(pod, v.window, v.made)
	if first <= v.settledAt {
		return false
	}
	inFlight := false
	for r := range loads {
		resource, l, start := &v.resources[r], &loads[r], first
		if l.since == notMeasured {
			continue
		}
		if resource.window != v.window {
			start = startOf(pod, resource.window, v.made)
		}
		lack := lacking(start, l.since, resource.window)
		if lack > 0 && sum {
			l.inFlight += lack * l.share(resource.estimator.estimate(pod))
		}
		inFlight = inFlight || lack > 0
	}
	return inFlight
}

// addAll adds what is in flight of all pods to the loads of nodes, by their numbers, of which there may be some only. It
// returns how many pods are in flight on the nodes of the view.
func (v *view) addAll(pods []*v1.Pod, to map[int][]load) int {
	count := 0
	for _, pod := range pods {
		node := v.find(pod.Spec.NodeName)
		if node < 0 {
			continue
		}
		loads, wanted := to[node]
		if !wanted {
			loads = v.measured[node]
		}
		if v.add(loads, pod, wanted) {
			count++
		}
	}
	return count
}

// share returns the share of the capacity that an estimate is, which is no more than all of it.
func (l *load) share(estimate float64) float64 {
	return math.Min(1, estimate*l.perUnit)
}

// now returns the load without the pod that is to come.
func (l *load) now() float64 {
	return l.measured + l.inFlight
}

// with returns the load with a pod that has an estimate.
func (l *load) with(estimate float64) float64 {
	return l.now() + l.share(estimate)
}
