// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// TestClassification has answers that were evaluated at the server's second 5,000, which was this process' second
// 1,000: a raw sample of the server's second 4,990 is 10 s old, and was taken at this process' second 990.
func TestClassification(t *testing.T) {
	at := answered{evaluated: 5000, local: time.Unix(1000, 0)}
	type rows []row
	of := func(kind source.Kind, value float64) row { return row{kind: kind, value: value} }
	value := func(v float64) row { return of(source.Value, v) }
	stamp := of(source.Timestamp, 4990)
	deviation := func(v float64) row { return of(source.Deviation, v) }
	const second = int64(time.Second)
	sample := func(v float64, at int64) measured.Sample { return measured.Sample{Value: v, At: at * second} }
	varying := func(v, d float64) measured.Sample {
		return measured.Sample{Value: v, Deviation: d, HasDeviation: true, At: 990 * second}
	}
	type capacity = func(*v1.Node) (float64, bool)
	cores := func(n float64, known bool) capacity { return func(*v1.Node) (float64, bool) { return n, known } }

	tests := []struct {
		name     string
		unit     config.NodeLoadUnit
		capacity capacity
		rows     rows
		want     measured.Sample
	}{
		{"a value and its time", "Ratio", nil, rows{value(0.5), stamp}, sample(0.5, 990)},
		{"the time first", "Ratio", nil, rows{stamp, value(0.5)}, sample(0.5, 990)},
		{"with a deviation", "Ratio", nil, rows{value(0.5), stamp, deviation(0.1)}, varying(0.5, 0.1)},
		{"zero is a value", "Ratio", nil, rows{value(0), stamp}, sample(0, 990)},
		{"negative zero is zero", "Ratio", nil, rows{value(math.Copysign(0, -1)), stamp}, sample(0, 990)},
		{"no rows", "Ratio", nil, nil, missing(measured.NoSeries)},
		{"a time without a value", "Ratio", nil, rows{stamp, deviation(0.1)}, missing(measured.NoSeries)},
		{"two values", "Ratio", nil, rows{value(0.5), value(0.5), stamp}, missing(measured.Ambiguous)},
		{"two times", "Ratio", nil, rows{value(0.5), stamp, stamp}, missing(measured.Ambiguous)},
		{"two values of which one is not a number", "Ratio", nil, rows{value(0.5), value(nan), stamp}, missing(measured.Ambiguous)},
		{"not a number", "Ratio", nil, rows{value(nan), stamp}, missing(measured.NotANumber)},
		{"infinite", "Ratio", nil, rows{value(inf), stamp}, missing(measured.Infinite)},
		{"infinitely negative", "Ratio", nil, rows{value(-inf), stamp}, missing(measured.Infinite)},
		{"negative", "Ratio", nil, rows{value(-5035), stamp}, missing(measured.Negative)},
		{"just negative", "Ratio", nil, rows{value(-1e-12), stamp}, missing(measured.Negative)},

		{"a ratio of 1.5", "Ratio", nil, rows{value(1.5), stamp}, sample(1.5, 990)},
		{"a ratio above 1.5", "Ratio", nil, rows{value(1.51), stamp}, missing(measured.Absurd)},
		{"150 percent", "Percent", nil, rows{value(150), stamp}, sample(150, 990)},
		{"more than 150 percent", "Percent", nil, rows{value(150.1), stamp}, missing(measured.Absurd)},
		{"6 of 4 cores", "Absolute", cores(4, true), rows{value(6), stamp}, sample(6, 990)},
		{"more than 6 of 4 cores", "Absolute", cores(4, true), rows{value(6.01), stamp}, missing(measured.Absurd)},
		{"of unknown capacity", "Absolute", cores(4, false), rows{value(1), stamp}, missing(measured.NoCapacity)},
		{"of no capacity", "Absolute", cores(0, true), rows{value(0), stamp}, missing(measured.NoCapacity)},
		{"a ratio needs no capacity", "Ratio", cores(0, false), rows{value(1), stamp}, sample(1, 990)},

		{"no time", "Ratio", nil, rows{value(0.5)}, missing(measured.NoTimestamp)},
		{"a time of zero", "Ratio", nil, rows{value(0.5), of(source.Timestamp, 0)}, missing(measured.NoTimestamp)},
		{"a time that is not a number", "Ratio", nil, rows{value(0.5), of(source.Timestamp, nan)}, missing(measured.NoTimestamp)},
		{"an infinite time", "Ratio", nil, rows{value(0.5), of(source.Timestamp, inf)}, missing(measured.NoTimestamp)},
		{"10 s in the future: now", "Ratio", nil, rows{value(0.5), of(source.Timestamp, 5010)}, sample(0.5, 1000)},
		{"further in the future", "Ratio", nil, rows{value(0.5), of(source.Timestamp, 5010.5)}, missing(measured.Future)},
		{"old ones stay as they are", "Ratio", nil, rows{value(0.5), of(source.Timestamp, 4000)}, sample(0.5, 0)},

		{"a deviation that is not a number", "Ratio", nil, rows{value(0.5), stamp, deviation(nan)}, sample(0.5, 990)},
		{"a negative deviation", "Ratio", nil, rows{value(0.5), stamp, deviation(-1)}, sample(0.5, 990)},
		{"an infinite deviation", "Ratio", nil, rows{value(0.5), stamp, deviation(inf)}, sample(0.5, 990)},
		{"two deviations", "Ratio", nil, rows{value(0.5), stamp, deviation(0.1), deviation(0.1)}, sample(0.5, 990)},
		{"a deviation in percent", "Percent", nil, rows{value(50), stamp, deviation(10)}, varying(50, 10)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := slot{Resource: Resource{Unit: tt.unit}, capacity: tt.capacity}
			var r reading
			for _, row := range tt.rows {
				r.note(row.kind, row.value)
			}
			if got := s.classify(&r, makeNode("node"), at); got != tt.want {
				t.Errorf("sample is %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestANodeIsNotMeasuredBeforeItWasMade: what is older is about another node of that name or address. At the local
// second 1,000 the sample is of the second 990.
func TestANodeIsNotMeasuredBeforeItWasMade(t *testing.T) {
	for _, tt := range []struct {
		name string
		made int64
		want measured.Sample
	}{
		{"made before", 989, measured.Sample{Value: 0.5, At: 990 * int64(time.Second)}},
		{"made then", 990, measured.Sample{Value: 0.5, At: 990 * int64(time.Second)}},
		{"made after", 991, missing(measured.NoSeries)},
		{"made now", 1000, missing(measured.NoSeries)},
		{"made by a clock that is ahead", 1001, measured.Sample{Value: 0.5, At: 990 * int64(time.Second)}},
	} {
		s := slot{Resource: Resource{Unit: "Ratio"}}
		r := reading{value: 0.5, timestamp: 4990, seen: hasValue | hasTimestamp}
		if got := s.classify(&r, madeAt("node", time.Unix(tt.made, 0)), answered{evaluated: 5000, local: time.Unix(1000, 0)}); got != tt.want {
			t.Errorf("%s: sample is %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestAbsurdServerTimes: whatever the server takes for the time, ages stay within what can be said.
func TestAbsurdServerTimes(t *testing.T) {
	s := slot{Resource: Resource{Unit: "Ratio"}}
	for _, evaluated := range []float64{nan, inf, 1e300, 1e18} {
		r := reading{value: 0.5, timestamp: 1, seen: hasValue | hasTimestamp}
		got := s.classify(&r, makeNode("node"), answered{evaluated: evaluated, local: start})
		if want := start.Add(-oldest * time.Second).UnixNano(); got.Missing != measured.Present || got.At != want {
			t.Errorf("with a server's time of %v, the sample is %+v, want one taken at %d", evaluated, got, want)
		}
	}
}
