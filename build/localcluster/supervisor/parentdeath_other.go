// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package supervisor

import "syscall"

// dieWithParent does nothing where the kernel has no parent-death signal: after a kill -9 of the parent the children go
// on, and, as they hold the lock of their folder, the next run leaves both alone. Ctrl-C ends them everywhere.
func dieWithParent(*syscall.SysProcAttr) {}
