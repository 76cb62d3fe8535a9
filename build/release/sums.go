// SPDX-License-Identifier: Apache-2.0

package release

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kube-scheduler-fork/build/nextstep"
)

// sumLine returns a line for `sha256sum --check`.
func sumLine(content []byte, name string) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)
}

// sumsOf returns the lines for files.
func sumsOf(files []file) []byte {
	var lines strings.Builder
	for _, file := range files {
		lines.WriteString(sumLine(file.content, file.name))
	}
	return []byte(lines.String())
}

// listSums updates the SHA256SUMS of a directory of bundles: it removes the lines of the files in replaced, and adds
// those in added. It keeps the lines, with their old sums, of existing files of the same version: another
// architecture's bundle.
func listSums(folder, version string, replaced []string, added []string) error {
	path := filepath.Join(folder, sumsName)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := slices.Clone(added)
	for line := range strings.Lines(string(before)) {
		_, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if slices.Contains(replaced, name) || !strings.HasPrefix(name, namePrefix(version)) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(folder, name)); err == nil {
			lines = append(lines, line)
		}
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(afterSum(a), afterSum(b)) })
	return replaceFile(path, []byte(strings.Join(lines, "")))
}

func afterSum(line string) string {
	_, name, _ := strings.Cut(line, "  ")
	return name
}

// replaceFile replaces a file atomically: it writes a temporary file and renames it.
func replaceFile(path string, content []byte) (err error) {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	// A leftover of an interrupted run may have another mode.
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(temporary)
		}
	}()
	_, err = file.Write(content)
	// Sync before the rename: after a power failure the name must not refer to an incomplete file.
	if err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close()); err != nil {
		return nextstep.With(err, "free disk space in %s, then make release", filepath.Dir(path))
	}
	return os.Rename(temporary, path)
}
