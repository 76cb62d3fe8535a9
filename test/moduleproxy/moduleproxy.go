// SPDX-License-Identifier: Apache-2.0

// Package moduleproxy offers modules that tests make to the go command: GOPROXY=file://<folder>.
package moduleproxy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Publish adds the files of a folder, go.mod among them, as a module to the proxy in another folder. The module is in
// the module cache neither before nor after the test.
func Publish(t *testing.T, proxy, folder string, version module.Version, cache string) {
	t.Helper()
	forget(t, cache, version.Path)
	t.Cleanup(func() { forget(t, cache, version.Path) })
	goMod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(proxy, version.Path, "@v")
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(place, version.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		zip.CreateFromDir(file, version, folder),
		file.Close(),
		os.WriteFile(filepath.Join(place, version.Version+".mod"), goMod, 0o644),
		os.WriteFile(filepath.Join(place, version.Version+".info"), []byte(`{"Version":"`+version.Version+`"}`), 0o644),
	); err != nil {
		t.Fatal(err)
	}
}

func forget(t *testing.T, cache, path string) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(cache, path+"@*"))
	if err != nil {
		t.Error(err)
	}
	for _, folder := range append(folders, filepath.Join(cache, "cache/download", path)) {
		// The go command makes its cache read-only.
		err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = os.Chmod(name, 0o755)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	}
}
