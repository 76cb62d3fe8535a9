// SPDX-License-Identifier: Apache-2.0

package tainttoleration

// shown returns the value of a taint for the status of a pod, which users of the pod's namespace can read. The value may
// be the name of another tenant.
func shown(value string) string {
	if value == "" {
		return value
	}
	return "(not shown)"
}
