// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
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

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"kube-scheduler-fork/build/image"
	"kube-scheduler-fork/build/patches"
	"kube-scheduler-fork/build/source"
)

const (
	version = "v1.23.17+fork.0123456789ab"
	sum     = "h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU="
	commit  = "953be8927218ec8067e1af2641e540238ffd7576"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if folder, err := compiled(); err == nil {
		os.RemoveAll(folder)
	}
	os.Exit(code)
}

// compiled is a directory with the files of testdata/project.txtar, and the programs of a bundle below
// bin/<architecture>: all are the tool. It is made once per test binary.
var compiled = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "release-test-")
	if err != nil {
		return "", err
	}
	archive, err := txtar.ParseFile("testdata/project.txtar")
	if err != nil {
		return "", err
	}
	files, err := txtar.FS(archive)
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(folder, files); err != nil {
		return "", err
	}
	// Upstream has links to its staging modules.
	for _, name := range []string{"component-base", "staged"} {
		link := filepath.Join(folder, "kubernetes/vendor/k8s.io", name)
		err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink("../../staging/src/k8s.io/"+name, link))
		if err != nil {
			return "", err
		}
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		command := exec.Command("go", "build", "-mod=vendor", "-trimpath", "-ldflags", "-s -w -X main.version="+version,
			"-o", filepath.Join(folder, "bin", architecture), ".")
		command.Dir = filepath.Join(folder, "tool")
		command.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		if output, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w: %s", command.Args, err, output)
		}
	}
	return folder, nil
})

// want returns a file of testdata/project.txtar below want/, with the bundle's name and versions filled in.
func want(t *testing.T, name, architecture string) []string {
	t.Helper()
	content := readFile(t, filepath.Join(fixture(t), "want", name))
	content = strings.ReplaceAll(content, "TOP", Name(version, architecture))
	return strings.Split(strings.TrimSuffix(content, "\n"), "\n")
}

