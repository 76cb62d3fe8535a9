// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"
)

// The staging modules of the tests.
var staging = map[string]bool{"k8s.io/api": true, "k8s.io/apimachinery": true, "k8s.io/client-go": true}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnpublishModFile(t *testing.T) {
	for name, tt := range map[string]struct{ published, want string }{
		"requirements and replacements of staging modules point into the tree": {
			published: "// This is a generated file. Do not edit directly.\n\nmodule k8s.io/client-go\n\ngo 1.19\n\nrequire (\n" +
				"\tgithub.com/gogo/protobuf v1.3.2\n\tk8s.io/api v0.23.17\n\tk8s.io/apimachinery v0.23.17\n\tk8s.io/klog/v2 v2.30.0\n)\n\n" +
				"replace (\n\tk8s.io/api => k8s.io/api v0.23.17\n\tk8s.io/apimachinery => k8s.io/apimachinery v0.23.17\n)\n",
			want: "// This is a generated file. Do not edit directly.\n\nmodule k8s.io/client-go\n\ngo 1.19\n\nrequire (\n" +
				"\tgithub.com/gogo/protobuf v1.3.2\n\tk8s.io/api v0.0.0\n\tk8s.io/apimachinery v0.0.0\n\tk8s.io/klog/v2 v2.30.0\n)\n\n" +
				"replace (\n\tk8s.io/api => ../api\n\tk8s.io/apimachinery => ../apimachinery\n\tk8s.io/client-go => ../client-go\n)\n",
		},
		"a module that requires no other replaces itself": {
			published: "module k8s.io/apimachinery\n\ngo 1.16\n\nrequire github.com/gogo/protobuf v1.3.2\n",
			want:      "module k8s.io/apimachinery\n\ngo 1.16\n\nrequire github.com/gogo/protobuf v1.3.2\n\nreplace k8s.io/apimachinery => ../apimachinery\n",
		},
		"the replacement of a module that is not staging stays": {
			published: "module k8s.io/api\n\ngo 1.16\n\nreplace golang.org/x/net => golang.org/x/net v0.7.0\n",
			want:      "module k8s.io/api\n\ngo 1.16\n\nreplace (\n\tgolang.org/x/net => golang.org/x/net v0.7.0\n\tk8s.io/api => ../api\n)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, "go.mod", tt.published)
			if err := unpublishModFile(file, "v0.23.17", staging); err != nil {
				t.Fatal(err)
			}
			if got := readFile(t, file); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestUnpublishSumFile(t *testing.T) {
	file := writeFile(t, "go.sum", "k8s.io/api v0.23.17 h1:a=\nk8s.io/api v0.23.17/go.mod h1:b=\nk8s.io/api v0.20.0/go.mod h1:c=\nk8s.io/klog/v2 v2.30.0 h1:d=\n")
	if err := unpublishSumFile(file, "v0.23.17", staging); err != nil {
		t.Fatal(err)
	}
	if got, want := readFile(t, file), "k8s.io/api v0.20.0/go.mod h1:c=\nk8s.io/klog/v2 v2.30.0 h1:d=\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := unpublishSumFile(filepath.Join(t.TempDir(), "none"), "v0.23.17", staging); err != nil {
		t.Errorf("a module without go.sum: %v", err)
	}
}

func TestExecutableScripts(t *testing.T) {
	dir := t.TempDir()
	modes := map[string]os.FileMode{"script.sh": 0o755, "data": 0o644, "short": 0o644, "empty": 0o644}
	for name, content := range map[string]string{"script.sh": "#!/bin/bash\n", "data": "text\n", "short": "#", "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := executableScripts(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range modes {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
}

// moduleZip writes a module zip with the given entries, and returns the matching download.
func moduleZip(t *testing.T, entries map[string]string) download {
	t.Helper()
	path := filepath.Join(t.TempDir(), "module.zip")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	writer := zip.NewWriter(file)
	for name, content := range entries {
		entry, err := writer.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(writer.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	sum, err := dirhash.HashZip(path, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	return download{Path: "k8s.io/api", Version: "v0.23.17", Zip: path, Sum: sum}
}

func TestExtract(t *testing.T) {
	good := moduleZip(t, map[string]string{"k8s.io/api@v0.23.17/core/v1/types.go": "package v1\n"})
	dir := t.TempDir()
	if err := extract(good, dir); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, filepath.Join(dir, "core/v1/types.go")); got != "package v1\n" {
		t.Errorf("extracted %q", got)
	}

	changed := moduleZip(t, map[string]string{"k8s.io/api@v0.23.17/core/v1/types.go": "package evil\n"})
	changed.Sum = good.Sum
	outside := moduleZip(t, map[string]string{"k8s.io/api@v0.23.17/../../../evil": "x"})
	foreign := moduleZip(t, map[string]string{"k8s.io/other@v0.23.17/x": "x"})
	for name, tt := range map[string]struct {
		download download
		want     string
	}{
		"a zip that was changed in the module cache": {changed, "next: go clean -modcache"},
		"a path that leads outside":                  {outside, "malformed file path"},
		"a file of another module":                   {foreign, "does not have prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := extract(tt.download, dir); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("extract = %v, want an error that contains %q", err, tt.want)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
				t.Errorf("something was extracted: %v (%v)", entries, err)
			}
		})
	}
}

func TestDownloadErrors(t *testing.T) {
	for message, want := range map[string]struct {
		notAvailable bool
		text         string
	}{
		"reading https://proxy/x.info: 403 Forbidden":                 {true, "next: make image SOURCE=git"},
		"reading https://proxy/x.info: 404 Not Found":                 {true, "next: make image SOURCE=git"},
		"reading file:///x/x.info: no such file or directory":         {true, "next: make image SOURCE=git"},
		"verifying module: checksum mismatch":                         {false, "next: go clean -modcache"},
		"dial tcp 127.0.0.1:1: connect: connection refused":           {false, "next: check that the module proxy"},
		"Get \"https://proxy/x.zip\": unexpected EOF":                 {false, "next: check that the module proxy"},
		"write /cache/x.zip: no space left on device (502 not found)": {false, "next: check that the module proxy"},
	} {
		err := downloadError(download{Path: "k8s.io/api", Version: "v0.23.17", Error: message})
		if errors.Is(err, ErrNotAvailable) != want.notAvailable || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%q gives %v, want not available %v and %q", message, err, want.notAvailable, want.text)
		}
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
