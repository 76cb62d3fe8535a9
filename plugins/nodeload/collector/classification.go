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
	// lowest and highest have the lowest and the highest value of each kind: two scrape jobs for one exporter measure
	// the same at slightly different times.
	lowest, highest [source.Deviation + 1]float64
	// seen has a bit for each kind with a row, repeated for each kind with several, and blurred for each kind with a
	// row that may be about another node.
	seen, repeated, blurred uint8
}

// note adds a row.
func (r *reading) note(kind source.Kind, value float64) {
	bit := uint8(1) << kind
	if r.seen&bit == 0 {
		r.seen |= bit
		r.lowest[kind], r.highest[kind] = value, value
		return
	}
	r.repeated |= bit
	r.lowest[kind], r.highest[kind] = math.Min(r.lowest[kind], value), math.Max(r.highest[kind], value)
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
	// sameLoad is how far apart the means of two scrape jobs may be, as a share of a node, or of a higher value. Means
	// over five minutes, a minute apart, differ by 2 % if the load has changed by 10 % of a node.
	sameLoad = 0.02
)

// ambiguous reports whether the rows may be about different machines; full is the value of a fully used one. A
// difference that is not a number is one.
func (r *reading) ambiguous(full float64) bool {
	apart := func(kind source.Kind, limit float64) bool { return !(r.highest[kind]-r.lowest[kind] <= limit) }
	return r.blurred&(hasValue|hasTimestamp) != 0 ||
		r.repeated&hasValue != 0 && apart(source.Value, sameLoad*math.Max(full, r.highest[source.Value])) ||
		r.repeated&hasTimestamp != 0 && apart(source.Timestamp, sameScrape)
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
	full, known := resource.full(node)
	value, timestamp, deviation := r.highest[source.Value], r.lowest[source.Timestamp], r.highest[source.Deviation]
	switch {
	case r.seen&hasValue == 0:
		return missing(NoSeries)
	case r.ambiguous(full):
		return missing(Ambiguous)
	case math.IsNaN(value):
		return missing(NotANumber)
	case math.IsInf(value, 0):
		return missing(Infinite)
	case value < 0:
		return missing(Negative)
	case !known:
		return missing(NoCapacity)
	case r.seen&hasTimestamp == 0, !(timestamp > 0), math.IsInf(timestamp, 0):
		return missing(NoTimestamp)
	case timestamp > a.evaluated+Ahead.Seconds():
		return missing(Future)
	}
	sample := Sample{Value: value, At: a.taken(timestamp)}
	if predates(sample.At, node, a.local) {
		return missing(NoSeries)
	}
	// An invalid deviation does not invalidate the mean.
	if r.seen&hasDeviation != 0 && r.blurred&hasDeviation == 0 && deviation >= 0 && !math.IsInf(deviation, 1) {
		sample.Deviation, sample.HasDeviation = deviation, true
	}
	return sample
}

// full returns the value of a fully used node; false if it is the node's capacity, which is unknown.
func (resource *Resource) full(node *v1.Node) (float64, bool) {
	switch {
	case resource.Capacity != (Capacity{}):
		return resource.Capacity.Of(node)
	case resource.Percent:
		return 100, true
	}
	return 1, true
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