func fixture(t *testing.T) string {
	t.Helper()
	folder, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func tool(t *testing.T, architecture string) string {
	t.Helper()
	return filepath.Join(fixture(t), "bin", architecture)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// project copies the project to a new directory, makes its image, and returns the options of its bundle.
func project(t *testing.T, architecture string) Options {
	t.Helper()
	built, folder := fixture(t), t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(built, "project"))); err != nil {
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
	writeFile(t, zoneinfo, zones.String())
	created := time.Unix(1677072390, 0)
	options := Options{
		Architecture: architecture, Version: version, Kubernetes: "v1.23.17", Sum: sum, Commit: commit, Created: created,
		Image: filepath.Join(folder, "kube-scheduler.tar"), Extender: filepath.Join(folder, "scheduler-extender.tar"), Swap: tool(t, architecture), Kubectl: tool(t, architecture), Simulate: tool(t, architecture),
		Tree: filepath.Join(built, "kubernetes"), Project: folder, Patches: filepath.Join(folder, "patches"),
		ModuleCache: filepath.Join(built, "modules"), GoRoot: filepath.Join(built, "goroot"),
		UpstreamVersion: filepath.Join(folder, "upstream.version"), Modules: filepath.Join(folder, "modules.yaml"),
		ModulesPatch: filepath.Join(folder, "modules.patch"), CRDs: filepath.Join(folder, "crds"),
		Roots: debug.Module{Path: "golang.org/x/crypto/x509roots/fallback", Version: "v0.1.0", Sum: "h1:IWQr43WXjSLO/u5PP0+mDra2K1bhpapM6W+LXjbOYaw="},
	}
	var err error
	if options.Carried, err = source.ReadModules(options.Modules); err != nil {
		t.Fatal(err)
	}
	if options.Series, err = patches.Read(options.Patches); err != nil {
		t.Fatal(err)
	}
	options.Series = patches.Carried(options.Series, options.Carried)
	if options.Pin, err = source.ReadPin(options.UpstreamVersion); err != nil {
		t.Fatal(err)
	}
	for program, archive := range options.archives() {
		made, err := image.New(image.Options{
			Program: program, Binary: tool(t, architecture), LogRunner: tool(t, architecture), Zoneinfo: zoneinfo,
			Architecture: architecture, Version: version, Commit: commit, Created: created,
		})
		if err != nil {
			t.Fatal(err)
		}
		names, err := image.Names(program, version, architecture, "")
		if err == nil {
			err = image.WriteArchive(archive, made, names)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return options
}

func mustWrite(t *testing.T, folder string, options Options) (bundle, document string) {
	t.Helper()
	written, err := Write(folder, options)
	if err != nil {
		t.Fatal(err)
	}
	return written[0], written[1]
}

// read returns the content of each file in a directory.
func read(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			files[entry.Name()] = readFile(t, filepath.Join(folder, entry.Name()))
		}
	}
	return files
}

func TestWriteGivesTheSameBytes(t *testing.T) {
	options := project(t, "amd64")
	first, second := t.TempDir(), t.TempDir()
	mustWrite(t, first, options)

	// Another directory with other times and modes and other leftover files, and another umask.
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
	if len(want) != 5 {
		t.Errorf("%d files were written, not bundle, two SBOMs, provenance and SHA256SUMS", len(want))
	}
	for name := range want {
		if want[name] != got[name] {
			t.Errorf("the same inputs gave different bytes: %s and %s", sumLine([]byte(want[name]), name), sumLine([]byte(got[name]), name))
		}
		info, err := os.Stat(filepath.Join(second, name))
		if err != nil || info.Mode() != 0o644 {
			t.Errorf("%s: mode %v (%v), want -rw-r--r-- with any umask", name, info.Mode(), err)
		}
	}

	// Often enough to detect a random order of four binaries.
	for range 8 {
		files, _, err := assemble(options)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(named(files, "sbom"+spdxSuffix)); got != want[Name(version, "amd64")+".spdx.json"] {
			t.Fatal("the same inputs gave another SBOM")
		}
	}

	again.Created = again.Created.Add(time.Second)
	mustWrite(t, second, again)
	bundle := Name(version, "amd64") + ".tar.gz"
	if read(t, second)[bundle] == want[bundle] {
		t.Error("another creation time gave the same bytes")
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
		t.Errorf("the gzip header contains the name %q and the time %v", expander.Name, expander.ModTime)
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

func TestBundle(t *testing.T) {
	options := project(t, "amd64")
	bundle, _ := mustWrite(t, t.TempDir(), options)
	top := "kube-scheduler-v1.23.17_fork.0123456789ab-linux-amd64"
	if got := filepath.Base(bundle); got != top+".tar.gz" {
		t.Errorf("the bundle is %s, want %s.tar.gz", got, top)
	}
	all, contents := headers(t, bundle)
	var got []string
	for _, header := range all {
		got = append(got, header.FileInfo().Mode().String()+" "+header.Name)
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.Gname != "" || !header.ModTime.Equal(options.Created) {
			t.Errorf("%s: owner %d:%d %q:%q, time %v; want root by number, %v", header.Name, header.Uid, header.Gid,
				header.Uname, header.Gname, header.ModTime, options.Created)
		}
	}
	if diff := cmp.Diff(want(t, "bundle", "amd64"), got); diff != "" {
		t.Errorf("files in the bundle (-want +got):\n%s", diff)
	}
	for name, source := range map[string]string{
		"kube-scheduler.tar": options.Image, "scheduler-extender.tar": options.Extender, "kube-scheduler-swap": options.Swap, "kubectl-scheduling": options.Kubectl, "kube-scheduler-simulate": options.Simulate,
		"upstream.version": options.UpstreamVersion, "modules.yaml": options.Modules, "patches/0000-modules.patch": options.ModulesPatch,
		"crds/gangs.example.org.yaml":        filepath.Join(options.CRDs, "gangs.example.org.yaml"),
		"crds/own.example.org.yaml":          filepath.Join(options.Project, "manifests/crds/own.example.org.yaml"),
		"manifests/config/my-scheduler.yaml": filepath.Join(options.Project, "manifests/config/my-scheduler.yaml"),
	} {
		if contents[top+"/"+name] != readFile(t, source) {
			t.Errorf("%s differs in the bundle", name)
		}
	}
	for _, line := range want(t, "licences", "amd64") {
		name, text, _ := strings.Cut(line, ": ")
		if got := contents[top+"/licenses/"+name]; got != text+"\n" {
			t.Errorf("licenses/%s contains %q, want %q", name, got, text)
		}
	}
	if got, want := contents[top+"/patches/README.md"], "# Patches\n\n[0100-one](0100-one.patch), [0200-plugin-mine](0200-plugin-mine.patch)\n"; got != want {
		t.Errorf("patches/README.md is %q in the bundle, want %q", got, want)
	}
	// Pages with commands that a bundle lacks have a note.
	for name, noted := range map[string]bool{"README.md": true, "docs/plugins.md": true, "docs/operations.md": false} {
		page := readFile(t, filepath.Join(options.Project, name))
		if noted {
			title, rest, _ := strings.Cut(page, "\n")
			page = title + "\n" + checkoutNote + rest
		}
		if got := contents[top+"/"+name]; got != page {
			t.Errorf("%s in the bundle:\n%s\nwant\n%s", name, got, page)
		}
	}
}

func TestBundleOfAnotherRelease(t *testing.T) {
	options := project(t, "amd64")
	options.Kubernetes, options.Sum, options.Commit = "v1.23.1", "h1:2GZ1TzO1K+ZDg8W2EbXmMlRx2YLRnZqG5uCJ0KJFw1k=", ""
	bundle, _ := mustWrite(t, t.TempDir(), options)
	_, contents := headers(t, bundle)
	got := contents[Name(version, "amd64")+"/upstream.version"]
	want := "# The release and Go that this bundle was built from. The project pins another release.\n" +
		"KUBERNETES_VERSION=v1.23.1\nKUBERNETES_SUM=h1:2GZ1TzO1K+ZDg8W2EbXmMlRx2YLRnZqG5uCJ0KJFw1k=\nGO_VERSION=go1.27.4\n"
	if got != want {
		t.Errorf("upstream.version is\n%s\nwant\n%s", got, want)
	}
}

// check runs sha256sum over a directory's list, as an operator would, and returns the number of valid files.
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
	if files, err := check(t, folder); err != nil || files != 4 {
		t.Errorf("next to the bundle %d files match SHA256SUMS (%v), want bundle, SBOMs and provenance", files, err)
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
		t.Errorf("in the bundle %d files match SHA256SUMS (%v), want %d", files, err, want)
	}
	writeFile(t, filepath.Join(unpacked, "manifests/config/my-scheduler.yaml"), "changed\n")
	if _, err := check(t, unpacked); err == nil {
		t.Error("a changed file matches SHA256SUMS")
	}
}

func TestBundlesOfBothArchitecturesAreListedTogether(t *testing.T) {
	folder := t.TempDir()
	amd64, arm64 := project(t, "amd64"), project(t, "arm64")
	mustWrite(t, folder, amd64)
	mustWrite(t, folder, arm64)
	// A bundle with other inputs replaces the sum of its predecessor, and keeps that of the other bundle.
	amd64.Created = amd64.Created.Add(time.Second)
	mustWrite(t, folder, amd64)
	if files, err := check(t, folder); err != nil || files != 8 {
		t.Errorf("%d files match SHA256SUMS (%v), want 8", files, err)
	}
	// A damaged file must not get a new sum, and a file of another version must not stay listed.
	bundle := filepath.Join(folder, Name(version, "arm64")+".tar.gz")
	writeFile(t, bundle, "damaged")
	other := Name("v1.23.17+fork.ffffffffffff", "amd64") + ".tar.gz"
	list := filepath.Join(folder, sumsName)
	writeFile(t, list, readFile(t, list)+sumLine(nil, other))
	writeFile(t, filepath.Join(folder, other), "")
	mustWrite(t, folder, amd64)
	if _, err := check(t, folder); err == nil {
		t.Error("the damaged bundle got a new sum")
	}
	if strings.Contains(read(t, folder)[sumsName], other) {
		t.Error("a bundle of another version is still listed")
	}
}

// trusted checks that each file in SHA256SUMS exists and has that sum.
func trusted(t *testing.T, folder string) {
	t.Helper()
	files := read(t, folder)
	for line := range strings.Lines(files[sumsName]) {
		name := strings.TrimSuffix(afterSum(line), "\n")
		if content, there := files[name]; !there || sumLine([]byte(content), name) != line {
			t.Errorf("SHA256SUMS does not match %s", name)
		}
	}
}

func TestFailedWriteIsNotListed(t *testing.T) {
	folder := t.TempDir()
	options := project(t, "amd64")
	_, document := mustWrite(t, folder, options)
	// The second file cannot be moved to its place.
	if err := os.Remove(document); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(document, "in the way"), "")
	// An earlier run, of another version, was killed.
	writeFile(t, filepath.Join(folder, ".kube-scheduler-v1.23.17_fork.old-linux-amd64.tar.gz.new"), "")
	options.Created = options.Created.Add(time.Second)
	if _, err := Write(folder, options); err == nil {
		t.Fatal("Write returned no error for a directory at the path of the SBOM")
	}
	trusted(t, folder)
	if strings.Contains(read(t, folder)[sumsName], ".tar.gz") {
		t.Error("the bundle is listed although its SBOM is missing")
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(t *testing.T, options *Options)
		want   string
	}{
		{"an image of another version", func(_ *testing.T, options *Options) { options.Version = "v1.23.17+fork.ffffffffffff" }, "does not contain"},
		{"an image for another architecture", func(_ *testing.T, options *Options) { options.Architecture = "arm64" }, "not for arm64"},
		{"a swap tool for another architecture", func(t *testing.T, options *Options) { options.Swap = tool(t, "arm64") },
			"GOARCH=arm64, not GOARCH=amd64"},
		{"a plugin of kubectl for another architecture", func(t *testing.T, options *Options) { options.Kubectl = tool(t, "arm64") },
			"kubectl-scheduling was built with GOARCH=arm64, not GOARCH=amd64"},
		{"a swap tool without its version", func(t *testing.T, options *Options) {
			content := strings.ReplaceAll(readFile(t, options.Swap), version, strings.Repeat("x", len(version)))
			options.Swap = filepath.Join(t.TempDir(), "kube-scheduler-swap")
			writeFile(t, options.Swap, content)
		}, "does not contain its version"},
		{"no page to begin with", func(t *testing.T, options *Options) {
			if err := os.Remove(filepath.Join(options.Project, "README.md")); err != nil {
				t.Fatal(err)
			}
		}, "README.md"},
		{"a link among the manifests", func(t *testing.T, options *Options) {
			if err := os.Symlink("/etc/passwd", filepath.Join(options.Project, "manifests/link.yaml")); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		{"a module that is not in the cache", func(t *testing.T, options *Options) { options.ModuleCache = t.TempDir() },
			"the licence of example.org/Fork@v1.2.3"},
		{"a module without a licence", func(t *testing.T, options *Options) {
			options.ModuleCache = t.TempDir()
			writeFile(t, filepath.Join(options.ModuleCache, "golang.org/x/crypto/x509roots/fallback@v0.1.0/LICENSE"), "roots\n")
			writeFile(t, filepath.Join(options.ModuleCache, "example.org/!fork@v1.2.3/list.go"), "package listed\n")
		}, "contains no LICENSE, COPYING or NOTICE"},
		{"no Go that could have compiled it", func(t *testing.T, options *Options) { options.GoRoot = t.TempDir() }, "the licence of go: "},
		{"a tree without the scheduler", func(t *testing.T, options *Options) {
			options.Tree = t.TempDir()
			writeFile(t, filepath.Join(options.Tree, "go.mod"), "module k8s.io/kubernetes\n")
			writeFile(t, filepath.Join(options.Tree, "go.sum"), "")
		}, "cannot list the packages of k8s.io/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			options, folder := project(t, "amd64"), t.TempDir()
			test.change(t, &options)
			_, err := Write(folder, options)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "; next: ") {
				t.Errorf("Write = %v, want an error that contains %q and the next step", err, test.want)
			}
			if files := read(t, folder); len(files) > 0 {
				t.Errorf("files were written: %v", slices.Sorted(maps.Keys(files)))
			}
		})
	}
}
