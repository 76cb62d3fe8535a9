// SPDX-License-Identifier: Apache-2.0

// Package measured holds what was measured of all nodes at one time. Its values are made once and never changed.
package measured

import "time"

// Ahead is by how much a time may be after what is taken for now. Prometheus stamps a sample by the clock that it
// evaluates queries by, and clocks are corrected by little: more than that, or than two servers behind one address
// differ by, is a mistake or a clock that was set back.
const Ahead = 10 * time.Second

// Missing says why there is no measurement.
type Missing uint8

// The reasons. Ages are left to those who read: what is too old is for a profile to say, and changes as time passes.
const (
	// Present is no reason: there is a measurement.
	Present Missing = iota
	// NoSeries: the query returned nothing for the node.
	NoSeries
	// NoTimestamp: a value, but no time of a raw sample behind it.
	NoTimestamp
	// Future: the raw sample's time is after that of the query by more than a scrape can be.
	Future
	// NotANumber: the value is NaN.
	NotANumber
	// Infinite: the value is +Inf or -Inf.
	Infinite
	// Negative: the value is below zero.
	Negative
	// Absurd: the value is more than 1.5 times the capacity.
	Absurd
	// Ambiguous: more than one series for the node.
	Ambiguous
	// NoCapacity: an absolute value of a node whose capacity is unknown.
	NoCapacity
	// QueryFailed: the resource's query was answered with an error.
	QueryFailed
	// TooOld is not said by a snapshot, but by who reads it.
	TooOld
)

var reasons = [...]string{"", "no_series", "no_timestamp", "future", "not_a_number", "infinite", "negative", "absurd", "ambiguous",
	"no_capacity", "query_failed", "too_old"}

// String returns the reason as metrics' labels have it; empty for Present.
func (m Missing) String() string { return reasons[m] }

// Reasons returns all reasons there are, Present not among them.
func Reasons() []Missing {
	all := make([]Missing, 0, len(reasons)-1)
	for m := NoSeries; int(m) < len(reasons); m++ {
		all = append(all, m)
	}
	return all
}

// Sample is what is known of one resource of one node. Value and Deviation are as the query returned them, in its unit,
// and have a meaning only without Missing. At is when the newest raw sample behind them was taken, by this process'
// clock, in nanoseconds since 1970: whatever clock Prometheus has, its age by that clock was subtracted from the time
// of the answer. Numbers and no time.Time keep a sample at 32 bytes without pointers.
type Sample struct {
	Value     float64
	Deviation float64
	At        int64
	Missing   Missing
	// HasDeviation says that Deviation was measured.
	HasDeviation bool
}

// Snapshot is what one refresh found.
type Snapshot struct {
	// ID counts the snapshots of a source, from 1.
	ID uint64
	// Taken is when the answer came.
	Taken time.Time
	// Slots is how many resources a node has samples of.
	Slots int
	// Unmatched is how many series were about no node that there is; UnmatchedLabel and UnmatchedExample are the name
	// and the value of the label of one.
	Unmatched                        int
	UnmatchedLabel, UnmatchedExample string

	index   map[string]int32
	samples []Sample
}

// New makes a snapshot of samples: those of the node with the index i begin at i x slots. It keeps both and they must
// not be changed any more.
func New(id uint64, taken time.Time, slots int, index map[string]int32, samples []Sample) *Snapshot {
	return &Snapshot{ID: id, Taken: taken, Slots: slots, index: index, samples: samples}
}

// Node returns the samples of a node, one for each slot; nil for a node that the snapshot does not know. They must not
// be changed.
func (s *Snapshot) Node(name string) []Sample {
	i, known := s.index[name]
	if !known {
		return nil
	}
	at := int(i) * s.Slots
	return s.samples[at : at+s.Slots : at+s.Slots]
}

// Each calls something for every node, in no order.
func (s *Snapshot) Each(do func(name string, samples []Sample)) {
	for name, i := range s.index {
		at := int(i) * s.Slots
		do(name, s.samples[at:at+s.Slots:at+s.Slots])
	}
}
