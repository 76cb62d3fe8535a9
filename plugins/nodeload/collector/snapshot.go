// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"time"
)

// Ahead is the maximum by which a time may be in the future. Prometheus timestamps samples with the clock by which it
// evaluates queries, and clocks are corrected in small steps: a larger difference is an error, a clock that was set
// back, or comes from two servers behind one address.
const Ahead = 10 * time.Second

// Missing is the reason why a sample is missing.
type Missing uint8

// The reasons. Readers add TooOld, which is not in a snapshot: the maximum age depends on the profile, and samples age.
const (
	// Present: there is a measurement.
	Present Missing = iota
	// NoSeries: the query returned nothing for the node.
	NoSeries
	// NoTimestamp: a value, but no time of its raw sample.
	NoTimestamp
	// Future: the raw sample's time is more than Ahead after that of the query.
	Future
	// NotANumber: the value is NaN.
	NotANumber
	// Infinite: the value is +Inf or -Inf.
	Infinite
	// Negative: the value is below zero.
	Negative
	// Ambiguous: more than one series for the node, with different values or times.
	Ambiguous
	// NoCapacity: an absolute value of a node whose capacity is unknown.
	NoCapacity
	// QueryFailed: the resource's query returned an error.
	QueryFailed
	// TooOld: the sample is older than the profile allows.
	TooOld
)

var reasons = [...]string{"", "no_series", "no_timestamp", "future", "not_a_number", "infinite", "negative", "ambiguous",
	"no_capacity", "query_failed", "too_old"}

// String returns the reason as in metrics' labels; empty for Present.
func (m Missing) String() string { return reasons[m] }

// Reasons returns all reasons except Present.
func Reasons() []Missing {
	all := make([]Missing, 0, len(reasons)-1)
	for m := NoSeries; int(m) < len(reasons); m++ {
		all = append(all, m)
	}
	return all
}

// Sample is the measurement of one resource of one node. Value and Deviation are in the unit of the query, and valid
// only if Missing is Present. At is when the newest raw sample behind them was taken, by this process' clock, in
// nanoseconds since 1970: the time of the answer less the sample's age by Prometheus' clock. Plain numbers keep a
// sample at 32 bytes without pointers.
type Sample struct {
	Value     float64
	Deviation float64
	At        int64
	Missing   Missing
	// HasDeviation reports whether Deviation was measured.
	HasDeviation bool
}

// Snapshot is the result of one refresh. It never changes.
type Snapshot struct {
	// ID counts the snapshots of a source, from 1.
	ID uint64
	// Taken is when the answer arrived.
	Taken time.Time
	// Nodes has the samples of each node, in the columns of their resources.
	Nodes map[string][]Sample
	// Unmatched is the number of series that match no node; UnmatchedLabel and UnmatchedExample are the label's name
	// and value of one of them.
	Unmatched                        int
	UnmatchedLabel, UnmatchedExample string

	columns map[Resource]int
	pods    []map[string]Sample // by column
}

// Pods returns the samples of a resource whose query is about pods, by NAMESPACE/NAME. None is missing.
func (s *Snapshot) Pods(resource Resource) map[string]Sample {
	if column, known := s.Column(resource); known && len(s.pods) > 0 {
		return s.pods[column]
	}
	return nil
}

// NewSnapshot returns a snapshot of nodes with a sample for each of the resources. Its arguments must not change.
func NewSnapshot(id uint64, taken time.Time, resources []Resource, nodes map[string][]Sample) *Snapshot {
	s := &Snapshot{ID: id, Taken: taken, Nodes: nodes, columns: make(map[Resource]int, len(resources))}
	for i := range resources {
		s.columns[resources[i].key()] = i
	}
	return s
}

// Column returns the index of a resource in the samples of a node; false if the resource was not queried.
func (s *Snapshot) Column(resource Resource) (int, bool) {
	column, known := s.columns[resource.key()]
	return column, known
}

// OldestAt returns the time, in nanoseconds since 1970, before which a measurement is too old now. All are too old if
// the clock was set back since the snapshot arrived.
func (s *Snapshot) OldestAt(now time.Time, maxAge time.Duration) int64 {
	// Measurements have wall-clock times; Sub would use the monotonic clock.
	if s != nil && s.Taken.UnixNano()-now.UnixNano() > int64(Ahead) {
		return math.MaxInt64
	}
	return now.Add(-maxAge).UnixNano()
}
