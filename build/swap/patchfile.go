// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"kube-scheduler-fork/build/nextstep"
)

// patched records the directory of kubeadm's patch, which every install updates. The record outlives a rollback.
type patched struct {
	Folder string `json:"folder"`
	// Patch is the SHA-256 sum of the patch as written; empty in the record of an older release.
	Patch string `json:"patch,omitempty"`
}

// updatePatch updates kubeadm's patch, if there is one.
func (s state) updatePatch(swap Swap) error {
	var patch patched
	there, err := readRecord(s.patchedFile(), &patch)
	if err != nil {
		return err
	}
	if !there {
		// This node joined with another node's patch.
		if !s.patchThere() {
			return nil
		}
		patch.Folder = DefaultPatches
	}
	if err := s.writePatch(patch.Folder, swap); err != nil {
		return err
	}
	s.say("updated kubeadm's patch in %s", patch.Folder)
	return nil
}

// patchFiles returns the paths where this tool's patch may be.
func (s state) patchFiles() ([]string, error) {
	files := []string{filepath.Join(DefaultPatches, KubeadmPatchFile)}
	var patch patched
	if there, err := readRecord(s.patchedFile(), &patch); err != nil {
		return nil, err
	} else if there && patch.Folder != DefaultPatches {
		files = append(files, filepath.Join(patch.Folder, KubeadmPatchFile))
	}
	return files, nil
}

// patchThere reports whether this tool's patch is in kubeadm's default directory.
func (s state) patchThere() bool {
	content, err := readIfThere(filepath.Join(DefaultPatches, KubeadmPatchFile))
	return err == nil && strings.Contains(string(content), VersionAnnotation)
}

func (s state) writePatch(folder string, swap Swap) error {
	if inside(folder, s.manifests) {
		return nextstep.With(fmt.Errorf("the patch must not be in %s: kubelet would run it", s.manifests),
			"name another directory with --folder")
	}
	content, err := KubeadmPatch(swap)
	if err != nil {
		return err
	}
	if err := keepFolder(folder); err != nil {
		return err
	}
	file := filepath.Join(folder, KubeadmPatchFile)
	if before, err := readIfThere(file); err != nil {
		return err
	} else if before != nil && !bytes.Equal(before, content) {
		if err := s.keepEditedPatch(before, nil); err != nil {
			return err
		}
	}
	if err := writeDurably(file, content, 0o600); err != nil {
		return nextstep.With(fmt.Errorf("cannot write kubeadm's patch: %w", err),
			"make room in %s", folder)
	}
	if err := writeRecord(s.patchedFile(), patched{Folder: folder, Patch: sum(content)}); err != nil {
		return s.noRoom("cannot record where kubeadm's patch is", err)
	}
	return nil
}

// keepEditedPatch saves a patch in the state directory if it is not as this tool wrote
// it, so that manual edits are not lost. Without a record of the written patch, it
// compares with ours; if ours is nil too, every patch for a swap counts as unedited.
func (s state) keepEditedPatch(patch, ours []byte) error {
	var last patched
	if _, err := readRecord(s.patchedFile(), &last); err != nil {
		return err
	}
	switch {
	case last.Patch == sum(patch) || bytes.Equal(patch, ours):
		return nil
	case last.Patch == "" && ours == nil && strings.Contains(string(patch), VersionAnnotation):
		return nil
	}
	// There may be two patches, in two directories.
	kept := s.stamped("edited-kubeadm-patch-" + sum(patch)[:8])
	if err := s.save(kept, patch, "cannot keep kubeadm's patch"); err != nil {
		return err
	}
	s.say("kubeadm's patch was edited since this tool wrote it; kept as %s", kept)
	return nil
}

// removePatches removes kubeadm's patch, which would restore the swap. A patch with manual edits is first saved with
// the other edited files.
func (s state) removePatches(ours []byte) error {
	files, err := s.patchFiles()
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := readIfThere(file)
		if err != nil {
			return err
		}
		if !strings.Contains(string(content), VersionAnnotation) {
			continue
		}
		if err := s.keepEditedPatch(content, ours); err != nil {
			return err
		}
		if err := removeDurably(file); err != nil {
			return nextstep.With(fmt.Errorf("kubeadm's patch cannot be removed: %w", err), "rm %s, then run this again", file)
		}
		s.say("removed %s", file)
	}
	return nil
}

// sayPatched warns about kubeadm settings that still refer to the swap after a rollback.
func (s state) sayPatched() {
	var patch patched
	if there, err := readRecord(s.patchedFile(), &patch); there && err == nil {
		s.say("kubeadm would restore the swap at its next upgrade: to prevent that, remove scheduler.extraArgs.config from its ClusterConfiguration, "+
			"and rm %s %s", filepath.Join(patch.Folder, KubeadmPatchFile), s.patchedFile())
	}
}
