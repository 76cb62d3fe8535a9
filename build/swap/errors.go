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

// Refused is the error for problems that would make the swap fail; nothing was changed.
type Refused struct{ Findings Findings }

func (r *Refused) Error() string {
	return fmt.Sprintf("nothing was changed, because %d problem(s) would make the swap fail", r.Findings.Problems())
}

// UndoneError is the error for a change that failed and was undone.
type UndoneError struct {
	// Reason is why the new scheduler does not count as working.
	Reason error
	// Undo is the error from restoring the old manifest; nil if the old scheduler works again.
	Undo error
	// Kept is the path of the saved old manifest if it could not be restored; Manifest is then the path to copy it to.
	Kept, Manifest string
}

func (e *UndoneError) Error() string {
	switch {
	case e.Undo == nil:
		return blame(e.Reason) + "\nthe old one runs again"
	case e.Kept != "":
		return fmt.Sprintf("%s\nthe old manifest could NOT be restored: %v", blame(e.Reason), e.Undo)
	}
	return fmt.Sprintf("%s\nthe old manifest is restored, but its scheduler was not confirmed to work: %v",
		blame(e.Reason), e.Undo)
}

// blame returns a sentence about which scheduler does not work: the new one, or the current leader on another node.
func blame(reason error) string {
	if leader := host.LeaderOf(reason); leader != "" {
		return fmt.Sprintf("%s holds the lease but binds no pods, so the new scheduler of this node cannot be "+
			"confirmed to work: %v", leader, reason)
	}
	return fmt.Sprintf("the new scheduler does not work: %v", reason)
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

// next returns the next step.
func (e *UndoneError) next() string {
	switch leader := host.LeaderOf(e.Reason); {
	case e.Undo == nil && leader != "":
		return atLeader(leader)
	case e.Undo == nil:
		return "fix the problem above, then run this again"
	case e.Kept != "":
		return fmt.Sprintf("fix that, then cp %s %s; kube-scheduler-swap status", e.Kept, e.Manifest)
	}
	return "kube-scheduler-swap status; journalctl -u kubelet; kube-scheduler-swap rollback"
}

func (e *UndoneError) Unwrap() []error { return []error{e.Reason, e.Undo} }

// StuckError is the error for a new scheduler that does not work when there is no working one to restore.
type StuckError struct {
	Reason error
	// Kept is the path of the saved earlier manifest; empty if that manifest was from an unfinished run.
	Kept string
}

func (e *StuckError) Error() string {
	text := blame(e.Reason) + "\nthe previous one did not work before this run either, so the new manifest stays"
	if e.Kept != "" {
		text += "; the previous manifest is kept as " + e.Kept
	}
	return text
}

func (e *StuckError) Unwrap() error { return e.Reason }

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
