// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// begin takes the lock, which end releases, and removes leftovers of killed runs.
func (t *Tool) begin(ctx context.Context) (end func(), err error) {
	unlock, err := t.state.Lock()
	if err != nil {
		return nil, err
	}
	if err := t.state.RemoveScratch(); err != nil {
		unlock()
		return nil, err
	}
	t.node.RemoveProbes(ctx)
	return unlock, nil
}

// change writes the journal and then the manifest, and waits for its scheduler. It returns what it wrote; nil if the
// manifest is as before. The order is the same for install and rollback, so a run that is killed at any step leaves the
// same for the next one. unfinished is the journal of an earlier run that did not finish; nil: none. proven reports
// whether target has worked before: then a killed run leaves nothing in doubt, also without a journal.
func (t *Tool) change(
	operation string, target []byte, proven bool, unfinished *record.Journal, replace func() (written []byte, err error),
) (written []byte, err error) {
	if err := t.state.WriteJournal(operation, target, unfinished); proven && errors.Is(err, unix.ENOSPC) {
		t.say("there is no room for the journal in %s: if this run is killed, run it again", t.state.Path)
	} else if err != nil {
		return nil, err
	}
	written, err = replace()
	var other *changedByOther
	switch {
	case errors.As(err, &other):
		return nil, err
	case err != nil && written == nil && errors.Is(err, context.Canceled):
		return nil, errors.Join(errInterruptedBefore, t.state.RestoreJournal(unfinished))
	case err != nil && written == nil && proven:
		err = fmt.Errorf("the earlier manifest could NOT be restored: %w", errors.Join(err, t.state.RestoreJournal(unfinished)))
	case err != nil && written == nil:
		err = errors.Join(err, t.state.RestoreJournal(unfinished))
	}
	return written, err
}

// undoTime is the time for the old scheduler to work again, counted from
// the moment when kubelet begins to start its pod.
const undoTime = 2 * time.Minute

// undo restores a manifest that worked, even if the user has cancelled. found is the current manifest.
func (t *Tool) undo(reason error, found, fallback []byte) error {
	var failed *host.Failure
	switch {
	case errors.Is(reason, context.Canceled):
		reason = errors.New("it was interrupted before it was confirmed to work")
		t.say("interrupted")
	case errors.As(reason, &failed):
		// The rest is printed at the end, with the error.
		t.say("%s", failed.Reason)
	}
	t.say("restoring the old manifest")
	written, err := t.restore(context.Background(), found, fallback, undoTime)
	var other *changedByOther
	if errors.As(err, &other) {
		return fmt.Errorf("%v\n%w", blame(reason), err)
	}
	if err == nil {
		if err = t.state.Undone(fallback, written); err != nil {
			return t.state.NoRoom(blame(reason).Error()+"\nthe old one runs again, but that cannot be recorded", err)
		}
	}
	return t.undoneError(reason, err, written != nil)
}

// restore replaces the manifest found with another one, with a new restart time, and waits until its scheduler works.
// It returns the manifest that it wrote; nil if none.
func (t *Tool) restore(ctx context.Context, found, content []byte, timeout time.Duration) ([]byte, error) {
	t.state.SaveExact(content)
	content = t.withoutPull(ctx, content)
	pod, err := manifest.Describe(content)
	if err != nil {
		return nil, err
	}
	if folder := pod.Swap.ConfigFolder; record.Inside(folder, t.state.Configs()) {
		// Its container may run as another user than the current one.
		if err := record.ChownConfig(folder, pod.User()); err != nil {
			t.say("the configuration cannot be made readable for the user of the old scheduler: %v", err)
		}
	}
	// Ignore errors: a missing image or unreadable configuration shows when the scheduler starts.
	id, _ := t.node.Runtime.ImageID(ctx, pod.Image)
	config, _ := host.ConfigOf(&pod)
	r := &replacement{tool: t, pod: &pod, found: found, timeout: timeout,
		want: host.Wanted{ImageID: id, Health: pod.HealthURL(), Lease: pod.Lease(config)},
		edit: func(at time.Time) (manifest.Edit, error) { return manifest.Restart(content, at) }}
	return r.run(ctx)
}
