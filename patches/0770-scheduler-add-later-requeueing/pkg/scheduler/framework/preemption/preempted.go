// SPDX-License-Identifier: Apache-2.0

package preemption

// Preempted is the message with which a victim that waits at Permit is rejected.
const Preempted = "preempted"
