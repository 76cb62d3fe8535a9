// SPDX-License-Identifier: Apache-2.0

package pseudorandom

import (
	"fmt"
	"math"
	"math/bits"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

// TestKeyAndBelow compares numbers with those of earlier releases: with other numbers, no earlier run can be replayed.
func TestKeyAndBelow(t *testing.T) {
	tests := []struct {
		name string
		got  uint64
		want uint64
	}{
		{name: "a seed alone", got: Key(7), want: 7},
		{name: "seed 0", got: Key(0, "node-1"), want: 0xe4d8527e64c1eb53},
		{name: "a negative seed", got: Key(-1, "node-1"), want: 0xf60a81a236afccd7},
		{name: "three parts", got: Key(42, "8b9a1c44-5a35-4e5f-9d5e-0c5d1f3b7f11", "1", "node-1"), want: 0xa5605d10c3b1864d},
		{name: "that key below 101", got: Below(Key(42, "8b9a1c44-5a35-4e5f-9d5e-0c5d1f3b7f11", "1", "node-1"), 101), want: 65},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: got %#x, want %#x", tt.name, tt.got, tt.want)
		}
	}
}

func TestKeyDistinguishesParts(t *testing.T) {
	lists := [][]string{
		nil, {""}, {"", ""}, {"abc"}, {"ab", "c"}, {"a", "bc"}, {"a", "b", "c"}, {"c", "b", "a"}, {"abc", ""}, {"", "abc"},
		{"abc\x00"}, {"abc\x00\x00"}, {"abcdefgh"}, {"abcdefgh\x00"}, {"abcdefg", "h"},
	}
	seen := map[uint64][]string{}
	for _, parts := range lists {
		key := Key(1, parts...)
		if other, found := seen[key]; found {
			t.Errorf("%q and %q have the same key %#x", parts, other, key)
		}
		seen[key] = parts
	}
	if Key(1, "a", "b") != Mix(Key(1, "a"), "b") {
		t.Error("Mix does not add a part to a key")
	}
}

func TestBelow(t *testing.T) {
	tests := []struct {
		name         string
		key, n, want uint64
	}{
		{name: "n is 0", key: math.MaxUint64, n: 0, want: 0},
		{name: "n is 1", key: math.MaxUint64, n: 1, want: 0},
		{name: "the lowest key", key: 0, n: 101, want: 0},
		{name: "the highest key: 101 - 101/2⁶⁴, rounded down", key: math.MaxUint64, n: 101, want: 100},
		{name: "the middle key: half of 100", key: 1 << 63, n: 100, want: 50},
		{name: "the key before it", key: 1<<63 - 1, n: 100, want: 49},
		{name: "the whole range: half of 2⁶⁴-1, rounded down", key: 1 << 63, n: math.MaxUint64, want: 1<<63 - 1},
	}
	for _, tt := range tests {
		if got := Below(tt.key, tt.n); got != tt.want {
			t.Errorf("%s: Below(%#x, %d) = %d, want %d", tt.name, tt.key, tt.n, got, tt.want)
		}
	}
}

// TestBelowIsUniform makes 101,000 numbers below 101, from names and seeds that are as similar as those of a cluster.
// If the numbers are equally likely, the chi-square of the counts has 100 degrees of freedom: it is below 61.9 once in
// a thousand times, and above 149.4 as often. The numbers are the same in each run, so the test passes always or never.
func TestBelowIsUniform(t *testing.T) {
	const sides, each = 101, 1000
	tests := []struct {
		name string
		draw func(i int) uint64
	}{
		{name: "numbered nodes", draw: func(i int) uint64 { return Key(0, "uid", "1", fmt.Sprintf("node-%d", i)) }},
		{name: "numbered nodes with a domain", draw: func(i int) uint64 { return Key(1, "uid", "1", fmt.Sprintf("%06d.nodes.example.com", i)) }},
		{name: "attempts", draw: func(i int) uint64 { return Key(0, "uid", fmt.Sprint(i), "node-1") }},
		{name: "pods", draw: func(i int) uint64 { return Key(0, fmt.Sprintf("8b9a1c44-5a35-4e5f-9d5e-%012d", i), "1", "node-1") }},
		{name: "seeds", draw: func(i int) uint64 { return Key(int64(i), "uid", "1", "node-1") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var counts [sides]int
			for i := 0; i < sides*each; i++ {
				counts[Below(tt.draw(i), sides)]++
			}
			chiSquare := 0.0
			for _, count := range counts {
				chiSquare += float64((count-each)*(count-each)) / each
			}
			if chiSquare < 61.9 || chiSquare > 149.4 {
				t.Errorf("chi-square of the sides is %.1f, want 61.9 to 149.4; counts %v", chiSquare, counts)
			}
		})
	}
}

// TestNeighboursAreIndependent compares each key with the next one, whose seed or name differs by one: half of the 64
// bits must differ. The sum over 10,000 pairs has mean 320,000 and standard deviation √(10,000 × 64 / 4) = 400; four of
// those are allowed. Each bit alone differs in 5,000 pairs ± 50; five of those are allowed, because there are 64 bits.
func TestNeighboursAreIndependent(t *testing.T) {
	const pairs = 10000
	tests := []struct {
		name string
		key  func(i int) uint64
	}{
		{name: "nodes", key: func(i int) uint64 { return Key(0, "uid", "1", fmt.Sprintf("node-%d", i)) }},
		{name: "attempts", key: func(i int) uint64 { return Key(0, "uid", fmt.Sprint(i)) }},
		{name: "seeds", key: func(i int) uint64 { return Key(int64(i), "uid") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sum := 0
			var differ [64]int
			for i := 0; i < pairs; i++ {
				difference := tt.key(i) ^ tt.key(i+1)
				sum += bits.OnesCount64(difference)
				for bit := range differ {
					differ[bit] += int(difference >> uint(bit) & 1)
				}
			}
			if sum < 320000-4*400 || sum > 320000+4*400 {
				t.Errorf("neighbours differ in %d bits altogether, want 320000 ± 1600", sum)
			}
			for bit, count := range differ {
				if count < 5000-5*50 || count > 5000+5*50 {
					t.Errorf("bit %d differs in %d pairs, want 5000 ± 250", bit, count)
				}
			}
		})
	}
}

func TestMixAllocatesNothing(t *testing.T) {
	key, name := Key(1, "uid", "1"), "node-1.example.com"
	plugintest.ExpectAllocations(t, "Mix", 0, func() { key = Mix(key, name) })
}

func BenchmarkMix(b *testing.B) {
	b.ReportAllocs()
	key := Key(1, "uid", "1")
	for i := 0; i < b.N; i++ {
		key ^= Below(Mix(key, "node-1234.example.com"), 101)
	}
}
