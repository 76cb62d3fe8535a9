// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kube-scheduler-fork/build/image"
)

const (
	version = "v1.23.17+fork.0123456789ab"
	sum     = "h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU="
	commit  = "953be8927218ec8067e1af2641e540238ffd7576"
)

// interrupted is set for the copy of this test's program that is killed while it writes bundles.
const interrupted = "RELEASE_TEST_OPTIONS"

func TestMain(m *testing.M) {
	if options := os.Getenv(interrupted); options != "" {
		writeForEver(options)
	}
	code := m.Run()
	if binaries.folder != "" {
		os.RemoveAll(binaries.folder)
	}
	os.Exit(code)
}

// sources is a tiny Kubernetes in a Go path, a swap tool in a module of its own, and a plugin of kubectl in another. Of the packages that its scheduler
// imports one is used, one is inlined to the last call, one has nothing that is called, and two lie in staging modules.
var sources = map[string]string{
	"go/src/k8s.io/kubernetes/cmd/kube-scheduler/main.go": `package main

import (
	"example.org/NotCalled"
	"example.org/inlined/v2/add"
	"example.org/used"
	"example.org/used/carried"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/staged/deep"
)

var never *notcalled.Type

func main() { println(used.Print(), carried.Print(), add.One(len(used.Print())), scheduler.Name(), deep.Print()) }
`,
	"go/src/k8s.io/kubernetes/pkg/scheduler/scheduler.go": `package scheduler

//go:noinline
func Name() string { return "scheduler" }
`,
	"go/src/k8s.io/kubernetes/vendor/example.org/used/used.go": `package used

//go:noinline
func Print() string { return "used" }
`,
	"go/src/k8s.io/kubernetes/vendor/example.org/used/carried/carried.go": `package carried

//go:noinline
func Print() string { return "carried" }
`,
	"go/src/k8s.io/kubernetes/vendor/example.org/inlined/v2/add/add.go": `package add

func One(n int) int { return n*n + 1 }
`,
	"go/src/k8s.io/kubernetes/vendor/example.org/NotCalled/notcalled.go": `package notcalled

type Type struct{}

func (Type) Call() {}
`,
	"go/src/k8s.io/kubernetes/staging/src/k8s.io/staged/deep/deep.go": `package deep

//go:noinline
func Print() string { return "deep" }
`,
	"go/src/k8s.io/kubernetes/vendor/k8s.io/logs/kube-log-runner/main.go": `package main

func main() { println(1) }
`,
	"go/src/k8s.io/kubernetes/vendor/modules.txt": `# example.org/NotCalled v0.9.0 => example.org/NotCalled v0.9.0
## explicit
example.org/NotCalled
# example.org/inlined/v2 v2.0.0 => example.org/inlined/v2 v2.0.1
## explicit; go 1.16
example.org/inlined/v2/add
# example.org/used v1.0.0+incompatible
example.org/used
example.org/used/carried
# k8s.io/staged v0.0.0 => ./staging/src/k8s.io/staged
k8s.io/staged/deep
# k8s.io/logs v0.0.0 => ./staging/src/k8s.io/logs
# example.org/used => example.org/used v1.0.0+incompatible
`,
	"go/src/k8s.io/kubernetes/go.sum": `example.org/used v1.0.0+incompatible h1:used=
example.org/used v1.0.0+incompatible/go.mod h1:mod=
`,
	"go/src/k8s.io/kubernetes/LICENSE":                                 "Kubernetes\n",
	"go/src/k8s.io/kubernetes/docs/LICENSE":                            "not in a binary\n",
	"go/src/k8s.io/kubernetes/third_party/forked/golang/LICENSE":       "taken over from Go\n",
	"go/src/k8s.io/kubernetes/staging/src/k8s.io/staged/LICENSE":       "staged\n",
	"go/src/k8s.io/kubernetes/vendor/example.org/NotCalled/LICENSE":    "not in a binary\n",
	"go/src/k8s.io/kubernetes/vendor/example.org/inlined/v2/COPYING":   "inlined\n",
	"go/src/k8s.io/kubernetes/vendor/example.org/used/LICENSE":         "used\n",
	"go/src/k8s.io/kubernetes/vendor/example.org/used/NOTICE.txt":      "used, too\n",
	"go/src/k8s.io/kubernetes/vendor/example.org/used/license.go":      "package used\n",
	"go/src/k8s.io/kubernetes/vendor/example.org/used/forked/LICENSE":  "taken over\n",
	"go/src/k8s.io/kubernetes/vendor/example.org/used/testdata/NOTICE": "not in a binary\n",
	"go/src/k8s.io/kubernetes/vendor/k8s.io/logs/LICENSE":              "logs\n",
	"modules/example.org/!fork@v1.2.3/license.md":                      "Fork\n",
	"modules/golang.org/x/crypto/x509roots/fallback@v0.1.0/LICENSE":    "roots\n",
	"goroot/LICENSE":     "Go\n",
	"goroot/PATENTS":     "Go's\n",
	"goroot/src/LICENSE": "not read\n",

	"kubectl/go.mod": "module example.org/kubectl\n\ngo 1.26\n",
	"kubectl/main.go": `package main

var version string

func main() { println(version) }
`,

	"swap/go.mod": `module example.org/swap

go 1.26

require example.org/listed v1.0.0

replace example.org/listed => example.org/Fork v1.2.3
`,
	"swap/main.go": `package main

import "example.org/listed"

var version string

func main() { println(version, listed.Name) }
`,
	"swap/vendor/modules.txt": `# example.org/listed v1.0.0 => example.org/Fork v1.2.3
## explicit
example.org/listed
# example.org/listed => example.org/Fork v1.2.3
`,
	"swap/vendor/example.org/listed/list.go": `package listed

const Name = "listed"
`,
}

