// SPDX-License-Identifier: Apache-2.0

package datalocality

import "testing"

func TestScore(t *testing.T) {
	three := []int64{100, 80, 50}
	const a, b, c = set(1), set(2), set(4)
	tests := []struct {
		name string
		// held are the datasets of the domains, the nearest first.
		held     []set
		bytes    []int64
		percents []int64
		at       []int64
		want     int64
	}{
		{name: "nothing is known", percents: three, at: []int64{0, 0, 0}, want: 0},
		{name: "nothing is near", bytes: []int64{7}, percents: three, at: []int64{0, 0, 0}, want: 0},
		{name: "all on the node: 100 × 7/7", held: []set{a, a, a}, bytes: []int64{7}, percents: three, at: []int64{7, 0, 0}, want: 100},
		{name: "all in the rack: 80 × 7/7", held: []set{0, a, a}, bytes: []int64{7}, percents: three, at: []int64{0, 7, 0}, want: 80},
		{
			name: "one on the node, one in the rack, one in the zone: (100 × 1 + 80 × 2 + 50 × 3) / 6 = 68.3",
			held: []set{a, a | b, a | b | c}, bytes: []int64{1, 2, 3}, percents: three, at: []int64{1, 2, 3}, want: 68,
		},
		{
			name: "one on the node, one far away: 100 × 1/4",
			held: []set{a, a, a}, bytes: []int64{1, 3}, percents: three, at: []int64{1, 0, 0}, want: 25,
		},
		{
			name: "the rack reaches out of the zone, and counts: (80 × 1 + 50 × 1) / 2",
			held: []set{0, a, b}, bytes: []int64{1, 1}, percents: three, at: []int64{0, 1, 1}, want: 65,
		},
		{name: "a level that counts nothing", held: []set{0, a}, bytes: []int64{5}, percents: []int64{100, 0}, at: []int64{0, 5}, want: 0},
		{name: "a share below one percent is nothing: 100 × 1/101", held: []set{a}, bytes: []int64{1, 100}, percents: three, at: []int64{1}, want: 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var held [maxLevels]set
			copy(held[:], tt.held)
			at := nearest(&held, tt.bytes)
			for level := range tt.at {
				if at[level] != tt.at[level] {
					t.Errorf("level %d has %d bytes, want %d", level, at[level], tt.at[level])
				}
			}
			if got := score(&at, tt.percents, all(len(tt.bytes)).sum(tt.bytes)); got != tt.want {
				t.Errorf("the score is %d, want %d", got, tt.want)
			}
		})
	}
}

// TestLargestScore has 64 datasets of the most bytes: 64 × 2⁵⁰ × 100.
func TestLargestScore(t *testing.T) {
	bytes := make([]int64, maxReads)
	for i := range bytes {
		bytes[i] = maxRead
	}
	held := [maxLevels]set{all(maxReads)}
	at := nearest(&held, bytes)
	if got := score(&at, []int64{100, 50}, all(maxReads).sum(bytes)); got != 100 {
		t.Errorf("all on the node scores %d, want 100", got)
	}
	held = [maxLevels]set{all(maxReads / 2), all(maxReads)}
	at = nearest(&held, bytes)
	if got := score(&at, []int64{100, 50}, all(maxReads).sum(bytes)); got != 75 {
		t.Errorf("half on the node and half in the zone scores %d, want 75", got)
	}
}
