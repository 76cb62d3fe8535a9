// SPDX-License-Identifier: Apache-2.0

package runtime

// SetLaterRequeueing makes preemption handle nodes without victims as later releases do.
func (f *frameworkImpl) SetLaterRequeueing() { f.laterRequeueing = true }

// LaterRequeueing reports whether SetLaterRequeueing was called.
func (f *frameworkImpl) LaterRequeueing() bool { return f.laterRequeueing }
