// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"path/filepath"

	"kube-scheduler-fork/build/nextstep"
)

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
func (s Directory) RemoveScratch() error {
	// The second pattern is writeDurably's temporary file.
	for _, pattern := range []string{".scratch-*", ".*.new"} {
		left, err := filepath.Glob(filepath.Join(s.Path, pattern))
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
