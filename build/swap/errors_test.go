// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"strings"
	"testing"

	"kube-scheduler-fork/build/swap/host"
)

func TestALeaderThatBindsNothingIsNamedWithWhatToDoThere(t *testing.T) {
	undone := &UndoneError{Reason: &host.Failure{Reason: "it did not bind", Leader: "cp2_1234"}}
	if got := undone.Error(); !strings.Contains(got, "cp2_1234 holds the lease but binds no pods") || strings.Contains(got, "the new scheduler does not work") {
		t.Error(got)
	}
	if got := undone.next(); !strings.HasPrefix(got, "on cp2: kube-scheduler-swap rollback") {
		t.Error(got)
	}
	if got := (&UndoneError{Reason: &host.Failure{Reason: "it did not bind"}}).Error(); !strings.Contains(got, "the new scheduler does not work") {
		t.Error(got)
	}
}
