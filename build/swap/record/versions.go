// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"kube-scheduler-fork/build/swap/manifest"
)

// SaveForUndo saves everything that a rollback needs before anything is changed, and returns the manifest for an undo:
// the current one; or the one before it, if the current one is from an unfinished run and was never seen working. It
// returns nil if there is nothing to restore, because the current scheduler does not work, as reported by works.
func (d Directory) SaveForUndo(before []byte, pod *manifest.Pod, unfinished *Journal, works func() error) ([]byte, error) {
	fallback := before
	unproven, err := d.IsUnproven(unfinished, before)
	if err != nil {
		return nil, err
	}
	if unproven {
		kept, err := ReadIfExists(d.Undo())
		if err != nil {
			return nil, err
		}
		if fallback = kept; kept != nil {
			d.Say("the %s of %s did not finish; its manifest does not count as working", unfinished.Operation, unfinished.Started.Format(time.RFC3339))
		}
	} else if problem := works(); problem != nil {
		kept := d.Stamped("broken")
		if err := d.save(kept, before, "cannot keep the current manifest"); err != nil {
			return nil, err
		}
		d.Say("the current scheduler does not work, so it cannot be used for a rollback: %v; its manifest is kept as %s",
			problem, kept)
		fallback = nil
	}
	const what = "cannot save the manifest for a rollback"
	if !pod.Swapped && !manifest.HalfSwapped(pod) {
		// This is kubeadm's manifest: before the first swap, or after an upgrade.
		kept, err := ReadIfExists(d.Original())
		if err != nil {
			return nil, err
		}
		// A manifest that does not work is saved only if there is no other.
		if kept == nil || fallback != nil && !manifest.OnlyRestarted(kept, before) {
			if err := d.save(d.Original(), before, what); err != nil {
				return nil, err
			}
		}
	}
	if fallback == nil {
		return nil, RemoveDurably(d.Undo())
	}
	return fallback, d.save(d.Undo(), fallback, what)
}

// SaveReplaced saves the manifest that a rollback replaces. A full disk is no reason to stay with a scheduler that does
// not work, if the content of the manifest is saved elsewhere.
func (d Directory) SaveReplaced(before []byte, pod *manifest.Pod, target []byte) error {
	err := WriteDurably(d.Undo(), before, 0o600)
	if err == nil {
		return nil
	}
	where := ""
	if errors.Is(err, unix.ENOSPC) {
		where = d.savedElsewhere(before, pod, target)
	}
	if where == "" {
		return d.NoRoom("cannot keep the current manifest", err)
	}
	d.Say("there is no room in %s to keep the current manifest for rollback --to previous; %s", d.Path, where)
	// Otherwise the file of an earlier run would be mistaken for it.
	return RemoveDurably(d.Undo())
}

// savedElsewhere describes where the content of a manifest is saved: in another file, or in the restored manifest, if
// the only difference is a swap. Empty: nowhere.
func (d Directory) savedElsewhere(content []byte, pod *manifest.Pod, target []byte) string {
	files, err := filepath.Glob(filepath.Join(d.Path, "*.yaml"))
	if err != nil {
		return ""
	}
	for _, file := range files {
		if file == d.Undo() {
			continue
		}
		if known, err := ReadIfExists(file); err == nil && known != nil && manifest.Identity(known) == manifest.Identity(content) {
			return "it is in " + file
		}
	}
	if pod.Swapped && manifest.SwapOf(target, pod) {
		return "it differs from the restored one only by the swap, and kube-scheduler-swap install creates it again"
	}
	return ""
}

// SaveEdits saves a manifest that differs from what the last install wrote, so that manual edits are not lost. It
// returns the path; empty: nothing to save. unproven means that the manifest is from an unfinished run.
func (d Directory) SaveEdits(content []byte, unproven bool) (string, error) {
	last, there, err := d.LastInstalled()
	if err != nil {
		return "", err
	}
	if content == nil || unproven || there && last.Manifest == manifest.Sum(content) {
		return "", nil
	}
	for _, file := range []string{d.Original(), d.Previous()} {
		if known, err := ReadIfExists(file); err != nil {
			return "", err
		} else if known != nil && manifest.Identity(known) == manifest.Identity(content) {
			return "", nil
		}
	}
	path, err := d.SaveEdited(content)
	if err == nil {
		d.Say("the manifest was edited since the last install; kept as %s", path)
	}
	return path, err
}

// SaveEdited saves a manually edited manifest and returns the path.
func (d Directory) SaveEdited(manifest []byte) (string, error) {
	path := d.Stamped("edited")
	return path, d.save(path, manifest, "cannot keep the manifest that was edited by hand")
}

// SaveExact saves the exact text of a manifest that a new restart time would reformat.
func (d Directory) SaveExact(content []byte) {
	edit, err := manifest.Restart(content, d.Started)
	if err != nil || !edit.Reformatted {
		return
	}
	kept := "is kept as " + d.Stamped("exact")
	if err := WriteDurably(d.Stamped("exact"), content, 0o600); err != nil {
		// Nothing must delay the old scheduler.
		kept = fmt.Sprintf("cannot be kept: %v", err)
	}
	d.Say("the old manifest is not formatted as this tool writes it: it is reformatted, its content and its comments stay; "+
		"its exact text %s", kept)
}