// binaries are compiled once: "<folder>/amd64/kube-scheduler", and so on.
var binaries struct {
	once   sync.Once
	folder string
	err    error
}

func compiled(t *testing.T) string {
	t.Helper()
	binaries.once.Do(func() {
		if binaries.folder, binaries.err = os.MkdirTemp("", "release-test-"); binaries.err != nil {
			return
		}
		if binaries.err = writeAll(binaries.folder, sources); binaries.err != nil {
			return
		}
		link := filepath.Join(binaries.folder, "go/src/k8s.io/kubernetes/vendor/k8s.io/staged")
		if binaries.err = os.Symlink("../../staging/src/k8s.io/staged", link); binaries.err != nil {
			return
		}
		goPath, swap, kubectl := filepath.Join(binaries.folder, "go"), filepath.Join(binaries.folder, "swap"), filepath.Join(binaries.folder, "kubectl")
		for _, architecture := range []string{"amd64", "arm64"} {
			for _, one := range []struct{ name, folder, target, module string }{
				{"kube-scheduler", goPath, "k8s.io/kubernetes/cmd/kube-scheduler", "off"},
				{"kube-log-runner", goPath, "k8s.io/kubernetes/vendor/k8s.io/logs/kube-log-runner", "off"},
				{"kube-scheduler-swap", swap, ".", "on"},
				{"kubectl-scheduling", kubectl, ".", "on"},
			} {
				command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version,
					"-o", filepath.Join(binaries.folder, architecture, one.name), one.target)
				command.Dir = one.folder
				command.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off",
					"GO111MODULE="+one.module, "GOPATH="+goPath)
				if output, err := command.CombinedOutput(); err != nil {
					binaries.err = fmt.Errorf("%v: %w: %s", command.Args, err, output)
					return
				}
			}
		}
	})
	if binaries.err != nil {
		t.Fatal(binaries.err)
	}
	return binaries.folder
}

