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
	// value and deviation are the highest ones, and timestamp the earliest: two scrape jobs for one exporter measure the
	// same at slightly different times.
	value, timestamp, deviation float64
	// lowest is the lowest value, and latest the latest timestamp.
	lowest, latest float64
	// seen has a bit for each kind with a row, repeated for each kind with more than one, and blurred for each kind with
	// a row that may be about another node.
	seen, repeated, blurred uint8
}

// note adds a row.
func (r *reading) note(kind source.Kind, value float64) {
	bit := uint8(1) << kind
	again := r.seen&bit != 0
	r.seen |= bit
	if again {
		r.repeated |= bit
	}
	switch {
	case kind == source.Value && again:
		r.value, r.lowest = math.Max(r.value, value), math.Min(r.lowest, value)
	case kind == source.Value:
		r.value, r.lowest = value, value
	case kind == source.Timestamp && again:
		r.timestamp, r.latest = math.Min(r.timestamp, value), math.Max(r.latest, value)
	case kind == source.Timestamp:
		r.timestamp, r.latest = value, value
	case kind == source.Deviation && again:
		r.deviation = math.Max(r.deviation, value)
	case kind == source.Deviation:
		r.deviation = value
	}
}

// blur adds a row that may belong to this node or to another one.
func (r *reading) blur(kind source.Kind) {
	r.seen |= 1 << kind
	r.blurred |= 1 << kind
}

const (
	// sameScrape is how far apart the newest samples of two scrape jobs may be, in seconds: Prometheus' default
	// scrape_interval.
	sameScrape = 60
	// sameLoad is how far apart the means of two scrape jobs may be, as a share of a node, or of a higher value: their
	// scrapes are up to a tenth of the default window apart, in which the load may have changed from none to full.
	sameLoad = 0.1
)

// ambiguous reports whether the rows may be about different machines. A difference that is not a number is one.
func (r *reading) ambiguous() bool {
	return r.blurred&(hasValue|hasTimestamp) != 0 ||
		r.repeated&hasValue != 0 && !(r.value-r.lowest <= sameLoad*math.Max(1, r.value)) ||
		r.repeated&hasTimestamp != 0 && !(r.latest-r.timestamp <= sameScrape)
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
	case r.ambiguous():
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
	if r.seen&hasDeviation != 0 && r.blurred&hasDeviation == 0 && r.deviation >= 0 && !math.IsInf(r.deviation, 1) {
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
