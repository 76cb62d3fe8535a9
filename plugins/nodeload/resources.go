// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"math"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// capacityAnnotation is the prefix of the annotation with a node's capacity; the name of the resource follows.
const capacityAnnotation = "node-load.scheduler/capacity-"

// resource is a resource of a profile's args.
type resource struct {
	name      string
	unit      config.NodeLoadUnit
	capacity  collector.Capacity
	estimator estimator
	window    int64 // in nanoseconds
	// threshold is a share of the capacity, and thresholdPercent that in the args.
	filters          bool
	threshold        float64
	thresholdPercent int64
	hot, unmeasured  string // the reasons for rejecting a node

	weight                      int64
	strategy                    config.NodeLoadStrategy
	target, margin, sensitivity float64

	// asked is the resource as the collector measures it, and askedOfPods the use of pods; empty if it does not.
	asked, askedOfPods collector.Resource
}

func newResource(args *config.NodeLoadResource) resource {
	r := resource{
		name:        args.Name,
		unit:        args.Unit,
		capacity:    collector.Capacity{Annotation: capacityAnnotation + args.Name, Status: args.Estimator.Resource},
		estimator:   newEstimator(args.Estimator),
		window:      int64(args.Window.Duration),
		weight:      int64(*args.Weight),
		strategy:    args.Strategy,
		target:      float64(*args.Target),
		margin:      *args.Margin,
		sensitivity: *args.Sensitivity,
		unmeasured:  "node(s) had no measurement of " + args.Name,
	}
	if args.Threshold != nil {
		r.filters, r.thresholdPercent, r.threshold = true, int64(*args.Threshold), float64(*args.Threshold)/100
		r.hot = fmt.Sprintf("node(s) had %s above %d %% of capacity", args.Name, *args.Threshold)
	}
	if args.PodQuery != "" {
		r.askedOfPods.Query = source.Query{Name: args.Name + " of pods", Value: args.PodQuery, Timestamp: args.PodTimestampQuery, Pods: true}
	}
	if args.Capacity != nil {
		r.capacity.Default = args.Capacity.AsApproximateFloat64()
	}
	return r
}

// share converts a value in the resource's unit to a share of the capacity; false if the capacity is required and
// unknown.
func (r *resource) share(value, capacity float64) (float64, bool) {
	switch r.unit {
	case config.NodeLoadPercent:
		return value / 100, true
	case config.NodeLoadAbsolute:
		return value / capacity, capacity > 0
	default:
		return value, true
	}
}

// points returns the points of a node for a predicted load. The variation is NaN if no node's is known: then only the
// load counts, on the full scale.
func (r *resource) points(load, variation float64) float64 {
	switch {
	case r.strategy == config.NodeLoadTargetUtilization:
		return targetUtilization(load, r.target)
	case r.strategy == config.NodeLoadRisk && !math.IsNaN(variation):
		return risk(load, variation)
	default:
		return leastUsed(load)
	}
}
