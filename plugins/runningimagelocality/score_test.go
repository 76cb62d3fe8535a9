// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"reflect"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const mebibyte = 1024 * 1024

func TestWorth(t *testing.T) {
	tests := []struct {
		name           string
		valuation      valuation
		size           int64
		running, nodes int
		want           int64
	}{
		{
			name: "no weights: size and spread are nothing to it",
			size: 1, running: 1, nodes: 1000, want: 1000000,
		},
		{
			name:      "all by size, 250 of 1,000 MiB: 1,000,000 × 250/1000",
			valuation: valuation{sizeWeight: 100}, size: 250 * mebibyte, running: 1, nodes: 10, want: 250000,
		},
		{
			name:      "half by size, 250 of 1,000 MiB: 1,000,000 × (1 - 0.5 + 0.5 × 0.25)",
			valuation: valuation{sizeWeight: 50}, size: 250 * mebibyte, running: 1, nodes: 10, want: 625000,
		},
		{
			name:      "all by size, the largest size: 1,000,000 × 1000/1000",
			valuation: valuation{sizeWeight: 100}, size: 1000 * mebibyte, running: 1, nodes: 10, want: 1000000,
		},
		{
			name:      "all by size, more than the largest size counts",
			valuation: valuation{sizeWeight: 100}, size: 5000 * mebibyte, running: 1, nodes: 10, want: 1000000,
		},
		{
			name:      "all by size, one byte: 1,000,000 × 1/1,048,576,000, less than a millionth, which is the least",
			valuation: valuation{sizeWeight: 100}, size: 1, running: 1, nodes: 10, want: 1,
		},
		{
			name:      "all by spread, 3 of 10 nodes: 1,000,000 × 3/10",
			valuation: valuation{spreadWeight: 100}, size: 1, running: 3, nodes: 10, want: 300000,
		},
		{
			name:      "a quarter by spread, 3 of 10 nodes: 1,000,000 × (1 - 0.25 + 0.25 × 0.3)",
			valuation: valuation{spreadWeight: 25}, size: 1, running: 3, nodes: 10, want: 825000,
		},
		{
			name:      "all by spread, all nodes: 1,000,000 × 10/10",
			valuation: valuation{spreadWeight: 100}, size: 1, running: 10, nodes: 10, want: 1000000,
		},
		{
			name:      "all by spread, one node of three: 333,333.3, rounded down",
			valuation: valuation{spreadWeight: 100}, size: 1, running: 1, nodes: 3, want: 333333,
		},
		{
			name:      "all by spread, the nodes not known yet",
			valuation: valuation{spreadWeight: 100}, size: 1, running: 3, nodes: 0, want: 1000000,
		},
		{
			name:      "all by spread, pods of a node that is gone",
			valuation: valuation{spreadWeight: 100}, size: 1, running: 3, nodes: 2, want: 1000000,
		},
		{
			name:      "both by half, 500 MiB, 1 of 4 nodes: 1,000,000 × (1 - 0.5 + 0.5 × 0.5) × (1 - 0.5 + 0.5 × 0.25) = 1,000,000 × 0.75 × 0.625",
			valuation: valuation{sizeWeight: 50, spreadWeight: 50}, size: 500 * mebibyte, running: 1, nodes: 4, want: 468750,
		},
		{
			name:      "both by all, the largest numbers that a cluster has",
			valuation: valuation{sizeWeight: 100, spreadWeight: 100}, size: 1000*mebibyte - 1, running: 14999, nodes: 15000, want: 999932,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.valuation.worth(tt.size, tt.running, tt.nodes); got != tt.want {
				t.Errorf("worth(%d, %d, %d) = %d, want %d", tt.size, tt.running, tt.nodes, got, tt.want)
			}
		})
	}
}

func TestNormaliseScores(t *testing.T) {
	tests := []struct {
		name      string
		scores    []int64
		bestWorth int64
		want      []int64
	}{
		{name: "all 0 stay 0", scores: []int64{0, 0}, bestWorth: fullWorth, want: []int64{0, 0}},
		{name: "no nodes", bestWorth: fullWorth},
		{name: "one match: 100 × 1/1 × 1", scores: []int64{0, 1000000}, bestWorth: fullWorth, want: []int64{0, 100}},
		{
			name: "1, 2 and 3 matches: 100 × 1/3 and 100 × 2/3, rounded down, and 100 × 3/3", scores: []int64{1000000, 2000000, 3000000},
			bestWorth: fullWorth, want: []int64{33, 66, 100},
		},
		{
			name: "one match worth a quarter: 100 × 1/1 × 0.25", scores: []int64{250000, 0}, bestWorth: 250000, want: []int64{25, 0},
		},
		{
			name:   "a full match and one worth a hundredth: 100 × 1.01/1.01 × 1, 100 × 1/1.01 = 99.0, 100 × 0.01/1.01 = 0.99, and at least 1",
			scores: []int64{1010000, 1000000, 10000, 0}, bestWorth: fullWorth, want: []int64{100, 99, 1, 0},
		},
		{
			name: "the largest scores there are", scores: []int64{1<<31 - 1, 1 << 30}, bestWorth: fullWorth, want: []int64{100, 50},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var scores framework.NodeScoreList
			for _, score := range tt.scores {
				scores = append(scores, framework.NodeScore{Score: score})
			}
			normaliseScores(scores, tt.bestWorth)
			var got []int64
			for i := range scores {
				got = append(got, scores[i].Score)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
