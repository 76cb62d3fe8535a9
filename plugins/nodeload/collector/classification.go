// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// reading is what the rows of an answer said about a node and a query.
type reading struct {
	value, timestamp, deviation float64
	// seen has the bit of each kind that there was a row of, and repeated of each with more than one.
	seen, repeated uint8
}

// note notes a row.
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

// blur notes that a row was about the node or about another.
func (r *reading) blur(kind source.Kind) {
	r.seen |= 1 << kind
	r.repeated |= 1 << kind
}

const (
	hasValue     = 1 << source.Value
	hasTimestamp = 1 << source.Timestamp
	hasDeviation = 1 << source.Deviation

	// absurd is the share of the capacity above which a value is taken for a mistake.
	absurd = 1.5
	// oldest is the age in seconds, some 30 years, from which it no longer matters how old a sample is. It keeps ages
	// within the range of a time.Duration.
	oldest = 1e9
)

// full returns the value that all of the capacity has, and whether it is known.
func (s *slot) full(node *v1.Node) (float64, bool) {
	switch s.Unit {
	case config.NodeLoadPercent:
		return 100, true
	case config.NodeLoadAbsolute:
		if s.capacity == nil {
			return 0, false
		}
		full, known := s.capacity(node)
		return full, known && full > 0
	default:
		return 1, true
	}
}

// answered is the time of an answer by two clocks: evaluated by the server's, in seconds since 1970, local by this
// process'.
type answered struct {
	evaluated float64
	local     time.Time
}

// classify makes a sample of a reading. What is wrong with it makes it missing, for the first reason that applies.
func (s *slot) classify(r *reading, node *v1.Node, a answered) measured.Sample {
	missing := func(why measured.Missing) measured.Sample { return measured.Sample{Missing: why} }
	switch {
	case r.seen&hasValue == 0:
		return missing(measured.NoSeries)
	case r.repeated&(hasValue|hasTimestamp) != 0:
		return missing(measured.Ambiguous)
	case math.IsNaN(r.value):
		return missing(measured.NotANumber)
	case math.IsInf(r.value, 0):
		return missing(measured.Infinite)
	case r.value < 0:
		return missing(measured.Negative)
	}
	full, known := s.full(node)
	switch {
	case !known:
		return missing(measured.NoCapacity)
	case r.value > absurd*full:
		return missing(measured.Absurd)
	case r.seen&hasTimestamp == 0, !(r.timestamp > 0), math.IsInf(r.timestamp, 0):
		return missing(measured.NoTimestamp)
	case r.timestamp > a.evaluated+measured.Ahead.Seconds():
		return missing(measured.Future)
	}
	sample := measured.Sample{Value: r.value, At: a.taken(r.timestamp)}
	if predates(sample.At, node, a.local) {
		return missing(measured.NoSeries)
	}
	// A deviation that is no use does not make the mean useless.
	if r.seen&hasDeviation != 0 && r.repeated&hasDeviation == 0 && r.deviation >= 0 && r.deviation <= absurd*full {
		sample.Deviation, sample.HasDeviation = r.deviation, true
	}
	return sample
}

// taken returns when a raw sample was taken by this process' clock, in nanoseconds since 1970: its age by the server's
// clock before the answer was asked for.
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

// predates says whether what was measured at a time, in nanoseconds since 1970, was not the node but another one that
// had its name or its address before. A node that is made in the future was made by a clock that tells nothing about
// ours.
func predates(at int64, node *v1.Node, now time.Time) bool {
	made := node.CreationTimestamp.Time
	return !made.IsZero() && !made.After(now) && at < made.UnixNano()
}
