// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"path/filepath"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// RemoveUnused removes the configurations that are named neither in the current manifest, nor in a saved one, nor in kubeadm's
// patch; and the images that no rollback needs.
func (s Directory) RemoveUnused(written []byte) error {
	named, err := s.SavedManifests()
	if err != nil {
		return err
	}
	patches, err := s.patchFiles()
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
	for _, file := range []string{s.Original(), s.Previous()} {
		content, err := ReadIfExists(file)
		if err != nil {
			return err
		}
		if pod, err := manifest.Describe(content); err == nil {
			images[s.ImageFile(pod.Image)] = true
		}
	}
	kept, err := filepath.Glob(filepath.Join(s.images(), "*"))
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
	return s.removeUnusedConfigs(append(named, written)...)
}

// RemoveAll removes this tool's files from the state directory, except files with manual edits.
func (s Directory) RemoveAll() error {
	configs, err := filepath.Glob(filepath.Join(s.Configs(), "*"))
	if err != nil {
		return err
	}
	for _, folder := range configs {
		if err := s.SaveEditedConfig(folder); err != nil {
			return err
		}
	}
	// The directory may contain other files.
	for _, path := range []string{s.Original(), s.Previous(), s.Undo(), s.journalFile(), s.InstalledFile(),
		s.patchedFile(), s.Configs(), s.images(), filepath.Join(s.Path, "lock")} {
		if err := os.RemoveAll(path); err != nil {
			return nextstep.With(err, "rm -r %s, then run this again", path)
		}
	}
	if err := os.Remove(s.Path); err != nil {
		s.Say("%s is left, with saved manual edits; once you have read them: rm -r %s", s.Path, s.Path)
		return nil
	}
	s.Say("removed %s", s.Path)
	return nil
}
