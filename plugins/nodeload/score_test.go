// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"reflect"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

func TestPoints(t *testing.T) {
	const least, target, risky = config.NodeLoadLeastUsed, config.NodeLoadTargetUtilization, config.NodeLoadRisk
	for _, test := range []struct {
		name      string
		resource  resource
		load      float64
		variation float64
		want      float64
	}{
		{"idle", resource{strategy: least}, 0, 0, 100},
		{"(1 - 0.305) x 100", resource{strategy: least}, 0.305, 0, 69.5},
		{"full", resource{strategy: least}, 1, 0, 0},
		{"twice as much as it has: (1 / 2 - 1) x 100", resource{strategy: least}, 2, 0, -50},

		{"idle: 60 x 0 / 40 + 40", resource{strategy: target, target: 40}, 0, 0, 40},
		{"60 x 33 / 40 + 40", resource{strategy: target, target: 40}, 0.33, 0, 89.5},
		{"at the target", resource{strategy: target, target: 40}, 0.4, 0, 100},
		{"at the target, added up of 0.1 and 0.2", resource{strategy: target, target: 30}, sum(0.1, 0.2), 0, 100},
		{"just above: 40 x (100 - 43) / 60", resource{strategy: target, target: 40}, 0.43, 0, 38},
		{"full: 40 x 0 / 60", resource{strategy: target, target: 40}, 1, 0, 0},
		{"twice as much as it has", resource{strategy: target, target: 40}, 2, 0, -50},

		{"steady and idle", resource{strategy: risky}, 0, 0, 100},
		{"(1 - (0.5 + 0.11) / 2) x 100", resource{strategy: risky}, 0.5, 0.11, 69.5},
		{"twice as much as it has: (1 - (2 - 1 / 2 + 0.2) / 2) x 100", resource{strategy: risky}, 2, 0.2, 15},
		{"full, and as unsteady as can be", resource{strategy: risky}, 1, 1, 0},
	} {
		t.Run(string(test.resource.strategy)+": "+test.name, func(t *testing.T) {
			if got := test.resource.points(test.load, test.variation); math.Abs(got-test.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// sum adds at run time; constant expressions would be exact.
func sum(a, b float64) float64 { return a + b }

func TestVariation(t *testing.T) {
	for _, test := range []struct {
		name                                 string
		deviation, sensitivity, margin, want float64
	}{
		{"as it is", 0.25, 1, 1, 0.25},
		{"the root of 0.25", 0.25, 2, 1, 0.5},
		{"0.5 squared", 0.5, 0.5, 1, 0.25},
		{"the root of 0.25 x 1.5", 0.25, 2, 1.5, 0.75},
		{"the root of 0.25 x 3, no more than 1", 0.25, 2, 3, 1},
		{"no more than 1 before the margin", 4, 1, 0.5, 0.5},
		{"no margin", 0.5, 1, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := variation(test.deviation, test.sensitivity, test.margin); math.Abs(got-test.want) > 1e-12 {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestExceeds(t *testing.T) {
	for _, test := range []struct {
		load, threshold float64
		want            bool
	}{
		{sum(0.1, 0.2), 0.3, false}, // 0.30000000000000004
		{sum(0.7, 0.1), 0.8, false},
		{0.8, float64(80) / 100, false},
		{0.80001, 0.8, true},
		{0.79999, 0.8, false},
	} {
		if got := exceeds(test.load, test.threshold); got != test.want {
			t.Errorf("%v above %v: got %v, want %v", test.load, test.threshold, got, test.want)
		}
	}
}

func TestMean(t *testing.T) {
	const least, risky = config.NodeLoadLeastUsed, config.NodeLoadRisk
	type part struct {
		strategy config.NodeLoadStrategy
		weight   int64
		points   float64
	}
	for _, test := range []struct {
		name  string
		parts []part
		want  float64
	}{
		{"nothing", nil, 0},
		{"one", []part{{least, 3, 70}}, 70},
		{"(2 x 70 + 1 x 41) / 3", []part{{least, 2, 70}, {least, 1, 41}}, 60.3333333},
		{"the riskiest of risks", []part{{risky, 1, 70}, {risky, 1, 30}, {risky, 1, 50}}, 30},
		{"(1 x 90 + (1 + 2) x 30) / 4", []part{{least, 1, 90}, {risky, 1, 30}, {risky, 2, 60}}, 45},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m mean
			for _, p := range test.parts {
				m.add(p.strategy, p.weight, p.points)
			}
			if got := float64(m.score()) / point; got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestRound includes loads that differ by less than a point.
func TestRound(t *testing.T) {
	for _, test := range []struct {
		name  string
		loads []float64
		want  []int64
	}{
		{"none", nil, nil},
		{"one", []float64{0.3}, []int64{70}},
		{"69.5 is rounded down", []float64{0.305}, []int64{69}},
		{"(1 - 0.9) x 100 is 9.999... in floating point", []float64{0.9}, []int64{10}},
		{"equal ones stay equal", []float64{0.3, 0.3, 0.5}, []int64{70, 70, 50}},
		{"added up in another order", []float64{sum(sum(0.1, 0.2), 0.3), sum(0.1, sum(0.2, 0.3))}, []int64{40, 40}},
		{"of those with 70 points the best keeps them", []float64{0.3, 0.2999, 0.291}, []int64{69, 69, 70}},
		{"others need no order", []float64{0.105, 0.3, 0.2999}, []int64{89, 70, 70}},
		{"there is nothing below nothing", []float64{1, 0.999}, []int64{0, 0}},
		{"below it, all move up by what the worst lacks: 20 points", []float64{1.25, 1, 0.5}, []int64{0, 20, 70}},
		{"no more than 100 points: 150 become 100", []float64{2, 0.5, 0}, []int64{0, 67, 100}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var scores framework.NodeScoreList
			for _, load := range test.loads {
				var m mean
				m.add(config.NodeLoadLeastUsed, 1, leastUsed(load))
				scores = append(scores, framework.NodeScore{Score: m.score()})
			}
			round(scores, true)
			var got []int64
			for _, score := range scores {
				got = append(got, score.Score)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