func writeAll(folder string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

const pin = "KUBERNETES_VERSION=v1.23.17\nKUBERNETES_COMMIT=" + commit + "\nKUBERNETES_SUM=" + sum + "\nGO_VERSION=go1.27.4\n"

const (
	carriedSum = "h1:HNkLOAEQMIDv/K+04rukrLx6ch7msSRwf3/SASFAGtQ="
	inlinedSum = "h1:IWQr43WXjSLO/u5PP0+mDra2K1bhpapM6W+LXjbOYaw="
)

// A package of its own, and one of a dependency.
const carried = "modules:\n- module: example.org/inlined/v2\n  version: v2.0.1\n  packages: [add]\n  sum: " + inlinedSum +
	"\n  plugins: [{name: Gang, package: add, constructor: New}]\n  dependencies:\n  - module: example.org/used\n" +
	"    version: v1.0.0+incompatible\n    packages: [carried]\n    sum: " + carriedSum + "\n"

const patch = `From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: A Person <person@localhost>
Date: Sun, 9 Sep 2001 01:46:40 +0000
Subject: [PATCH] scheduler: change a name

Body.

Why: the test.
Upstream-Status: Inappropriate
Applies-To: v1.23.0 - v1.23.17
Drop-When: never

diff --git a/pkg/scheduler/scheduler.go b/pkg/scheduler/scheduler.go
--- a/pkg/scheduler/scheduler.go
+++ b/pkg/scheduler/scheduler.go
@@ -1 +1 @@
-package one
+package two
`

// project makes a project in a folder of its own, and gives the options of its bundle.
func project(t *testing.T, architecture string) Options {
	t.Helper()
	built, folder := compiled(t), t.TempDir()
	if err := writeAll(folder, map[string]string{
		"manifests/config/my-scheduler.yaml":            "kind: KubeSchedulerConfiguration\n",
		"manifests/config/my-scheduler.yaml~":           "an editor's\n",
		"manifests/config/.my-scheduler.yaml.swp":       "an editor's\n",
		"manifests/.hidden/file":                        "a user's\n",
		"manifests/second-scheduler/kustomization.yaml": "kind: Kustomization\n",
		"docs/operations.md":                            "# Operations\n",
		"docs/plugins.md":                               "# Plugins\n",
		"docs/.#plugins.md":                             "an editor's\n",
		"docs/notes.txt":                                "somebody's\n",
		"README.md":                                     "# Kubernetes\n",
		"patches/0100-one.patch":                        patch,
		"patches/0200-two.patch":                        patch,
		"patches/README.md":                             "# Patches\n",
		"patches/notes.txt":                             "a user's\n",
		"upstream.version":                              pin,
		"modules.yaml":                                  carried,
		"modules.patch":                                 patch,
		"crds/gangs.example.org.yaml":                   "kind: CustomResourceDefinition\n",
		// For a module that is not carried.
		"patches/0700-gangs.patch": strings.Replace(patch, "Why:", "Module: example.org/gangs\nWhy:", 1),
	}); err != nil {
		t.Fatal(err)
	}
	zoneinfo := filepath.Join(folder, "zoneinfo.zip")
	var zones bytes.Buffer
	archive := zip.NewWriter(&zones)
	if _, err := archive.Create("Europe/Berlin"); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(zoneinfo, zones.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	created := time.Unix(1677072390, 0)
	made, err := image.New(image.Options{
		Scheduler: filepath.Join(built, architecture, "kube-scheduler"), LogRunner: filepath.Join(built, architecture, "kube-log-runner"),
		Zoneinfo: zoneinfo, Architecture: architecture, Version: version, Commit: commit, Created: created,
	})
	if err != nil {
		t.Fatal(err)
	}
	names, err := image.Names(version, architecture, "")
	if err != nil {
		t.Fatal(err)
	}
	options := Options{
		Architecture: architecture, Version: version, Kubernetes: "v1.23.17", Sum: sum, Commit: commit, Created: created,
		Image: filepath.Join(folder, "kube-scheduler.tar"), Swap: filepath.Join(built, architecture, "kube-scheduler-swap"),
		Kubectl: filepath.Join(built, architecture, "kubectl-scheduling"),
		Tree:    filepath.Join(built, "go/src/k8s.io/kubernetes"), Project: folder, Patches: filepath.Join(folder, "patches"),
		ModuleCache: filepath.Join(built, "modules"), GoRoot: filepath.Join(built, "goroot"),
		UpstreamVersion: filepath.Join(folder, "upstream.version"), Modules: filepath.Join(folder, "modules.yaml"),
		ModulesPatch: filepath.Join(folder, "modules.patch"), CRDs: filepath.Join(folder, "crds"),
		Roots: debug.Module{Path: "golang.org/x/crypto/x509roots/fallback", Version: "v0.1.0", Sum: "h1:roots="},
	}
	if err := image.WriteArchive(options.Image, made, names); err != nil {
		t.Fatal(err)
	}
	return options
}

func mustWrite(t *testing.T, folder string, options Options) (bundle, document string) {
	t.Helper()
	bundle, document, err := Write(folder, options)
	if err != nil {
		t.Fatal(err)
	}
	return bundle, document
}

// read gives the content of each file in a folder.
func read(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(content)
	}
	return files
}

func TestSameInputsSameBytes(t *testing.T) {
	options := project(t, "amd64")
	first, second := t.TempDir(), t.TempDir()
	mustWrite(t, first, options)

	// Another folder, with other times and modes of the files, and other files' remains; another umask.
	again := project(t, "amd64")
	if err := filepath.WalkDir(again.Project, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if err := os.Chmod(path, 0o700); err != nil {
			return err
		}
		return os.Chtimes(path, time.Unix(1, 0), time.Unix(2, 0))
	}); err != nil {
		t.Fatal(err)
	}
	before := syscall.Umask(0o077)
	mustWrite(t, second, again)
	syscall.Umask(before)
	want, got := read(t, first), read(t, second)
	if len(want) != 3 {
		t.Errorf("%d files were written, not bundle, SBOM and SHA256SUMS", len(want))
	}
	for name := range want {
		if want[name] != got[name] {
			t.Errorf("the same inputs gave different bytes: %s and %s", sumLine([]byte(want[name]), name), sumLine([]byte(got[name]), name))
		}
		info, err := os.Stat(filepath.Join(second, name))
		if err != nil || info.Mode() != 0o644 {
			t.Errorf("%s: mode %v (%v), want -rw-r--r-- whatever the umask", name, info.Mode(), err)
		}
	}

	// Often enough to see a random order of four binaries.
	for range 8 {
		files, err := assemble(options)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(named(files, documentName)); got != want[Name(version, "amd64")+".spdx.json"] {
			t.Fatal("the same inputs gave another SBOM")
		}
	}

	again.Created = again.Created.Add(time.Second)
	mustWrite(t, second, again)
	bundle := Name(version, "amd64") + ".tar.gz"
	if read(t, second)[bundle] == want[bundle] {
		t.Error("another time gave the same bytes: is it in the bundle at all?")
	}
}

