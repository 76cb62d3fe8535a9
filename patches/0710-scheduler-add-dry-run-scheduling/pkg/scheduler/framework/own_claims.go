// SPDX-License-Identifier: Apache-2.0

package framework

// WithOwnClaims returns a copy for dry runs, which change clones of it. Clone shares the counts of claims in use, so a
// pod that is added to a clone or removed from it would count for the next scheduling cycles.
func (n *NodeInfo) WithOwnClaims() *NodeInfo {
	own := *n
	own.PVCRefCounts = make(map[string]int, len(n.PVCRefCounts))
	for claim, count := range n.PVCRefCounts {
		own.PVCRefCounts[claim] = count
	}
	return &own
}
