// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

// capacityAnnotation and the name of a resource are the key of the annotation with a node's capacity.
const capacityAnnotation = "node-load.scheduler/capacity-"

// resource is what a profile's args say of something that is measured.
type resource struct {
	name string
	unit config.NodeLoadUnit
	// capacity is what a node has whose annotation says nothing; 0 if only the node's status does.
	capacity           float64
	capacityAnnotation string
	estimator          estimator
	// window is in nanoseconds.
	window int64
	// threshold is a share of the capacity.
	filters   bool
	threshold float64
	// thresholdPercent is the same for people.
	thresholdPercent int64
	// hot and unmeasured are why nodes are rejected.
	hot, unmeasured string

	weight              int64
	strategy            config.NodeLoadStrategy
	target              float64
	margin, sensitivity float64

	// slot is where its samples are in a snapshot.
	slot int
}

func newResource(args *config.NodeLoadResource) resource {
	r := resource{
		name:               args.Name,
		unit:               args.Unit,
		capacityAnnotation: capacityAnnotation + args.Name,
		estimator:          newEstimator(args.Estimator),
		window:             int64(args.Window.Duration),
		weight:             int64(args.Weight),
		strategy:           args.Strategy,
		target:             float64(args.Target),
		margin:             args.Margin,
		sensitivity:        args.Sensitivity,
		unmeasured:         "node(s) had no measurement of " + args.Name,
	}
	if args.Threshold != nil {
		r.filters = true
		r.thresholdPercent = int64(*args.Threshold)
		r.threshold = float64(*args.Threshold) / 100
		r.hot = fmt.Sprintf("node(s) had %s above %d %% of capacity", args.Name, *args.Threshold)
	}
	if args.Capacity != nil {
		r.capacity = args.Capacity.AsApproximateFloat64()
	}
	return r
}

// capacityOf returns what a node has of the resource; false if that is not known. A capacity of nothing is none.
func (r *resource) capacityOf(node *v1.Node) (float64, bool) {
	if text, found := node.Annotations[r.capacityAnnotation]; found {
		if capacity, ok := quantityOf(text); ok && capacity > 0 {
			return capacity, true
		}
	}
	if r.capacity > 0 {
		return r.capacity, true
	}
	if r.estimator.resource == "" {
		return 0, false
	}
	quantity, found := node.Status.Capacity[r.estimator.resource]
	if !found || quantity.Sign() <= 0 {
		return 0, false
	}
	return quantity.AsApproximateFloat64(), true
}

const (
	longestQuantity = 24
	// longestExponent is in digits.
	longestExponent = 2
)

// quantityOf returns the quantity that an annotation says; false if it is none, is negative, or is longer than any
// needs to be. A pod's annotation must not be able to stop a scheduler, and a quantity with an exponent of millions
// takes minutes to parse.
func quantityOf(text string) (float64, bool) {
	if len(text) > longestQuantity {
		return 0, false
	}
	if e := strings.IndexAny(text, "eE"); e >= 0 && len(strings.TrimLeft(text[e+1:], "+-")) > longestExponent {
		return 0, false
	}
	quantity, err := apiresource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return 0, false
	}
	return quantity.AsApproximateFloat64(), true
}

// share turns a value of the resource's unit into a share of the capacity; false if that takes a capacity and there is
// none.
func (r *resource) share(value, capacity float64) (float64, bool) {
	switch r.unit {
	case config.NodeLoadPercent:
		return value / 100, true
	case config.NodeLoadAbsolute:
		if capacity <= 0 {
			return 0, false
		}
		return value / capacity, true
	default:
		return value, true
	}
}

// of returns the resource's sample among those of a node, and why it is not there.
func (r *resource) of(samples []measured.Sample) (*measured.Sample, measured.Missing) {
	if r.slot >= len(samples) {
		return nil, measured.NoSeries
	}
	return &samples[r.slot], samples[r.slot].Missing
}

// points returns the points of a node for a predicted load. The variation is not a number if no node's is known: then
// the load alone counts, on the full scale.
func (r *resource) points(load, variation float64) float64 {
	switch r.strategy {
	case config.NodeLoadTargetUtilization:
		return targetUtilization(load, r.target)
	case config.NodeLoadRisk:
		if math.IsNaN(variation) {
			return leastUsed(load)
		}
		return risk(load, variation)
	default:
		return leastUsed(load)
	}
}