// headers reads the entries of a bundle, and the contents of its files by name.
func headers(t *testing.T, bundle string) ([]*tar.Header, map[string]string) {
	t.Helper()
	file, err := os.Open(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	expander, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if expander.Name != "" || !expander.ModTime.IsZero() {
		t.Errorf("the header of gzip holds name %q and time %v", expander.Name, expander.ModTime)
	}
	var all []*tar.Header
	contents := map[string]string{}
	for reader := tar.NewReader(expander); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return all, contents
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, header)
		contents[header.Name] = string(content)
	}
}

func TestBundleHoldsExactlyThis(t *testing.T) {
	options := project(t, "amd64")
	if err := os.WriteFile(filepath.Join(options.Project, "LICENSE"), []byte("licence\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bundle, _ := mustWrite(t, t.TempDir(), options)
	if got, want := filepath.Base(bundle), "kube-scheduler-v1.23.17_fork.0123456789ab-linux-amd64.tar.gz"; got != want {
		t.Errorf("the bundle is called %s, want %s", got, want)
	}
	const top = "kube-scheduler-v1.23.17_fork.0123456789ab-linux-amd64/"
	want := []string{
		"drwxr-xr-x " + top,
		"-rw-r--r-- " + top + "LICENSE",
		"-rw-r--r-- " + top + "README.md",
		"-rw-r--r-- " + top + "SHA256SUMS",
		"drwxr-xr-x " + top + "crds/",
		"-rw-r--r-- " + top + "crds/gangs.example.org.yaml",
		"drwxr-xr-x " + top + "docs/",
		"-rw-r--r-- " + top + "docs/operations.md",
		"-rw-r--r-- " + top + "docs/plugins.md",
		"-rwxr-xr-x " + top + "kube-scheduler-swap",
		"-rw-r--r-- " + top + "kube-scheduler.tar",
		"-rwxr-xr-x " + top + "kubectl-scheduling",
	}
	licences := map[string]string{
		"example.org/Fork@v1.2.3/license.md":                  "Fork\n",
		"example.org/inlined/v2@v2.0.1/COPYING":               "inlined\n",
		"example.org/used@v1.0.0+incompatible/LICENSE":        "used\n",
		"example.org/used@v1.0.0+incompatible/NOTICE.txt":     "used, too\n",
		"example.org/used@v1.0.0+incompatible/forked/LICENSE": "taken over\n",
		"go/LICENSE": "Go\n",
		"go/PATENTS": "Go's\n",
		"golang.org/x/crypto/x509roots/fallback@v0.1.0/LICENSE":        "roots\n",
		"k8s.io/kubernetes@v1.23.17/LICENSE":                           "Kubernetes\n",
		"k8s.io/kubernetes@v1.23.17/third_party/forked/golang/LICENSE": "taken over from Go\n",
		"k8s.io/logs@v0.23.17/LICENSE":                                 "logs\n",
		"k8s.io/staged@v0.23.17/LICENSE":                               "staged\n",
	}
	folders := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(licences)) {
		var above string
		for _, part := range strings.SplitAfter("licenses/"+name, "/") {
			if above += part; strings.HasSuffix(above, "/") && !folders[above] {
				folders[above] = true
				want = append(want, "drwxr-xr-x "+top+above)
			}
		}
		want = append(want, "-rw-r--r-- "+top+"licenses/"+name)
	}
	want = append(want,
		"drwxr-xr-x "+top+"manifests/",
		"drwxr-xr-x "+top+"manifests/config/",
		"-rw-r--r-- "+top+"manifests/config/my-scheduler.yaml",
		"drwxr-xr-x "+top+"manifests/second-scheduler/",
		"-rw-r--r-- "+top+"manifests/second-scheduler/kustomization.yaml",
		"-rw-r--r-- "+top+"modules.yaml",
		"drwxr-xr-x "+top+"patches/",
		"-rw-r--r-- "+top+"patches/0000-modules.patch",
		"-rw-r--r-- "+top+"patches/0100-one.patch",
		"-rw-r--r-- "+top+"patches/0200-two.patch",
		"-rw-r--r-- "+top+"patches/README.md",
		"-rw-r--r-- "+top+"sbom.spdx.json",
		"-rw-r--r-- "+top+"upstream.version",
	)
	all, contents := headers(t, bundle)
	var got []string
	for _, header := range all {
		got = append(got, header.FileInfo().Mode().String()+" "+header.Name)
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.Gname != "" || !header.ModTime.Equal(options.Created) {
			t.Errorf("%s: owner %d:%d %q:%q, time %v; want root by number, %v", header.Name, header.Uid, header.Gid,
				header.Uname, header.Gname, header.ModTime, options.Created)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the bundle holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for name, source := range map[string]string{
		"kube-scheduler.tar": options.Image, "kube-scheduler-swap": options.Swap, "kubectl-scheduling": options.Kubectl, "upstream.version": options.UpstreamVersion,
		"modules.yaml": options.Modules, "crds/gangs.example.org.yaml": filepath.Join(options.CRDs, "gangs.example.org.yaml"), "patches/0000-modules.patch": options.ModulesPatch,
		"manifests/config/my-scheduler.yaml": filepath.Join(options.Project, "manifests/config/my-scheduler.yaml"),
	} {
		content, err := os.ReadFile(source)
		if err != nil || contents[top+name] != string(content) {
			t.Errorf("%s is not the same in the bundle (%v)", name, err)
		}
	}
	for name, text := range licences {
		if got := contents[top+"licenses/"+name]; got != text {
			t.Errorf("licenses/%s holds %q, want %q", name, got, text)
		}
	}
}

func TestPagesSayWhichCommandsABundleLacks(t *testing.T) {
	options := project(t, "amd64")
	pages := map[string]string{
		"README.md":          "# Kubernetes\n\nThen:\n\n    make run\n",
		"docs/plugins.md":    "# Plugins\n\nEach is run by `make test`.\n",
		"docs/operations.md": "# Operations\n\nPods make way for others.\n\n    kube-scheduler-swap check\n",
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(options.Project, name), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bundle, _ := mustWrite(t, t.TempDir(), options)
	_, contents := headers(t, bundle)
	for name, page := range pages {
		title, rest, _ := strings.Cut(page, "\n")
		want := title + "\n" + checkoutNote + rest
		if name == "docs/operations.md" {
			want = page
		}
		if got := contents["kube-scheduler-v1.23.17_fork.0123456789ab-linux-amd64/"+name]; got != want {
			t.Errorf("%s in the bundle:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestPinOfAnotherReleaseIsNotClaimed(t *testing.T) {
	options := project(t, "amd64")
	options.Kubernetes, options.Sum, options.Commit = "v1.23.1", "h1:other=", ""
	bundle, _ := mustWrite(t, t.TempDir(), options)
	_, contents := headers(t, bundle)
	got := contents[Name(version, "amd64")+"/upstream.version"]
	want := "# What this bundle was built from; it is not what the project pins.\n" +
		"KUBERNETES_VERSION=v1.23.1\nKUBERNETES_SUM=h1:other=\nGO_VERSION=go1.27.4\n"
	if got != want {
		t.Errorf("upstream.version is\n%s\nwant\n%s", got, want)
	}
}

// check runs sha256sum over the list in a folder, as an operator would, and gives the number of its files.
func check(t *testing.T, folder string) (int, error) {
	t.Helper()
	command := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	command.Dir = folder
	output, err := command.Output()
	return strings.Count(string(output), ": OK\n"), err
}

func TestSumsAreWhatSha256sumReads(t *testing.T) {
	folder := t.TempDir()
	bundle, _ := mustWrite(t, folder, project(t, "amd64"))
	if files, err := check(t, folder); err != nil || files != 2 {
		t.Errorf("beside the bundle %d files are listed and well (%v), want bundle and SBOM", files, err)
	}
	unpacked := t.TempDir()
	if output, err := exec.Command("tar", "-xzf", bundle, "-C", unpacked).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, output)
	}
	unpacked = filepath.Join(unpacked, Name(version, "amd64"))
	all, _ := headers(t, bundle)
	want := -1 // SHA256SUMS itself
	for _, header := range all {
		if header.Typeflag == tar.TypeReg {
			want++
		}
	}
	if files, err := check(t, unpacked); err != nil || files != want {
		t.Errorf("in the bundle %d files are listed and well (%v), want %d", files, err, want)
	}
	if err := os.WriteFile(filepath.Join(unpacked, "manifests/config/my-scheduler.yaml"), []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := check(t, unpacked); err == nil {
		t.Error("a changed file was not noticed")
	}
}

func TestBundlesOfBothArchitecturesAreListedTogether(t *testing.T) {
	folder := t.TempDir()
	amd64, arm64 := project(t, "amd64"), project(t, "arm64")
	mustWrite(t, folder, amd64)
	mustWrite(t, folder, arm64)
	// Made once more with other inputs: its new sum replaces the old one, the other's stays.
	amd64.Created = amd64.Created.Add(time.Second)
	mustWrite(t, folder, amd64)
	if files, err := check(t, folder); err != nil || files != 4 {
		t.Errorf("%d files are listed and well (%v), want 4", files, err)
	}
	// What lies there damaged must not get a new sum, nor what is of another version stay.
	bundle := filepath.Join(folder, Name(version, "arm64")+".tar.gz")
	if err := os.WriteFile(bundle, []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := Name("v1.23.17+fork.ffffffffffff", "amd64") + ".tar.gz"
	list, err := os.OpenFile(filepath.Join(folder, sumsName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := list.WriteString(sumLine(nil, other)); err != nil {
		t.Fatal(err)
	}
	if err := list.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, other), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, folder, amd64)
	if _, err := check(t, folder); err == nil {
		t.Error("the damaged bundle got a new sum")
	}
	if strings.Contains(read(t, folder)[sumsName], other) {
		t.Error("a bundle of another version is still listed")
	}
}

// trusted fails if SHA256SUMS vouches for anything that is not there as it says.
func trusted(t *testing.T, folder string) {
	t.Helper()
	files := read(t, folder)
	for line := range strings.Lines(files[sumsName]) {
		name := strings.TrimSuffix(afterSum(line), "\n")
		if content, there := files[name]; !there || sumLine([]byte(content), name) != line {
			t.Errorf("SHA256SUMS vouches for %s, which is not so", name)
		}
	}
}

func TestFailedWriteIsNotListed(t *testing.T) {
	folder := t.TempDir()
	options := project(t, "amd64")
	_, document := mustWrite(t, folder, options)
	// The second of the two files cannot be put into place.
	if err := os.Remove(document); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(document, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	// An earlier run, of another version, was killed.
	if err := os.WriteFile(filepath.Join(folder, ".kube-scheduler-v1.23.17_fork.old-linux-amd64.tar.gz.new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	options.Created = options.Created.Add(time.Second)
	if _, _, err := Write(folder, options); err == nil {
		t.Fatal("a folder in the way of the SBOM was no error")
	}
	trusted(t, folder)
	if strings.Contains(read(t, folder)[sumsName], ".tar.gz") {
		t.Error("the bundle is listed although its SBOM is missing")
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// writeForEver writes bundles with ever other contents, and says when it begins. It ends by being killed.
func writeForEver(argument string) {
	var arguments struct {
		Folder  string
		Options Options
	}
	if err := json.Unmarshal([]byte(argument), &arguments); err != nil {
		panic(err)
	}
	for {
		arguments.Options.Created = arguments.Options.Created.Add(time.Second)
		fmt.Println("begins")
		if _, _, err := Write(arguments.Folder, arguments.Options); err != nil {
			panic(err)
		}
	}
}

func TestKilledWriteIsNotListed(t *testing.T) {
	folder := t.TempDir()
	options := project(t, "amd64")
	begin := time.Now()
	mustWrite(t, folder, options)
	lasts := time.Since(begin)
	argument, err := json.Marshal(map[string]any{"Folder": folder, "Options": options})
	if err != nil {
		t.Fatal(err)
	}
	const kills = 16
	for i := range kills {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), interrupted+"="+string(argument))
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		// Spread over what one bundle takes, and half of it more.
		kill := time.AfterFunc(lasts*3/2*time.Duration(i)/kills, func() { _ = command.Process.Kill() })
		if err := command.Wait(); err == nil || command.ProcessState.ExitCode() != -1 {
			t.Fatalf("it ended by itself: %v", err)
		}
		kill.Stop()
		trusted(t, folder)
	}
	mustWrite(t, folder, options)
	if files, err := check(t, folder); err != nil || files != 2 {
		t.Errorf("afterwards %d files are listed and well (%v), want 2", files, err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestUnfitInputsAreRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(t *testing.T, options *Options)
		want   string
	}{
		{"an image of another version", func(_ *testing.T, options *Options) { options.Version = "v1.23.17+fork.ffffffffffff" }, "holds no"},
		{"an image for another architecture", func(_ *testing.T, options *Options) { options.Architecture = "arm64" }, "not for arm64"},
		{"a swap tool for another architecture", func(t *testing.T, options *Options) {
			options.Swap = filepath.Join(compiled(t), "arm64", "kube-scheduler-swap")
		}, "GOARCH=arm64, not GOARCH=amd64"},
		{"a swap tool without its version", func(t *testing.T, options *Options) {
			content, err := os.ReadFile(options.Swap)
			if err != nil {
				t.Fatal(err)
			}
			options.Swap = filepath.Join(t.TempDir(), "kube-scheduler-swap")
			content = bytes.ReplaceAll(content, []byte(version), []byte(strings.Repeat("x", len(version))))
			if err := os.WriteFile(options.Swap, content, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "does not know its version"},
		{"a plugin of kubectl for another architecture", func(t *testing.T, options *Options) {
			options.Kubectl = filepath.Join(compiled(t), "arm64", "kubectl-scheduling")
		}, "kubectl-scheduling was built with GOARCH=arm64, not GOARCH=amd64"},
		{"no page to begin with", func(t *testing.T, options *Options) {
			if err := os.Remove(filepath.Join(options.Project, "README.md")); err != nil {
				t.Fatal(err)
			}
		}, "README.md"},
		{"a link among the manifests", func(t *testing.T, options *Options) {
			if err := os.Symlink("/etc/passwd", filepath.Join(options.Project, "manifests/link.yaml")); err != nil {
				t.Fatal(err)
			}
		}, "not a plain file"},
		{"a module that is not in the cache", func(t *testing.T, options *Options) {
			options.ModuleCache = t.TempDir()
		}, "the licence of golang.org/x/"},
		{"a module without a licence", func(t *testing.T, options *Options) {
			options.ModuleCache = t.TempDir()
			if err := writeAll(options.ModuleCache, map[string]string{
				"golang.org/x/crypto/x509roots/fallback@v0.1.0/LICENSE": "roots\n",
				"example.org/!fork@v1.2.3/list.go":                      "package listed\n",
			}); err != nil {
				t.Fatal(err)
			}
		}, "the licence of example.org/Fork@v1.2.3: there is no LICENSE"},
		{"no Go that could have compiled it", func(t *testing.T, options *Options) { options.GoRoot = t.TempDir() }, "the licence of go: "},
		{"a tree that the binaries were not made from", func(t *testing.T, options *Options) {
			options.Tree = t.TempDir()
			if err := writeAll(options.Tree, map[string]string{
				"vendor/modules.txt": "# example.org/other v1.0.0\nexample.org/other\n", "go.sum": "",
				"modules.yaml": "modules: []\n",
			}); err != nil {
				t.Fatal(err)
			}
			options.Modules = filepath.Join(options.Tree, "modules.yaml")
		}, "does not name the package"},
		{"a tree without what is carried", func(t *testing.T, options *Options) {
			other := strings.Replace(carried, "[carried]", "[other]", 1)
			if err := os.WriteFile(options.Modules, []byte(other), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "does not name example.org/used/other, which modules.yaml does"},
	} {
		t.Run(test.name, func(t *testing.T) {
			options, folder := project(t, "amd64"), t.TempDir()
			test.change(t, &options)
			_, _, err := Write(folder, options)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "; next: ") {
				t.Errorf("Write = %v, want an error that says %q and what is next", err, test.want)
			}
			if files := read(t, folder); len(files) > 0 {
				t.Errorf("something was written: %v", slices.Sorted(maps.Keys(files)))
			}
		})
	}
}
