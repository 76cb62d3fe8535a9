// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"math"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/overcommitting"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/saturating"
)

// predictor predicts the peak of a node's ordinary pods over the next horizon from their use over the last one.
//
// The N-sigma of a node and the sum of its pods' percentiles, and why the larger of both is used, are from "Take it to
// the Limit: Peak Prediction-driven Resource Overcommitment in Datacenters" (EuroSys 2021). N-sigma sees what pods do
// at the same time, but follows a growing use late; percentiles do not add up at the same time, but each pod's counts.
type predictor struct {
	args config.OvercommitArgs
	// resources are what a collector is asked for: of nodes, of nodes now, of pods, as far as they are needed.
	resources []collector.Resource
	// nodes, now and ofPods are their indices; -1 for one that is not needed.
	nodesAt, nowAt, podsAt int
	// ratio reports whether the values of nodes are shares of their capacity instead of cores.
	ratio bool
}

func newPredictor(args *config.OvercommitArgs, simulated bool) predictor {
	p := predictor{args: *args.DeepCopy(), nodesAt: -1, nowAt: -1, podsAt: -1}
	if args.Predictor == config.OvercommitRequests {
		return p
	}
	label, by := args.NodeMatch.Label, args.NodeMatch.By
	ofContainers := args.Predictor != config.OvercommitNSigma || simulated
	queries := source.Overcommit(label, args.Horizon.Duration, int(*args.Percentile), args.Prometheus.Matchers, ofContainers)
	if own := args.Queries; own != (config.OvercommitQueries{}) {
		queries = []source.Query{
			{Name: source.OvercommitNodes, Label: label, Value: own.NodeMean, Deviation: own.NodeDeviation, Timestamp: own.NodeTimestamp},
			{Name: source.OvercommitNow, Label: label, Value: own.NodeNow, Timestamp: own.NodeTimestamp},
			{Name: source.OvercommitPods, Pods: true, Value: own.PodPercentile, Timestamp: own.PodTimestamp},
		}
	} else {
		p.ratio = !ofContainers
	}
	if simulated {
		by = config.NodeLoadMatchName
	}
	add := func(query source.Query) int {
		resource := collector.Resource{Query: query}
		if !query.Pods {
			if resource.By = by; !p.ratio {
				resource.Capacity = collector.Capacity{Status: v1.ResourceCPU}
			}
		}
		p.resources = append(p.resources, resource)
		return len(p.resources) - 1
	}
	p.nodesAt = add(queries[0])
	if args.Predictor == config.OvercommitMaximum {
		p.nowAt = add(queries[1])
	}
	if args.Predictor != config.OvercommitNSigma {
		p.podsAt = add(queries[2])
	}
	return p
}

// view is a snapshot with the predictions that were made from it. All cycles read it until the next one arrives.
type view struct {
	snapshot *collector.Snapshot // nil before the first
	// nodes has an entry for each node of the snapshot.
	nodes map[string]*atomic.Value // *prediction
}

// atomicView is an atomic *view.
type atomicView struct{ value atomic.Value }

func (a *atomicView) Load() *view   { return a.value.Load().(*view) }
func (a *atomicView) Store(v *view) { a.value.Store(v) }

func newView(snapshot *collector.Snapshot) *view {
	v := &view{snapshot: snapshot}
	if snapshot != nil {
		v.nodes = make(map[string]*atomic.Value, len(snapshot.Nodes))
		for name := range snapshot.Nodes {
			v.nodes[name] = &atomic.Value{}
		}
	}
	return v
}

// prediction is the predicted peak of a node's ordinary pods.
type prediction struct {
	// generation is that of the NodeInfo whose pods were counted.
	generation int64
	// at is the time of the oldest measurement behind it, in nanoseconds since 1970.
	at int64
	// peak is in thousandths of a core, and by what it is: NSigma, Percentile, Requests, or "Now".
	peak int64
	by   string
}

// byNow is the predictor of the use now, a part of Maximum.
const byNow = "Now"

// notMeasured is before every time.
const notMeasured int64 = math.MinInt64

// peakOf returns the predicted peak of a node, in thousandths of a core; false if its measurement is missing or too old.
//
// The ordinary pods are those of the scheduler's snapshot. The NodeInfo may be a copy of that, with its own generation and
// without the pods that preemption would evict: their use is measured, and their eviction does not lower the prediction.
func (pl *Overcommit) peakOf(c *cycle, nodeInfo *framework.NodeInfo) (int64, bool) {
	if pl.args.Predictor == config.OvercommitRequests {
		return pl.inSnapshot(nodeInfo).Requested.MilliCPU, true
	}
	kept := c.view.nodes[nodeInfo.Node().Name]
	if kept == nil {
		return 0, false
	}
	known, _ := kept.Load().(*prediction)
	if known == nil || known.generation != nodeInfo.Generation {
		nodeInfo = pl.inSnapshot(nodeInfo)
	}
	if known == nil || known.generation != nodeInfo.Generation {
		pods := make([]*v1.Pod, len(nodeInfo.Pods))
		for i := range pods {
			pods[i] = nodeInfo.Pods[i].Pod
		}
		known = pl.predict(c.view.snapshot, nodeInfo.Node(), pods)
		known.generation = nodeInfo.Generation
		kept.Store(known)
	}
	return known.peak, known.at != notMeasured && known.at >= c.oldest
}

