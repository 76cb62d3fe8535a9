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

// change is one change of the manifest. What install and rollback keep, write and conclude differs; the order is the
// same for both, so a run that is killed at any step leaves the same for the next one.
type change struct {
	// operation is the command, for the journal.
	operation string
	// target is the manifest to write, without its restart time.
	target []byte
	// proven reports whether target has worked before. Then a killed run leaves nothing in doubt, also without a journal.
	proven bool
	// unfinished is the journal of an earlier run that did not finish; nil: none.
	unfinished *record.Journal
	steps
}

// steps are the parts of a change that depend on the command.
type steps interface {
	// keep saves everything that an undo or a rollback needs; done reports that the manifest needs no change.
	keep(ctx context.Context) (done bool, err error)
	// replace writes the manifest and waits until its scheduler works. It returns what it wrote; nil if nothing.
	replace(ctx context.Context) (written []byte, err error)
	// finish records that the scheduler works, and removes what is no longer needed.
	finish(ctx context.Context, written []byte) error
	// unwritten returns the error for a manifest that could not be written.
	unwritten(err error) error
	// failed undoes the change if it can, and returns the error for a scheduler that does not work.
	failed(err error, written []byte) error
}

// change makes a change: it keeps the current state, writes the journal and the manifest, waits for the scheduler, and
// then either finishes or undoes it.
func (t *Tool) change(ctx context.Context, c change) error {
	if done, err := c.keep(ctx); done || err != nil {
		return err
	}
	if err := t.state.WriteJournal(c.operation, c.target, c.unfinished); c.proven && errors.Is(err, unix.ENOSPC) {
		t.say("there is no room for the journal in %s: if this run is killed, run it again", t.state.Path)
	} else if err != nil {
		return err
	}
	written, err := c.replace(ctx)
	var other *changedByOther
	switch {
	case err == nil:
		return c.finish(ctx, written)
	case errors.As(err, &other):
		return err
	case written == nil && errors.Is(err, context.Canceled):
		return errors.Join(errInterruptedBefore, t.state.RestoreJournal(c.unfinished))
	case written == nil:
		return c.unwritten(errors.Join(err, t.state.RestoreJournal(c.unfinished)))
	}
	return c.failed(err, written)
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
