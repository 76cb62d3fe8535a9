// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// keepWayBack saves everything that a rollback needs before anything is changed, and returns the manifest for an undo:
// the current one; or the one before it, if the current one is from an unfinished run and was never seen working. It
// returns nil if there is nothing to restore, because the current scheduler does not work, as reported by works.
func (s state) keepWayBack(before []byte, pod *Pod, unfinished *journal, works func() error) ([]byte, error) {
	good := before
	doubted, err := s.doubted(unfinished, before)
	if err != nil {
		return nil, err
	}
	if doubted {
		kept, err := readIfThere(s.undo())
		if err != nil {
			return nil, err
		}
		if good = kept; kept != nil {
			s.say("the %s of %s did not finish; its manifest does not count as working", unfinished.Operation, unfinished.Started.Format(time.RFC3339))
		}
	} else if problem := works(); problem != nil {
		kept := s.stamped("broken")
		if err := s.save(kept, before, "cannot keep the current manifest"); err != nil {
			return nil, err
		}
		s.say("the current scheduler does not work, so it cannot be used for a rollback: %v; its manifest is kept as %s",
			problem, kept)
		good = nil
	}
	const what = "cannot save the manifest for a rollback"
	if !pod.Swapped && !halfSwapped(pod) {
		// This is kubeadm's manifest: before the first swap, or after an upgrade.
		kept, err := readIfThere(s.original())
		if err != nil {
			return nil, err
		}
		// A manifest that does not work is saved only if there is no other.
		if kept == nil || good != nil && !onlyRestarted(kept, before) {
			if err := s.save(s.original(), before, what); err != nil {
				return nil, err
			}
		}
	}
	if good == nil {
		return nil, removeDurably(s.undo())
	}
	return good, s.save(s.undo(), good, what)
}

// keepReplaced saves the manifest that a rollback replaces. A full disk is no reason to stay with a scheduler that does
// not work, if the content of the manifest is saved elsewhere.
func (s state) keepReplaced(before []byte, pod *Pod, target []byte) error {
	err := writeDurably(s.undo(), before, 0o600)
	if err == nil {
		return nil
	}
	where := ""
	if errors.Is(err, unix.ENOSPC) {
		where = s.keptElsewhere(before, pod, target)
	}
	if where == "" {
		return s.noRoom("cannot keep the current manifest", err)
	}
	s.say("there is no room in %s to keep the current manifest for rollback --to %s; %s",
		s.folder, ToPrevious, where)
	// Otherwise the file of an earlier run would be mistaken for it.
	return removeDurably(s.undo())
}

// keptElsewhere describes where the content of a manifest is saved: in another file, or in the restored manifest, if
// the only difference is a swap. Empty: nowhere.
func (s state) keptElsewhere(manifest []byte, pod *Pod, target []byte) string {
	files, err := filepath.Glob(filepath.Join(s.folder, "*.yaml"))
	if err != nil {
		return ""
	}
	for _, file := range files {
		if file == s.undo() {
			continue
		}
		if known, err := readIfThere(file); err == nil && known != nil && identity(known) == identity(manifest) {
			return "it is in " + file
		}
	}
	if pod.Swapped && swapOf(target, pod) {
		return "it differs from the restored one only by the swap, and kube-scheduler-swap install creates it again"
	}
	return ""
}

// keepEdits saves a manifest that differs from what the last install wrote, so that manual edits are not lost. It
// returns the path; empty: nothing to save. doubted means that the manifest is from an unfinished run.
func (s state) keepEdits(manifest []byte, doubted bool) (string, error) {
	last, there, err := s.lastInstalled()
	if err != nil {
		return "", err
	}
	if manifest == nil || doubted || there && last.Manifest == sum(manifest) {
		return "", nil
	}
	for _, file := range []string{s.original(), s.previous()} {
		if known, err := readIfThere(file); err != nil {
			return "", err
		} else if known != nil && identity(known) == identity(manifest) {
			return "", nil
		}
	}
	path, err := s.keepEdited(manifest)
	if err == nil {
		s.say("the manifest was edited since the last install; kept as %s", path)
	}
	return path, err
}

// keepEdited saves a manually edited manifest and returns the path.
func (s state) keepEdited(manifest []byte) (string, error) {
	path := s.stamped("edited")
	return path, s.save(path, manifest, "cannot keep the manifest that was edited by hand")
}

// keepExact saves the exact text of a manifest that a new restart time would reformat.
func (s state) keepExact(manifest []byte) {
	edit, err := Restart(manifest, s.started)
	if err != nil || !edit.Reformatted {
		return
	}
	kept := "is kept as " + s.stamped("exact")
	if err := writeDurably(s.stamped("exact"), manifest, 0o600); err != nil {
		// Nothing must delay the old scheduler.
		kept = fmt.Sprintf("cannot be kept: %v", err)
	}
	s.say("the old manifest is not formatted as this tool writes it: it is reformatted, its content and its comments stay; "+
		"its exact text %s", kept)
}
