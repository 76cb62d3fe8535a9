// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// reading has the values of the rows about one node and one resource.
type reading struct {
	value, timestamp, deviation float64
	// seen has a bit for each kind with a row, and repeated for each kind with more than one.
	seen, repeated uint8
}

// note adds a row.
func (r *reading) note(kind source.Kind, value float64) {
	bit := uint8(1) << kind
	r.repeated |= r.seen & bit
	r.seen |= bit
	switch kind {
	case source.Value:
		r.value = value
	case source.Timestamp:
		r.timestamp = value
	case source.Deviation:
		r.deviation = value
	}
}

// blur adds a row that may belong to this node or to another one.
func (r *reading) blur(kind source.Kind) {
	r.seen |= 1 << kind
	r.repeated |= 1 << kind
}

const (
	hasValue     = 1 << source.Value
	hasTimestamp = 1 << source.Timestamp
	hasDeviation = 1 << source.Deviation

	// oldest is the maximum age in seconds, some 30 years: it keeps ages within the range of a time.Duration.
	oldest = 1e9
)

// answered is the time of an answer by two clocks: evaluated by the server's, in seconds since 1970, local by this
// process'.
type answered struct {
	evaluated float64
	local     time.Time
}

// classify returns the sample of a reading. An invalid reading is missing, with the first reason that applies. A value
// above the capacity is valid: the node is overloaded.
func (resource *Resource) classify(r *reading, node *v1.Node, a answered) Sample {
	missing := func(why Missing) Sample { return Sample{Missing: why} }
	switch {
	case r.seen&hasValue == 0:
		return missing(NoSeries)
	case r.repeated&(hasValue|hasTimestamp) != 0:
		return missing(Ambiguous)
	case math.IsNaN(r.value):
		return missing(NotANumber)
	case math.IsInf(r.value, 0):
		return missing(Infinite)
	case r.value < 0:
		return missing(Negative)
	case resource.lacksCapacity(node):
		return missing(NoCapacity)
	case r.seen&hasTimestamp == 0, !(r.timestamp > 0), math.IsInf(r.timestamp, 0):
		return missing(NoTimestamp)
	case r.timestamp > a.evaluated+Ahead.Seconds():
		return missing(Future)
	}
	sample := Sample{Value: r.value, At: a.taken(r.timestamp)}
	if predates(sample.At, node, a.local) {
		return missing(NoSeries)
	}
	// An invalid deviation does not invalidate the mean.
	if r.seen&hasDeviation != 0 && r.repeated&hasDeviation == 0 && r.deviation >= 0 && !math.IsInf(r.deviation, 1) {
		sample.Deviation, sample.HasDeviation = r.deviation, true
	}
	return sample
}

// lacksCapacity reports whether the node's capacity is required and unknown.
func (resource *Resource) lacksCapacity(node *v1.Node) bool {
	if resource.Capacity == (Capacity{}) {
		return false
	}
	_, known := resource.Capacity.Of(node)
	return !known
}

// taken returns when a raw sample was taken by this process' clock, in nanoseconds since 1970: the time of the request
// less the sample's age by the server's clock.
func (a answered) taken(timestamp float64) int64 {
	age := a.evaluated - timestamp
	switch {
	case age < 0:
		age = 0
	case !(age <= oldest):
		age = oldest
	}
	return a.local.UnixNano() - int64(age*float64(time.Second))
}

// predates reports whether a sample, taken at a time in nanoseconds since 1970, is of an earlier node with the same
// name or address. A node that was created in the future was created by another clock, which cannot be compared with
// ours.
func predates(at int64, node *v1.Node, now time.Time) bool {
	created := node.CreationTimestamp.Time
	return !created.IsZero() && !created.After(now) && at < created.UnixNano()
}
