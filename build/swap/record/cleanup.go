// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"path/filepath"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// RemoveUnused removes the configurations that are named neither in the current manifest, nor in a saved one, nor in
// kubeadm's patch; and the images that no rollback needs.
func (d Directory) RemoveUnused(written []byte) error {
	named, err := d.SavedManifests()
	if err != nil {
		return err
	}
	patches, err := d.patchFiles()
	if err != nil {
		return err
	}
	for _, file := range patches {
		content, err := ReadIfExists(file)
		if err != nil {
			return err
		}
		named = append(named, content)
	}
	images := map[string]bool{}
	for _, file := range []string{d.Original(), d.Previous()} {
		content, err := ReadIfExists(file)
		if err != nil {
			return err
		}
		if pod, err := manifest.Describe(content); err == nil {
			images[d.ImageFile(pod.Image)] = true
		}
	}
	kept, err := filepath.Glob(filepath.Join(d.images(), "*"))
	if err != nil {
		return err
	}
	for _, file := range kept {
		if !images[file] {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return d.removeUnusedConfigs(append(named, written)...)
}

// RemoveAll removes this tool's files from the state directory, except files with manual edits.
func (d Directory) RemoveAll() error {
	configs, err := filepath.Glob(filepath.Join(d.Configs(), "*"))
	if err != nil {
		return err
	}
	for _, folder := range configs {
		if err := d.SaveEditedConfig(folder); err != nil {
			return err
		}
	}
	// The directory may contain other files.
	for _, path := range []string{d.Original(), d.Previous(), d.Undo(), d.journalFile(), d.InstalledFile(),
		d.patchedFile(), d.Configs(), d.images(), filepath.Join(d.Path, "lock")} {
		if err := os.RemoveAll(path); err != nil {
			return nextstep.With(err, "rm -r %s, then run this again", path)
		}
	}
	if err := os.Remove(d.Path); err != nil {
		d.Say("%s is left, with saved manual edits; once you have read them: rm -r %s", d.Path, d.Path)
		return nil
	}
	d.Say("removed %s", d.Path)
	return nil
}

// CreateScratch creates a temporary directory. check must not change anything, so before the first install it does not
// create the state directory.
func CreateScratch(state string) (string, error) {
	parent := state
	if _, err := os.Stat(state); err != nil {
		parent = ""
	}
	folder, err := os.MkdirTemp(parent, ".scratch-")
	if err != nil && parent != "" {
		folder, err = os.MkdirTemp("", "kube-scheduler-swap-")
	}
	if err != nil {
		return "", nextstep.With(err, "make room on the disk")
	}
	return folder, nil
}

// RemoveScratch removes files that a killed run had unpacked or
// half written. The lock ensures that no other run uses them.
func (d Directory) RemoveScratch() error {
	// The second pattern is WriteDurably's temporary file.
	for _, pattern := range []string{".scratch-*", ".*.new"} {
		left, err := filepath.Glob(filepath.Join(d.Path, pattern))
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}
