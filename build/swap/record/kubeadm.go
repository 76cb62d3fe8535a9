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

// patched returns the record of kubeadm's patch, and whether there is one.
func (d Directory) patched() (patch patched, there bool, err error) {
	there, err = ReadJSON(d.patchedFile(), &patch)
	return patch, there, err
}

// UpdatePatch updates kubeadm's patch, if there is one.
func (d Directory) UpdatePatch(swap manifest.Swap) error {
	patch, there, err := d.patched()
	if err != nil {
		return err
	}
	if !there {
		// This node joined with another node's patch.
		if !d.HasDefaultPatch() {
			return nil
		}
		patch.Folder = DefaultPatches
	}
	if err := d.WritePatch(patch.Folder, swap); err != nil {
		return err
	}
	d.Say("updated kubeadm's patch in %s", patch.Folder)
	return nil
}

// patchFiles returns the paths where this tool's patch may be.
func (d Directory) patchFiles() ([]string, error) {
	files := []string{filepath.Join(DefaultPatches, manifest.KubeadmPatchFile)}
	if patch, there, err := d.patched(); err != nil {
		return nil, err
	} else if there && patch.Folder != DefaultPatches {
		files = append(files, filepath.Join(patch.Folder, manifest.KubeadmPatchFile))
	}
	return files, nil
}

// HasDefaultPatch reports whether this tool's patch is in kubeadm's default directory.
func (d Directory) HasDefaultPatch() bool {
	content, err := ReadIfExists(filepath.Join(DefaultPatches, manifest.KubeadmPatchFile))
	return err == nil && strings.Contains(string(content), manifest.VersionAnnotation)
}

// WritePatch writes kubeadm's patch for a swap into a directory, and records where it is.
func (d Directory) WritePatch(folder string, swap manifest.Swap) error {
	if Inside(folder, d.Watched) {
		return nextstep.With(fmt.Errorf("the patch must not be in %s: kubelet would run it", d.Watched),
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
		if err := d.saveEditedPatch(before, nil); err != nil {
			return err
		}
	}
	if err := WriteDurably(file, content, 0o600); err != nil {
		return nextstep.With(fmt.Errorf("cannot write kubeadm's patch: %w", err),
			"make room in %s", folder)
	}
	if err := WriteJSON(d.patchedFile(), patched{Folder: folder, Patch: manifest.Sum(content)}); err != nil {
		return d.NoRoom("cannot record where kubeadm's patch is", err)
	}
	return nil
}

// saveEditedPatch saves a patch in the state directory if it is not as this tool wrote
// it, so that manual edits are not lost. Without a record of the written patch, it
// compares with ours; if ours is nil too, every patch for a swap counts as unedited.
func (d Directory) saveEditedPatch(patch, ours []byte) error {
	last, _, err := d.patched()
	if err != nil {
		return err
	}
	switch {
	case last.Patch == manifest.Sum(patch) || bytes.Equal(patch, ours):
		return nil
	case last.Patch == "" && ours == nil && strings.Contains(string(patch), manifest.VersionAnnotation):
		return nil
	}
	// There may be two patches, in two directories.
	kept := d.Stamped("edited-kubeadm-patch-" + manifest.Sum(patch)[:8])
	if err := d.save(kept, patch, "cannot keep kubeadm's patch"); err != nil {
		return err
	}
	d.Say("kubeadm's patch was edited since this tool wrote it; kept as %s", kept)
	return nil
}

// RemovePatches removes kubeadm's patch, which would restore the swap. A patch with manual edits is first saved with
// the other edited files.
func (d Directory) RemovePatches(ours []byte) error {
	files, err := d.patchFiles()
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
		if err := d.saveEditedPatch(content, ours); err != nil {
			return err
		}
		if err := RemoveDurably(file); err != nil {
			return nextstep.With(fmt.Errorf("kubeadm's patch cannot be removed: %w", err), "rm %s, then run this again", file)
		}
		d.Say("removed %s", file)
	}
	return nil
}

// WarnOfPatch warns about kubeadm settings that still refer to the swap after a rollback.
func (d Directory) WarnOfPatch() {
	if patch, there, err := d.patched(); there && err == nil {
		d.Say("kubeadm would restore the swap at its next upgrade: to prevent that, remove scheduler.extraArgs.config from its ClusterConfiguration, "+
			"and rm %s %s", filepath.Join(patch.Folder, manifest.KubeadmPatchFile), d.patchedFile())
	}
}
