// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// TestClassify uses answers that were evaluated at the server's second 5,000, which was this process' second 1,000: a
// raw sample from the server's second 4,990 is 10 s old, and was taken at this process' second 990.
func TestClassify(t *testing.T) {
	at := answered{evaluated: 5000, local: time.Unix(1000, 0)}
	type rows []source.Row
	of := func(kind source.Kind, value float64) source.Row { return source.Row{Kind: kind, Value: value} }
	value := func(v float64) source.Row { return of(source.Value, v) }
	stamp := of(source.Timestamp, 4990)
	deviation := func(v float64) source.Row { return of(source.Deviation, v) }
	const second = int64(time.Second)
	sample := func(v float64, at int64) Sample { return Sample{Value: v, At: at * second} }
	varying := func(v, d float64) Sample {
		return Sample{Value: v, Deviation: d, HasDeviation: true, At: 990 * second}
	}
	known, unknown := Capacity{Default: 4}, Capacity{Annotation: "none"}

	tests := []struct {
		name     string
		capacity Capacity
		rows     rows
		want     Sample
	}{
		{"a value and its time", Capacity{}, rows{value(0.5), stamp}, sample(0.5, 990)},
		{"the time first", Capacity{}, rows{stamp, value(0.5)}, sample(0.5, 990)},
		{"with a deviation", Capacity{}, rows{value(0.5), stamp, deviation(0.1)}, varying(0.5, 0.1)},
		{"zero is a value", Capacity{}, rows{value(0), stamp}, sample(0, 990)},
		{"no rows", Capacity{}, nil, missing(NoSeries)},
		{"a time without a value", Capacity{}, rows{stamp, deviation(0.1)}, missing(NoSeries)},
		// 2 % of a node and 60 s are the limits within which two series count as those of one machine.
		{"two values", Capacity{}, rows{value(0.48), value(0.501), stamp}, missing(Ambiguous)},
		{"two values of one machine", Capacity{}, rows{value(0.482), value(0.5), stamp}, sample(0.5, 990)},
		{"two values in cores of four", known, rows{value(1.9), value(2), stamp}, missing(Ambiguous)},
		{"two values in cores of one machine", known, rows{value(1.93), value(2), stamp}, sample(2, 990)},
		{"two times", Capacity{}, rows{value(0.5), stamp, of(source.Timestamp, 4929)}, missing(Ambiguous)},
		{"two times of one machine", Capacity{}, rows{value(0.5), stamp, of(source.Timestamp, 4930)}, sample(0.5, 930)},
		{"two infinite values", Capacity{}, rows{value(inf), value(inf), stamp}, missing(Ambiguous)},
		{"two times of which one is not a number", Capacity{}, rows{value(0.5), of(source.Timestamp, nan), stamp}, missing(Ambiguous)},
		{"not a number", Capacity{}, rows{value(nan), stamp}, missing(NotANumber)},
		{"infinite", Capacity{}, rows{value(inf), stamp}, missing(Infinite)},
		{"just negative", Capacity{}, rows{value(-1e-12), stamp}, missing(Negative)},

		{"an overloaded node", Capacity{}, rows{value(1.51), stamp}, sample(1.51, 990)},
		{"more cores than it has", known, rows{value(6.01), stamp}, sample(6.01, 990)},
		{"of unknown capacity", unknown, rows{value(1), stamp}, missing(NoCapacity)},

		{"no time", Capacity{}, rows{value(0.5)}, missing(NoTimestamp)},
		{"an infinite time", Capacity{}, rows{value(0.5), of(source.Timestamp, inf)}, missing(NoTimestamp)},
		{"10 s in the future: now", Capacity{}, rows{value(0.5), of(source.Timestamp, 5010)}, sample(0.5, 1000)},
		{"further in the future", Capacity{}, rows{value(0.5), of(source.Timestamp, 5010.5)}, missing(Future)},
		{"old ones stay as they are", Capacity{}, rows{value(0.5), of(source.Timestamp, 4000)}, sample(0.5, 0)},

		{"a deviation that is not a number", Capacity{}, rows{value(0.5), stamp, deviation(nan)}, sample(0.5, 990)},
		{"an infinite deviation", Capacity{}, rows{value(0.5), stamp, deviation(inf)}, sample(0.5, 990)},
		{"two deviations", Capacity{}, rows{value(0.5), stamp, deviation(0.1), deviation(0.05)}, varying(0.5, 0.1)},
		{"two deviations of which one is not a number", Capacity{}, rows{value(0.5), stamp, deviation(nan), deviation(0.1)}, sample(0.5, 990)},
		{"a deviation in percent", Capacity{}, rows{value(50), stamp, deviation(10)}, varying(50, 10)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Resource{Capacity: tt.capacity}
			var r reading
			for _, row := range tt.rows {
				r.note(row.Kind, row.Value)
			}
			if got := s.classify(&r, makeNode("node"), at); got != tt.want {
				t.Errorf("sample is %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestClassifyPercentages(t *testing.T) {
	for _, tt := range []struct {
		lowest float64
		want   Sample
	}{
		{47.9, missing(Ambiguous)},
		{48.1, Sample{Value: 50, At: 990 * int64(time.Second)}},
	} {
		var r reading
		r.note(source.Value, 50)
		r.note(source.Value, tt.lowest)
		r.note(source.Timestamp, 4990)
		s := Resource{Percent: true}
		if got := s.classify(&r, makeNode("node"), answered{evaluated: 5000, local: time.Unix(1000, 0)}); got != tt.want {
			t.Errorf("with 50 and %v %%, the sample is %+v, want %+v", tt.lowest, got, tt.want)
		}
	}
}

// TestClassifyRecreatedNode checks that samples older than the node are ignored. The sample was taken at this process'
// second 990.
func TestClassifyRecreatedNode(t *testing.T) {
	for _, tt := range []struct {
		name string
		made int64
		want Sample
	}{
		{"made before", 989, Sample{Value: 0.5, At: 990 * int64(time.Second)}},
		{"made then", 990, Sample{Value: 0.5, At: 990 * int64(time.Second)}},
		{"made after", 991, missing(NoSeries)},
		{"made now", 1000, missing(NoSeries)},
		{"made by a clock that is ahead", 1001, Sample{Value: 0.5, At: 990 * int64(time.Second)}},
	} {
		s := Resource{}
		var r reading
		r.note(source.Value, 0.5)
		r.note(source.Timestamp, 4990)
		if got := s.classify(&r, madeAt("node", time.Unix(tt.made, 0)), answered{evaluated: 5000, local: time.Unix(1000, 0)}); got != tt.want {
			t.Errorf("%s: sample is %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestClassifyAbsurdServerTimes checks that ages stay within the range of a time.Duration for any time of the server.
func TestClassifyAbsurdServerTimes(t *testing.T) {
	s := Resource{}
	for _, evaluated := range []float64{nan, inf, 1e300, 1e18} {
		var r reading
		r.note(source.Value, 0.5)
		r.note(source.Timestamp, 1)
		got := s.classify(&r, makeNode("node"), answered{evaluated: evaluated, local: start})
		if want := start.Add(-oldest * time.Second).UnixNano(); got.Missing != Present || got.At != want {
			t.Errorf("with a server's time of %v, the sample is %+v, want one taken at %d", evaluated, got, want)
		}
	}
}
