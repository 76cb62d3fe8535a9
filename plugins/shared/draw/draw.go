// SPDX-License-Identifier: Apache-2.0

// Package draw makes draws that look random and can be repeated: they depend on a seed and on names alone, so neither
// the order of the calls, nor their parallelism, nor a restart changes them.
//
// The draws come from xxHash's XXH64, https://xxhash.com, whose output looks random for similar inputs too, such as
// node-1 and node-2. They are not secrets: who knows the seed knows them.
package draw

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Key makes a key of a seed and of parts, in order. Different lists of parts make different keys: ("a", "bc") is not
// ("ab", "c"). Key(seed, a, b) is Mix(Key(seed, a), b), so a key can be made once and be mixed with one more part
// often.
func Key(seed int64, parts ...string) uint64 {
	key := uint64(seed)
	for _, part := range parts {
		key = Mix(key, part)
	}
	return key
}

// Mix makes a key of a key and of one more part. It is itself a draw: uniform in all 64 bits. It allocates nothing.
func Mix(key uint64, part string) uint64 {
	var before [8]byte
	binary.LittleEndian.PutUint64(before[:], key)
	var digest xxhash.Digest
	digest.Reset()
	digest.Write(before[:])
	digest.WriteString(part)
	return digest.Sum64()
}

// Below makes a number of a key, uniform in [0, n); 0 if n is 0. It is the high word of key × n, from which each number
// is off by at most one key in 2⁶⁴/n: D. Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29(1),
// 2019.
func Below(key, n uint64) uint64 {
	high, _ := bits.Mul64(key, n)
	return high
}
