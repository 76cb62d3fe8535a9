// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

const (
	// nudgeAfter is the time that kubelet gets to start the new pod after it has cleaned up the old one. kubelet 1.23
	// retries a static pod that had to wait for its predecessor only after 10 to 15 seconds, but handles a changed
	// manifest at once. So the manifest is renamed into place again, with a new restart time.
	nudgeAfter = 300 * time.Millisecond
	// nudgeAgainAfter is the time until the next such rename, long enough for a busy node. One rename too many costs
	// those 10 to 15 seconds.
	nudgeAgainAfter = 1500 * time.Millisecond
	// nudges limits these renames; after that, kubelet starts the pod on its own.
	nudges = 6
)

// replacement writes the manifest and waits until its scheduler works.
type replacement struct {
	tool *Tool
	pod  *manifest.Pod
	want host.Wanted
	// timeout is the time for the scheduler to work, from the moment kubelet starts its pod.
	timeout time.Duration
	// edit returns the manifest with a restart time. No manifest is ever restored byte for byte: kubelet derives the
	// pod's UID from the manifest's content, and a pod with a known UID waits for the restart back-off of that UID, up to
	// five minutes.
	edit func(at time.Time) (manifest.Edit, error)
	// found is the expected content of the manifest before the next write; nil: no file.
	found []byte
	mode  fs.FileMode

	watch *host.Watch
	// attempt counts the renames; written is the time of the last one.
	attempt int
	written time.Time
}

// changedByOther is the error for a manifest that another program
// or a person changed during this run. Their version stays.
type changedByOther struct{ manifest string }

func (c *changedByOther) Error() string {
	return fmt.Sprintf("another program or a person has written %s during this run; it was left as it is", c.manifest)
}

// run writes the manifest, waits until its scheduler works, and returns what it wrote; nil if it wrote nothing. A
// *failure means that the scheduler does not work.
func (r *replacement) run(ctx context.Context) (written []byte, err error) {
	t := r.tool
	r.watch = t.node.WatchReplacement(ctx, r.pod, r.want)
	r.mode = 0o600
	if info, err := os.Stat(t.manifest); err == nil {
		r.mode = info.Mode().Perm()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := r.write(); err != nil {
		return nil, err
	}
	t.say("wrote %s", t.manifest)
	err = r.await(ctx)
	return r.found, err
}

// await waits until the scheduler works, and makes kubelet start its pod without delay.
func (r *replacement) await(ctx context.Context) error {
	ticker := time.NewTicker(host.PollInterval)
	defer ticker.Stop()
	for {
		looking, stop := context.WithTimeout(ctx, host.LookTime)
		started, done, err := r.watch.Look(looking)
		stop()
		if done || err != nil {
			return err
		}
		if !started && r.nudgeDue() {
			var other *changedByOther
			if err := r.write(); errors.As(err, &other) {
				return err
			} else if err != nil {
				// This write only speeds kubelet up.
				r.watch.LastProblem = err.Error()
			}
		}
		if late := r.watch.Late(r.timeout); late != "" {
			return &host.Failure{Reason: late + ": " + r.watch.Problem(), Detail: r.watch.LastWords(ctx)}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// write renames the next version into place, unless there were enough.
func (r *replacement) write() error {
	if r.attempt > nudges {
		return nil
	}
	edit, err := r.edit(time.Now())
	if err != nil {
		return err
	}
	content := edit.Manifest
	described, err := manifest.Describe(content)
	if err != nil {
		return err
	}
	if there, err := record.ReadIfExists(r.tool.manifest); err != nil {
		return err
	} else if manifest.Sum(there) != manifest.Sum(r.found) {
		return nextstep.With(&changedByOther{r.tool.manifest}, "kube-scheduler-swap status")
	}
	if err := record.WriteDurably(r.tool.manifest, content, r.mode); err != nil {
		// An error after the rename does not undo it.
		if there, _ := record.ReadIfExists(r.tool.manifest); manifest.Sum(there) != manifest.Sum(content) {
			return nextstep.With(fmt.Errorf("cannot write %s: %w", r.tool.manifest, err),
				"make its directory writable, and make room on its disk")
		}
	}
	r.found, r.tool.wrote = content, true
	r.attempt, r.written = r.attempt+1, time.Now()
	r.watch.Wrote(described.Object.Annotations[manifest.RestartedAtAnnotation], r.written)
	return nil
}

// nudgeDue reports whether kubelet has cleaned up the old pod, but has not started the new one in time.
func (r *replacement) nudgeDue() bool {
	cleanedUp := r.watch.CleanedUp()
	switch {
	case cleanedUp.IsZero():
		return false
	case r.attempt > 1:
		return time.Since(r.written) > nudgeAgainAfter
	}
	return time.Since(cleanedUp) > nudgeAfter && time.Since(r.written) > nudgeAfter
}
