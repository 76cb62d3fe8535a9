// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import "testing"

func TestNearness(t *testing.T) {
	costs := []int64{0, 10, 50}
	tests := []struct {
		name string
		// at is the weight of the peers in the node's host, zone and region; -1 if the node is in none of that level.
		at     []int64
		weight int64
		want   int64
	}{
		{name: "no peers", at: []int64{0, 0, 0}, weight: 0, want: 100},
		{name: "all on the host", at: []int64{7, 7, 7}, weight: 7, want: 100},
		{name: "all in the zone, none on the host: 100 - 10", at: []int64{0, 7, 7}, weight: 7, want: 90},
		{name: "no common domain: 100 - 100", at: []int64{0, 0, 0}, weight: 7, want: 0},
		{name: "one on the host, one in the zone, two in the region: 100 - (0 + 10 + 2 × 50) / 4 = 72.5", at: []int64{1, 2, 4}, weight: 4, want: 72},
		{name: "half are nowhere near: 100 - (0 + 100) / 2", at: []int64{1, 1, 1}, weight: 2, want: 50},
		{name: "a node without a zone sees its peers in the region: 100 - (1 × 0 + 1 × 50) / 2", at: []int64{1, -1, 2}, weight: 2, want: 75},
		{name: "a node in no domain", at: []int64{-1, -1, -1}, weight: 2, want: 0},
		{name: "a zone that has fewer of the peers than the host takes none back: 100 - (0 + 50) / 4 = 87.5", at: []int64{3, 1, 4}, weight: 4, want: 87},
		{name: "a peer in a thousand is less than a point", at: []int64{1, 1000, 1000}, weight: 1000, want: 90},
		{name: "ten thousand peers with the greatest weight", at: []int64{0, 0, 1000000}, weight: 1000000, want: 50},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var numbers []int32
			sums := []int64{-1, -1}
			for _, at := range tt.at {
				if at < 0 {
					numbers = append(numbers, none)
					continue
				}
				numbers, sums = append(numbers, int32(len(sums))), append(sums, at)
			}
			if got := nearness(numbers, costs, sums, tt.weight); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestCombine(t *testing.T) {
	tests := []struct {
		name                   string
		nearness, spreadWeight int64
		pods                   int32
		want                   int64
	}{
		{name: "nearness alone", nearness: 72, pods: 9, spreadWeight: 0, want: 72},
		{name: "spread alone, an empty node: 100 / 1", nearness: 0, pods: 0, spreadWeight: 100, want: 100},
		{name: "a quarter for spread: (90 × 75 + 50 × 25) / 100 = 80", nearness: 90, pods: 1, spreadWeight: 25, want: 80},
		{name: "a node that is far is better than a hot one", nearness: 0, pods: 0, spreadWeight: 0, want: 1},
		{name: "so is one with very many pods: 100 / 501 = 0", nearness: 0, pods: 500, spreadWeight: 100, want: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := combine(tt.nearness, spread(tt.pods), tt.spreadWeight); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
