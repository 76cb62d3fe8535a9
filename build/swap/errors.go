// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/host"
)

// undoneError returns the error for a change that failed and was undone. reason is why the new scheduler does not count
// as working; undo is the error from restoring the old manifest, and restored reports whether at least its file is.
func (t *Tool) undoneError(reason, undo error, restored bool) error {
	leader := host.LeaderOf(reason)
	switch {
	case undo == nil && leader != "":
		return nextstep.With(fmt.Errorf("%w\nthe old one runs again", blame(reason)), "%s", atLeader(leader))
	case undo == nil:
		return nextstep.With(fmt.Errorf("%w\nthe old one runs again", blame(reason)), "fix the problem above, then run this again")
	case !restored:
		return nextstep.With(fmt.Errorf("%w\nthe old manifest could NOT be restored: %w", blame(reason), undo),
			"fix that, then cp %s %s; kube-scheduler-swap status", t.state.Undo(), t.manifest)
	}
	return nextstep.With(fmt.Errorf("%w\nthe old manifest is restored, but its scheduler was not confirmed to work: %w", blame(reason), undo),
		"kube-scheduler-swap status; journalctl -u kubelet; kube-scheduler-swap rollback")
}

// stuckError returns the error for a new scheduler that does not work when there is no working one to restore. saved is
// the path of the earlier manifest; empty if that manifest was from an unfinished run.
func stuckError(reason error, saved string) error {
	text, next := "", "fix the problem above, then run this again; or kube-scheduler-swap rollback"
	if saved != "" {
		text = "; the previous manifest is kept as " + saved
	}
	if leader := host.LeaderOf(reason); leader != "" {
		next = atLeader(leader)
	}
	return nextstep.With(fmt.Errorf("%w\nthe previous one did not work before this run either, so the new manifest stays%s",
		blame(reason), text), "%s", next)
}

// blame returns which scheduler does not work: the new one, or the current leader on another node.
func blame(reason error) error {
	if leader := host.LeaderOf(reason); leader != "" {
		return fmt.Errorf("%s holds the lease but binds no pods, so the new scheduler of this node cannot be "+
			"confirmed to work: %w", leader, reason)
	}
	return fmt.Errorf("the new scheduler does not work: %w", reason)
}

// atLeader returns the next step when another node's scheduler is the leader and binds nothing.
func atLeader(leader string) string {
	where := "on the node that holds the lease"
	// kube-scheduler's identity is its host name, "_" and a random part.
	if end := strings.LastIndex(leader, "_"); end > 0 {
		where = "on " + leader[:end]
	}
	return where + ": kube-scheduler-swap rollback if it is swapped, otherwise read its scheduler's log; once pods are " +
		"bound again, find the cause before you continue here"
}

// errInterruptedBefore is the error for a run that was interrupted before it changed anything.
var errInterruptedBefore = nextstep.With(errors.New("interrupted before anything was changed"),
	"run the same command again")

// orInterrupted maps errors after a cancel: before the manifest was written, every error becomes errInterruptedBefore.
func (t *Tool) orInterrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || t.wrote || errors.Is(err, errInterruptedBefore) {
		return err
	}
	return errInterruptedBefore
}
