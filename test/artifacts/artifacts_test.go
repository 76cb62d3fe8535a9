// SPDX-License-Identifier: Apache-2.0

// Package artifacts tests what people get: what `make image` made, the tree, the binary and the archive under _output,
// and the manifests. It fails where something is missing; `make test` makes it first.
package artifacts

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"kube-scheduler-fork/build/image"
	"kube-scheduler-fork/build/patches"
	"kube-scheduler-fork/build/source"
)

// The project's folder, from this package's.
const root = "../.."

var (
	output    = outputFolder()
	scheduler = filepath.Join(output, "bin/linux", runtime.GOARCH, "kube-scheduler")
	archive   = filepath.Join(output, "release-images", runtime.GOARCH, "kube-scheduler.tar")
	tree      = filepath.Join(output, "kubernetes")
)

func outputFolder() string {
	if folder := os.Getenv("OUTPUT"); folder != "" {
		return folder
	}
	folder, err := filepath.Abs(filepath.Join(root, "_output"))
	if err != nil {
		panic(err)
	}
	return folder
}

func pin(t *testing.T) source.Pin {
	t.Helper()
	pin, err := source.ReadPin(filepath.Join(root, "upstream.version"))
	if err != nil {
		t.Fatal(err)
	}
	return pin
}

// version is what the build must be called, computed from the pin, the modules and the patches in the checkout.
func version(t *testing.T) string {
	t.Helper()
	series, err := patches.ReadFolders(filepath.Join(root, "patches"), filepath.Join(root, "plugins"))
	if err != nil {
		t.Fatal(err)
	}
	modules, err := source.ReadModules(filepath.Join(root, "modules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pin := pin(t)
	version, err := patches.Version(pin.Version, "fork", pin.Sum, pin.GoVersion, modules, series)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func run(t *testing.T, name string, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, arguments...)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	output, err := command.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

func TestVersionString(t *testing.T) {
	want := "Kubernetes " + version(t)
	if !regexp.MustCompile(`^Kubernetes v1\.23\.17\+fork\.[0-9a-f]{12}$`).MatchString(want) {
		t.Errorf("the version %q is not of the form v1.23.17+fork.<12 hex>", want)
	}
	got, err := run(t, scheduler, "--version")
	if err != nil || got != want {
		t.Errorf("kube-scheduler --version prints %q (%v), want %q; next: make image", got, err, want)
	}
}

func TestBinaryTellsNothingOfItsBuilder(t *testing.T) {
	info, err := buildinfo.ReadFile(scheduler)
	if err != nil {
		t.Fatal(err)
	}
	if want := pin(t).GoVersion; info.GoVersion != want {
		t.Errorf("built with %s, want %s", info.GoVersion, want)
	}
	for _, setting := range info.Settings {
		if setting.Key == "DefaultGODEBUG" {
			t.Errorf("compiled with old defaults of Go, which docs/go-version.md decides against: %s", setting.Value)
		}
	}
	content, err := os.ReadFile(scheduler)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.EvalSymlinks(tree)
	if err != nil {
		t.Fatal(err)
	}
	goRoot, err := run(t, "go", "env", "GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, goRoot} {
		if bytes.Contains(content, []byte(path)) {
			t.Errorf("the binary contains the path %s", path)
		}
	}
}

// TestUpstreamFiles compares the tree's base with what git has for the tag: kind, mode and blob id of chosen files,
// links, scripts, staging and vendored files among them.
func TestUpstreamFiles(t *testing.T) {
	want, err := os.ReadFile("testdata/upstream-" + pin(t).Version + ".ls-tree")
	if err != nil {
		t.Fatal(err)
	}
	base := base(t)
	for line := range strings.Lines(string(want)) {
		line = strings.TrimSuffix(line, "\n")
		_, path, _ := strings.Cut(line, "\t")
		if got, err := run(t, "git", "-C", tree, "ls-tree", base, "--", path); err != nil || got != line {
			t.Errorf("%s is %q (%v), want %q", path, got, err, line)
		}
	}
}

// base is the commit of upstream's tree.
func base(t *testing.T) string {
	t.Helper()
	base, err := run(t, "git", "config", "-f", filepath.Join(tree, ".git/kube-scheduler"), "--get", "applied.base")
	if err != nil {
		t.Fatalf("%s has no base: %v; next: make tree", tree, err)
	}
	return base
}

// TestSourcesAgree makes a git repository whose tag is the tree as Go modules have it, fetches it the git way, and
// compares the two trees. The git way hashes the checkout as a module zip, and so must come to the pinned sum.
func TestSourcesAgree(t *testing.T) {
	dir := t.TempDir()
	pin := pin(t)
	repository := filepath.Join(dir, "upstream")
	base := base(t)
	for _, arguments := range [][]string{
		{"init", "-q", "--bare", repository},
		{"-C", tree, "push", "-q", repository, base + ":refs/heads/release", base + ":refs/tags/" + pin.Version},
	} {
		if output, err := run(t, "git", arguments...); err != nil {
			t.Fatalf("git %v: %v: %s", arguments, err, output)
		}
	}
	versionFile := filepath.Join(dir, "upstream.version")
	lines := fmt.Sprintf("KUBERNETES_VERSION=%s\nKUBERNETES_COMMIT=%s\nKUBERNETES_SUM=%s\nGO_VERSION=%s\n", pin.Version, base, pin.Sum, pin.GoVersion)
	if err := os.WriteFile(versionFile, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", root, "source")
	command.Env = append(os.Environ(), "OUTPUT="+filepath.Join(dir, "_output"), "UPSTREAM_VERSION_FILE="+versionFile,
		"KUBERNETES_GIT_URL=file://"+repository, "SOURCE=git", "UPSTREAM=")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("make source: %v\n%s", err, output)
	}
	fetched, err := run(t, "git", "-C", filepath.Join(dir, "_output/kubernetes"), "rev-parse", "HEAD^{tree}")
	if err != nil {
		t.Fatal(err)
	}
	want, err := run(t, "git", "-C", tree, "rev-parse", base+"^{tree}")
	if err != nil {
		t.Fatal(err)
	}
	if fetched != want {
		t.Errorf("the tree fetched by git is %s, the one from modules %s", fetched, want)
	}
}

func TestArchiveIsADropIn(t *testing.T) {
	version := version(t)
	names, err := image.Names(image.Scheduler, version, runtime.GOARCH, "")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(names), fmt.Sprintf("[registry.k8s.io/kube-scheduler:%[1]s k8s.gcr.io/kube-scheduler-%[2]s:%[1]s]",
		strings.Replace(version, "+", "_", 1), runtime.GOARCH); got != want {
		t.Errorf("names %s, want %s", got, want)
	}
	for _, name := range names {
		if _, err := tarball.ImageFromPath(archive, &name); err != nil {
			t.Fatalf("%s: %v; next: make image", name, err)
		}
	}
	// skopeo and crane do not name an image, and accept only one.
	made, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := made.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH || fmt.Sprint(config.Config.Entrypoint) != "[/go-runner]" {
		t.Errorf("the image is for %s/%s and starts %v", config.OS, config.Architecture, config.Config.Entrypoint)
	}
	for label, want := range map[string]string{
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.revision": pin(t).Commit,
		"org.opencontainers.image.source":   "https://github.com/kubernetes/kubernetes",
	} {
		if got := config.Config.Labels[label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}

	files := readFiles(t, made)
	built, err := os.ReadFile(scheduler)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(files["usr/local/bin/kube-scheduler"].content, built) {
		t.Error("usr/local/bin/kube-scheduler is not the binary that was built")
	}
	for name, mode := range map[string]int64{
		"usr/local/bin/kube-scheduler": 0o755, "go-runner": 0o755, "etc/passwd": 0o644, "tmp": 0o1777,
	} {
		if file, there := files[name]; !there {
			t.Errorf("%s is missing", name)
		} else if file.header.Mode != mode || file.header.Uid != 0 {
			t.Errorf("%s has mode %o and belongs to %d, want %o and 0", name, file.header.Mode, file.header.Uid, mode)
		}
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"].content) {
		t.Error("the certificate authorities cannot be read")
	}
	if _, err := time.LoadLocationFromTZData("Europe/Berlin", files["usr/share/zoneinfo/Europe/Berlin"].content); err != nil {
		t.Errorf("the time zone Europe/Berlin cannot be read: %v", err)
	}
}

func TestLayoutHoldsBothArchitectures(t *testing.T) {
	index, tag, err := image.ReadLayout(filepath.Join(output, "release-images/oci"))
	if err != nil {
		t.Fatal(err)
	}
	if want := image.Tag(version(t)); tag != want {
		t.Errorf("the layout's tag is %s, want %s", tag, want)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, descriptor := range manifest.Manifests {
		platforms = append(platforms, descriptor.Platform.String())
		made, err := index.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(made); err != nil {
			t.Errorf("%s: %v", descriptor.Platform, err)
		}
		// The archive of the same architecture holds the same image.
		name, err := name.NewTag("registry.k8s.io/kube-scheduler:" + tag)
		if err != nil {
			t.Fatal(err)
		}
		archived, err := tarball.ImageFromPath(filepath.Join(output, "release-images", descriptor.Platform.Architecture, "kube-scheduler.tar"), &name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := archived.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := made.ConfigName(); err != nil || got != want {
			t.Errorf("%s: the image id is %s (%v) in the layout, %s in the archive", descriptor.Platform, got, err, want)
		}
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("the layout is for %s, want linux/amd64 linux/arm64", got)
	}
}

type archived struct {
	header  *tar.Header
	content []byte
}

// readFiles gives the files of an image as a container would see them.
func readFiles(t *testing.T, image v1.Image) map[string]archived {
	t.Helper()
	stream := mutate.Extract(image)
	defer stream.Close()
	files := map[string]archived{}
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = archived{header, content}
	}
}
