// SPDX-License-Identifier: Apache-2.0

package parallelize

// Parallelism returns the number of workers.
func (p Parallelizer) Parallelism() int {
	return p.parallelism
}
