// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"strings"
	"testing"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestALeaderThatBindsNothingIsNamedWithWhatToDoThere(t *testing.T) {
	tool := toolFor(t, swaptest.Stock)
	what, next := nextstep.Split(tool.undoneError(&host.Failure{Reason: "it did not bind", Leader: "cp2_1234"}, nil, true), "")
	if !strings.Contains(what, "cp2_1234 holds the lease but binds no pods") || strings.Contains(what, "the new scheduler does not work") {
		t.Error(what)
	}
	if !strings.HasPrefix(next, "on cp2: kube-scheduler-swap rollback") {
		t.Error(next)
	}
	if got := tool.undoneError(&host.Failure{Reason: "it did not bind"}, nil, true).Error(); !strings.Contains(got, "the new scheduler does not work") {
		t.Error(got)
	}
}
