// SPDX-License-Identifier: Apache-2.0

// Package swaptest has the fixtures of the swap tool's tests.
package swaptest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Passed waits until the manifest is a given age.
func Passed(t *testing.T, file string, since time.Duration) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(info.ModTime().Add(since)))
}

// Put writes a file and its directory, and returns its path.
func Put(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Get returns the content of a file.
func Get(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Names returns the names of the files in a directory.
func Names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}
