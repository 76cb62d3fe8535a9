// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestIs(t *testing.T) {
	state := framework.NewCycleState()
	if Is(state) || Is(nil) {
		t.Error("an attempt is taken for a question")
	}
	Mark(state)
	if !Is(state) || !Is(state.Clone()) {
		t.Error("a question is taken for an attempt")
	}
}