// inSnapshot returns the node of the scheduler's snapshot, or the given one if it is not there.
func (pl *Overcommit) inSnapshot(nodeInfo *framework.NodeInfo) *framework.NodeInfo {
	if snapshot := pl.handle.SnapshotSharedLister(); snapshot != nil {
		if found, err := snapshot.NodeInfos().Get(nodeInfo.Node().Name); err == nil {
			return found
		}
	}
	return nodeInfo
}

// predict returns the predicted peak of a node from a snapshot. Its pods may include overcommitting ones.
func (p *predictor) predict(snapshot *collector.Snapshot, node *v1.Node, pods []*v1.Pod) *prediction {
	of := &prediction{at: notMeasured, by: string(p.args.Predictor)}
	if p.args.Predictor == config.OvercommitRequests {
		of.at = math.MaxInt64
		for _, pod := range pods {
			of.peak = saturating.Add(of.peak, requested(pod))
		}
		return of
	}
	if snapshot == nil {
		return of
	}
	usual, found := snapshot.Sample(node.Name, p.resources[p.nodesAt])
	if !found || !usual.HasDeviation || usual.At < node.CreationTimestamp.UnixNano() {
		return of
	}
	var measured map[string]collector.Sample
	if p.podsAt >= 0 {
		// Without any, the query has failed, or nothing scrapes containers: then pods may use more than they request.
		if measured = snapshot.Pods(p.resources[p.podsAt]); len(measured) == 0 {
			return of
		}
	}
	current, at := collector.Sample{}, usual.At
	if p.nowAt >= 0 {
		if current, found = snapshot.Sample(node.Name, p.resources[p.nowAt]); !found {
			return of
		}
		if current.At < at {
			at = current.At
		}
	}
	unit := 1000.0
	if p.ratio {
		unit *= node.Status.Capacity.Cpu().AsApproximateFloat64()
	}
	// The parts are in thousandths of a core.
	horizon, rate := int64(p.args.Horizon.Duration), int64(source.OvercommitRate(p.args.Horizon.Duration))
	sigma, percentiles, present := unit*(usual.Value+*p.args.Sigmas*usual.Deviation), 0.0, unit*current.Value
	for _, pod := range pods {
		if overcommitting.Yields(pod) || ended(pod) {
			continue
		}
		// With the time 0, a pod that waits for its image or for init containers has not started, however long it takes.
		request, start := float64(requested(pod)), nodeload.StartOf(pod, horizon, 0)
		if overcommitting.Asked(pod) > 0 { // with a mistake: it is measured as an overcommitting pod, and never as an ordinary one
			start = math.MaxInt64
		}
		sigma += request * nodeload.Lacking(start, nodeload.Running, usual.At, horizon)
		if p.nowAt >= 0 {
			present += request * nodeload.Lacking(start, nodeload.Running, current.At, rate)
		}
		if p.podsAt < 0 {
			continue
		}
		use, known := measured[pod.Namespace+"/"+pod.Name]
		percentile := 1000 * use.Value
		if young := start > usual.At-horizon/4; (!known || young) && percentile < request {
			percentile = request
		}
		percentiles += percentile
	}
	of.at = at
	peak := sigma
	switch p.args.Predictor {
	case config.OvercommitPercentile:
		peak = percentiles
	case config.OvercommitMaximum:
		if of.by = string(config.OvercommitNSigma); percentiles > peak {
			peak, of.by = percentiles, string(config.OvercommitPercentile)
		}
		if present > peak {
			peak, of.by = present, byNow
		}
	}
	of.peak = int64(math.Ceil(math.Min(peak, math.MaxInt32)))
	return of
}

func ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// requested returns the CPU that a pod requests, in thousandths of a core, as the scheduler counts it: the sum of its
// containers' requests or the largest one of its init containers, and the overhead of its runtime class.
func requested(pod *v1.Pod) int64 {
	var sum int64
	for i := range pod.Spec.Containers {
		sum = saturating.Add(sum, pod.Spec.Containers[i].Resources.Requests.Cpu().MilliValue())
	}
	for i := range pod.Spec.InitContainers {
		if request := pod.Spec.InitContainers[i].Resources.Requests.Cpu().MilliValue(); request > sum {
			sum = request
		}
	}
	return saturating.Add(sum, pod.Spec.Overhead.Cpu().MilliValue())
}
