// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"os"
	"path/filepath"

	"kube-scheduler-fork/build/nextstep"
)

// clear removes the configurations that are named neither in the current manifest, nor in a saved one, nor in kubeadm's
// patch; and the images that no rollback needs.
func (s state) clear(written []byte) error {
	named, err := s.savedManifests()
	if err != nil {
		return err
	}
	patches, err := s.patchFiles()
	if err != nil {
		return err
	}
	for _, file := range patches {
		content, err := readIfThere(file)
		if err != nil {
			return err
		}
		named = append(named, content)
	}
	images := map[string]bool{}
	for _, file := range []string{s.original(), s.previous()} {
		content, err := readIfThere(file)
		if err != nil {
			return err
		}
		if pod, err := Describe(content); err == nil {
			images[s.imageFile(pod.Image)] = true
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
	return s.dropConfigs(append(named, written)...)
}

// removeState removes this tool's files from the state directory, except files with manual edits.
func (s state) removeState() error {
	configs, err := filepath.Glob(filepath.Join(s.configs(), "*"))
	if err != nil {
		return err
	}
	for _, folder := range configs {
		if err := s.keepEditedConfig(folder); err != nil {
			return err
		}
	}
	// The directory may contain other files.
	for _, path := range []string{s.original(), s.previous(), s.undo(), s.journalFile(), s.installedFile(),
		s.patchedFile(), s.configs(), s.images(), filepath.Join(s.folder, "lock")} {
		if err := os.RemoveAll(path); err != nil {
			return nextstep.With(err, "rm -r %s, then run this again", path)
		}
	}
	if err := os.Remove(s.folder); err != nil {
		s.say("%s is left, with saved manual edits; once you have read them: rm -r %s", s.folder, s.folder)
		return nil
	}
	s.say("removed %s", s.folder)
	return nil
}
