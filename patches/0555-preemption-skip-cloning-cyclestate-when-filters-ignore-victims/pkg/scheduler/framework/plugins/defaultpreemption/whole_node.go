// SPDX-License-Identifier: Apache-2.0

package defaultpreemption

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// knownNotToFit reports whether the filters have just rejected the node with all of its pods, so that they need not
// run again. An extender's rejection does not count.
func (pl *DefaultPreemption) knownNotToFit(state *framework.CycleState) bool {
	return state.RejectionsHold() && len(pl.fh.Extenders()) == 0
}
