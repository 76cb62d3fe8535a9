// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/utils/pointer"
)

// A view is a snapshot converted for a profile: with the profile's resources, as shares of the nodes' capacities. It is
// made when the snapshot arrives, and all cycles read it until the next one arrives.
//
// Three parts change, atomically, because several workers filter and score in parallel: kept, over (see ended.go), and
// the notes of rejections (see waking.go).
type view struct {
	snapshot *collector.Snapshot // nil before the first
	// made is its time, in nanoseconds since 1970. Measurements from before oldest were too old then.
	made, oldest int64
	resources    []resource
	// columns has the resources' columns in the snapshot; -1 if it has none.
	columns []int
	nodes   []*v1.Node
	index   map[string]int32 // of nodes, by name
	// measured has the loads of each node without pods in flight.
	measured [][]load
	// kept has the last computed *kept of each node.
	kept []atomic.Value
	// over has the UIDs of ended pods by name, each name's last. A NodeInfo may still contain them.
	over *sync.Map
	// scales are those of the estimates of owners' pods, which were all looked for at sawOwners.
	scales    map[owner]*scales
	sawOwners int64
	// usedByPods has the measured use of each resource by pods, by NAMESPACE/NAME.
	usedByPods []map[string]collector.Sample

	// rejected is above 0 for each node and resource for which a pod was rejected, and rejectedUnknown if one was rejected
	// on a node that is not in the view.
	rejected        []int64
	rejectedUnknown uint32

	// By resource: the sorted times of the measurements, the number of nodes that have it, and the average measurement.
	times   [][]int64
	having  []int
	typical []average
	window  int64 // the shortest
}

// kept has the loads of a node with pods in flight. They are valid until the node's pods change: each change gives a
// NodeInfo a new, unique generation, also in the copies that preemption makes. The end of a pod makes them invalid.
type kept struct {
	generation int64
	loads      []load
	// gone is what is left of ended pods, by resource; nil if there are none.
	gone []float64
	// less is what would be taken off if all pods of a priority left, as far as their use is measured.
	less map[priority]float64
}

// priority is a priority of pods, and the index of a resource.
type priority struct {
	priority int32
	resource int
}

// average replaces a node's missing measurements: it has means over the nodes whose measurements were fresh when the
// view was made.
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

// newView returns a view of a snapshot, which may be nil, and of the current nodes. Measurements that are older than
// maxAge are not fresh.
func newView(snapshot *collector.Snapshot, resources []resource, nodes []*v1.Node, now time.Time, maxAge time.Duration) *view {
	v := &view{
		snapshot: snapshot, made: now.UnixNano(), oldest: now.Add(-maxAge).UnixNano(), resources: resources, nodes: nodes,
		columns: make([]int, len(resources)), index: make(map[string]int32, len(nodes)), measured: make([][]load, len(nodes)),
		kept: make([]atomic.Value, len(nodes)), over: &sync.Map{}, usedByPods: make([]map[string]collector.Sample, len(resources)),
		rejected: make([]int64, len(nodes)*len(resources)), times: make([][]int64, len(resources)),
		having: make([]int, len(resources)), typical: make([]average, len(resources)), window: math.MaxInt64,
	}
	for r := range resources {
		resource := &resources[r]
		v.columns[r] = -1
		if snapshot == nil {
			continue
		}
		if column, known := snapshot.Column(resource.asked); known {
			v.columns[r] = column
		}
		if resource.askedOfPods.Pods {
			v.usedByPods[r] = snapshot.Pods(resource.askedOfPods)
		}
	}
	for i, node := range nodes {
		v.index[node.Name] = int32(i)
		v.measured[i] = v.measurements(node)
		v.kept[i].Store(&kept{})
	}
	for r := range resources {
		resource := &resources[r]
		v.typical[r] = v.average(r)
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
		for _, loads := range v.measured {
			v.account(r, &loads[r])
		}
	}
	return v
}

