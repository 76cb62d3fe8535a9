// SPDX-License-Identifier: Apache-2.0

package supervisor

import "syscall"

// dieWithParent makes the kernel kill the child when the thread that forked it ends; see forker. Go checks in the child
// that the parent did not end between fork and this request.
func dieWithParent(attributes *syscall.SysProcAttr) {
	attributes.Pdeathsig = syscall.SIGKILL
}
