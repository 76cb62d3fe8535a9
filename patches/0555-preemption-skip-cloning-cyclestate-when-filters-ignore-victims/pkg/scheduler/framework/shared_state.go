// SPDX-License-Identifier: Apache-2.0

package framework

// Share returns a state that replaces this one while pods of a node are removed and added back and no plugin needs to
// be notified. It only contains the prepared data. Its clones are clones of the original state.
func (c *CycleState) Share() *CycleState {
	return &CycleState{storage: make(map[StateKey]StateData), prepared: c.prepared, shared: c}
}

// RejectionsHold reports whether the filters' rejections of nodes still hold for a state from Share: they only depend
// on the node and its pods, and on nothing that changes meanwhile.
func (c *CycleState) RejectionsHold() bool {
	return c.rejectionsHold
}

// SetRejectionsHold sets the result of RejectionsHold. The framework calls it when it shares a state.
func (c *CycleState) SetRejectionsHold(hold bool) {
	c.rejectionsHold = hold
}

// IsShared reports whether the state was returned by Share.
func (c *CycleState) IsShared() bool {
	return c != nil && c.shared != nil
}