// sample returns the sample of a node for a resource, or the reason why it is missing.
func (v *view) sample(node string, r int) (*collector.Sample, collector.Missing) {
	if v.columns[r] < 0 || v.snapshot.Nodes[node] == nil {
		return nil, collector.NoSeries
	}
	sample := &v.snapshot.Nodes[node][v.columns[r]]
	return sample, sample.Missing
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
func (v *view) average(r int) average {
	of := average{at: notMeasured}
	var loads, variations, variation, capacities float64
	for _, node := range v.measured {
		known := &node[r]
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
func (v *view) account(r int, l *load) {
	l.since = l.at
	if l.at < v.oldest {
		l.since = v.typical[r].at
		if l.perUnit == 0 {
			l.perUnit = v.typical[r].perUnit
		}
	}
	if l.perUnit == 0 {
		l.since = notMeasured
	}
}

// find returns the node's index; -1 for a node that is not in the view.
func (v *view) find(name string) int {
	if i, found := v.index[name]; found {
		return int(i)
	}
	return -1
}

// findRun returns the index of a run's node; -1 if there is none, or if the node was created after the pod began: then it
// ran on an earlier node with this name.
func (v *view) findRun(of *run) int {
	number := v.find(of.node)
	if number >= 0 && of.start < v.nodes[number].CreationTimestamp.UnixNano() {
		return -1
	}
	return number
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
func (v *view) loads(nodeInfo *framework.NodeInfo) []load { return v.keep(nodeInfo).loads }

// keep returns the kept loads of a node, computed if its pods have changed.
func (v *view) keep(nodeInfo *framework.NodeInfo) *kept {
	node := nodeInfo.Node()
	number, before := v.find(node.Name), (*kept)(nil)
	if number >= 0 {
		if before = v.kept[number].Load().(*kept); before.generation == nodeInfo.Generation {
			return before
		}
	}
	k := v.empty(number, node)
	k.generation = nodeInfo.Generation
	for _, podInfo := range nodeInfo.Pods {
		v.add(k, podInfo.Pod, podInfo.Pod.DeletionTimestamp != nil)
	}
	if number >= 0 {
		// Not if a pod has ended meanwhile.
		v.kept[number].CompareAndSwap(before, k)
	}
	return k
}

// empty returns the loads of a node without its pods, and without what is left of ended pods. A node with the index -1
// is not measured.
func (v *view) empty(number int, node *v1.Node) *kept {
	k := &kept{loads: make([]load, len(v.resources))}
	if number >= 0 {
		copy(k.loads, v.measured[number])
		k.gone = v.kept[number].Load().(*kept).gone
		for r := range k.gone {
			// Not more than was measured, which would hide pods in flight.
			k.loads[r].inFlight = math.Max(k.gone[r], -k.loads[r].measured)
		}
		return k
	}
	for r := range k.loads {
		l := &k.loads[r]
		*l = load{at: notMeasured, variation: math.NaN()}
		if capacity, known := v.resources[r].capacity.Of(node); known {
			l.perUnit = 1 / capacity
		}
		v.account(r, l)
	}
	return k
}

// add adds to the loads of a node what its measurements lack of a pod. The pod counts for at most the node's capacity.
// If it leaves, its measured use is taken off instead. A pod that has ended does not count.
func (v *view) add(k *kept, pod *v1.Pod, leaves bool) {
	start, known, scales := StartOf(pod, v.window, v.made), false, (*scales)(nil)
	for r := range k.loads {
		resource, l := &v.resources[r], &k.loads[r]
		if l.since == notMeasured {
			continue
		}
		// Most pods are in all measurements.
		lack := Lacking(start, Running, l.since, resource.window)
		if lack == 0 && v.usedByPods[r] == nil {
			continue
		}
		if !known {
			if ended, found := v.over.Load(nameOf(pod)); found && ended == pod.UID {
				return
			}
			scales, known = v.scales[ownerOf(pod)], true
		}
		add := lack * l.share(resource.estimator.estimate(pod, scales.of(r)))
		if used := v.used(pod, start, r); used >= 0 && l.since == l.at {
			gone := (lack - 1) * l.share(used)
			if leaves || resource.estimator.yields(pod) {
				add = gone
			} else {
				if k.less == nil {
					k.less = map[priority]float64{}
				}
				k.less[priority{pointer.Int32Deref(pod.Spec.Priority, 0), r}] += gone - add
			}
		}
		l.inFlight += add
	}
}

// without returns the loads without the measured use of pods of a lower priority.
func (k *kept) without(below int32) []load {
	loads := append([]load(nil), k.loads...)
	for of, less := range k.less {
		if of.priority < below {
			loads[of.resource].inFlight += less
		}
	}
	return loads
}

// addAll adds pods to the loads of some nodes, by their indices.
func (v *view) addAll(pods []*v1.Pod, to map[int]*kept) {
	for _, pod := range pods {
		if k := to[v.find(pod.Spec.NodeName)]; k != nil {
			v.add(k, pod, pod.DeletionTimestamp != nil)
		}
	}
}

// lacks reports whether the measurements of a node of the view lack a part of a pod.
func (v *view) lacks(of *run) bool {
	for r, l := range v.measured[v.find(of.node)] {
		if l.since != notMeasured && Lacking(of.start, of.end, l.since, v.resources[r].window) > 0 {
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
