// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// DefaultPatches is the default directory of kubeadm's patches.
const DefaultPatches = "/etc/kubernetes/patches"

// patched records the directory of kubeadm's patch, which every install updates. The record outlives a rollback.
type patched struct {
	Folder string `json:"folder"`
	// Patch is the SHA-256 sum of the patch as written; empty in the record of an older release.
	Patch string `json:"patch,omitempty"`
}

// UpdatePatch updates kubeadm's patch, if there is one.
func (s Directory) UpdatePatch(swap manifest.Swap) error {
	var patch patched
	there, err := ReadJSON(s.patchedFile(), &patch)
	if err != nil {
		return err
	}
	if !there {
		// This node joined with another node's patch.
		if !s.HasDefaultPatch() {
			return nil
		}
		patch.Folder = DefaultPatches
	}
	if err := s.WritePatch(patch.Folder, swap); err != nil {
		return err
	}
	s.Say("updated kubeadm's patch in %s", patch.Folder)
	return nil
}

// patchFiles returns the paths where this tool's patch may be.
func (s Directory) patchFiles() ([]string, error) {
	files := []string{filepath.Join(DefaultPatches, manifest.KubeadmPatchFile)}
	var patch patched
	if there, err := ReadJSON(s.patchedFile(), &patch); err != nil {
		return nil, err
	} else if there && patch.Folder != DefaultPatches {
		files = append(files, filepath.Join(patch.Folder, manifest.KubeadmPatchFile))
	}
	return files, nil
}

// HasDefaultPatch reports whether this tool's patch is in kubeadm's default directory.
func (s Directory) HasDefaultPatch() bool {
	content, err := ReadIfExists(filepath.Join(DefaultPatches, manifest.KubeadmPatchFile))
	return err == nil && strings.Contains(string(content), manifest.VersionAnnotation)
}

func (s Directory) WritePatch(folder string, swap manifest.Swap) error {
	if Inside(folder, s.Watched) {
		return nextstep.With(fmt.Errorf("the patch must not be in %s: kubelet would run it", s.Watched),
			"name another directory with --folder")
	}
	content, err := manifest.KubeadmPatch(swap)
	if err != nil {
		return err
	}
	if err := CreateDirectory(folder); err != nil {
		return err
	}
	file := filepath.Join(folder, manifest.KubeadmPatchFile)
	if before, err := ReadIfExists(file); err != nil {
		return err
	} else if before != nil && !bytes.Equal(before, content) {
		if err := s.saveEditedPatch(before, nil); err != nil {
			return err
		}
	}
	if err := WriteDurably(file, content, 0o600); err != nil {
		return nextstep.With(fmt.Errorf("cannot write kubeadm's patch: %w", err),
			"make room in %s", folder)
	}
	if err := WriteJSON(s.patchedFile(), patched{Folder: folder, Patch: manifest.Sum(content)}); err != nil {
		return s.NoRoom("cannot record where kubeadm's patch is", err)
	}
	return nil
}

// saveEditedPatch saves a patch in the state directory if it is not as this tool wrote
// it, so that manual edits are not lost. Without a record of the written patch, it
// compares with ours; if ours is nil too, every patch for a swap counts as unedited.
func (s Directory) saveEditedPatch(patch, ours []byte) error {
	var last patched
	if _, err := ReadJSON(s.patchedFile(), &last); err != nil {
		return err
	}
	switch {
	case last.Patch == manifest.Sum(patch) || bytes.Equal(patch, ours):
		return nil
	case last.Patch == "" && ours == nil && strings.Contains(string(patch), manifest.VersionAnnotation):
		return nil
	}
	// There may be two patches, in two directories.
	kept := s.Stamped("edited-kubeadm-patch-" + manifest.Sum(patch)[:8])
	if err := s.save(kept, patch, "cannot keep kubeadm's patch"); err != nil {
		return err
	}
	s.Say("kubeadm's patch was edited since this tool wrote it; kept as %s", kept)
	return nil
}

// RemovePatches removes kubeadm's patch, which would restore the swap. A patch with manual edits is first saved with
// the other edited files.
func (s Directory) RemovePatches(ours []byte) error {
	files, err := s.patchFiles()
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := ReadIfExists(file)
		if err != nil {
			return err
		}
		if !strings.Contains(string(content), manifest.VersionAnnotation) {
			continue
		}
		if err := s.saveEditedPatch(content, ours); err != nil {
			return err
		}
		if err := RemoveDurably(file); err != nil {
			return nextstep.With(fmt.Errorf("kubeadm's patch cannot be removed: %w", err), "rm %s, then run this again", file)
		}
		s.Say("removed %s", file)
	}
	return nil
}

// WarnOfPatch warns about kubeadm settings that still refer to the swap after a rollback.
func (s Directory) WarnOfPatch() {
	var patch patched
	if there, err := ReadJSON(s.patchedFile(), &patch); there && err == nil {
		s.Say("kubeadm would restore the swap at its next upgrade: to prevent that, remove scheduler.extraArgs.config from its ClusterConfiguration, "+
			"and rm %s %s", filepath.Join(patch.Folder, manifest.KubeadmPatchFile), s.patchedFile())
	}
}
