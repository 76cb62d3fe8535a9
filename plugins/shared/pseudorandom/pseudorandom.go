// SPDX-License-Identifier: Apache-2.0

// Package pseudorandom makes numbers that look random and can be repeated: they depend only on a seed and on names, so
// neither the order of the calls, nor their parallelism, nor a restart changes them.
//
// The numbers come from xxHash's XXH64, https://xxhash.com, whose output looks random even for similar inputs, such as
// node-1 and node-2. They are not secret: anyone with the seed can compute them.
package pseudorandom

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Key returns a key made from a seed and from parts, in order. Different lists of parts make different keys: ("a",
// "bc") is not ("ab", "c"). Key(seed, a, b) is Mix(Key(seed, a), b), so one key can be mixed with many different parts.
func Key(seed int64, parts ...string) uint64 {
	key := uint64(seed)
	for _, part := range parts {
		key = Mix(key, part)
	}
	return key
}

// Mix returns a key made from a key and one more part. The key is itself a pseudorandom number, uniform in all 64 bits.
// Mix does not allocate.
func Mix(key uint64, part string) uint64 {
	var before [8]byte
	binary.LittleEndian.PutUint64(before[:], key)
	var digest xxhash.Digest
	digest.Reset()
	digest.Write(before[:])
	digest.WriteString(part)
	return digest.Sum64()
}

// Below returns a number made from a key, uniform in [0, n), or 0 if n is 0. It is the high word of key × n, so each
// number has at most one key in 2⁶⁴/n too many: D. Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS
// 29(1), 2019.
func Below(key, n uint64) uint64 {
	high, _ := bits.Mul64(key, n)
	return high
}
