// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const version = "v1.23.17+fork.0123456789ab"

// options returns the inputs of an image for both architectures. The binaries are a small static program.
func options(t *testing.T) map[string]Options {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "main.go")
	write(t, program, "package main\n\nfunc main() {}\n")
	zoneinfo := filepath.Join(dir, "zoneinfo.zip")
	archive, err := os.Create(zoneinfo)
	if err != nil {
		t.Fatal(err)
	}
	writer := zip.NewWriter(archive)
	entry, err := writer.Create("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write([]byte("TZif")); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	all := map[string]Options{}
	for _, architecture := range []string{"amd64", "arm64"} {
		binary := filepath.Join(dir, architecture)
		command := exec.Command("go", "build", "-o", binary, program)
		command.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v: %s", err, output)
		}
		all[architecture] = Options{
			Program: Scheduler, Binary: binary, LogRunner: binary, Zoneinfo: zoneinfo, Architecture: architecture,
			Version: version, Commit: strings.Repeat("0", 40), Created: time.Unix(1677072390, 0),
		}
	}
	return all
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func assemble(t *testing.T, options Options) v1.Image {
	t.Helper()
	image, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestSameInputsSameBytes(t *testing.T) {
	all := options(t)
	names, err := Names(Scheduler, version, "amd64", "registry.example.com/team")
	if err != nil {
		t.Fatal(err)
	}
	var sums []string
	for range 2 {
		images := []v1.Image{assemble(t, all["amd64"]), assemble(t, all["arm64"])}
		// Often enough to detect a random order of three names.
		for range 4 {
			dir := t.TempDir()
			archive := filepath.Join(dir, "archive", "kube-scheduler.tar")
			if err := WriteArchive(archive, images[0], names); err != nil {
				t.Fatal(err)
			}
			layout := filepath.Join(dir, "oci")
			if err := WriteLayout(layout, version, images); err != nil {
				t.Fatal(err)
			}
			var content []byte
			for _, file := range []string{archive, filepath.Join(layout, "index.json")} {
				written, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				content = append(content, written...)
			}
			sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(content)))
		}
	}
	for _, sum := range sums {
		if sum != sums[0] {
			t.Errorf("the same inputs gave different bytes: %s and %s", sums[0], sum)
		}
	}
	later := all["amd64"]
	later.Created = later.Created.Add(time.Second)
	first, err := assemble(t, all["amd64"]).Digest()
	if err != nil {
		t.Fatal(err)
	}
	second, err := assemble(t, later).Digest()
	if err != nil {
		t.Fatal(err)
	}
	if first == second {
		t.Error("another time gave the same image: it is not in there")
	}
}

func TestArchiveHasAllNames(t *testing.T) {
	names, err := Names(Scheduler, version, "amd64", "registry.example.com/team/")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tag := range names {
		got = append(got, tag.String())
	}
	want := "registry.k8s.io/kube-scheduler:v1.23.17_fork.0123456789ab k8s.gcr.io/kube-scheduler-amd64:v1.23.17_fork.0123456789ab " +
		"registry.example.com/team/kube-scheduler:v1.23.17_fork.0123456789ab"
	if strings.Join(got, " ") != want {
		t.Errorf("names %s, want %s", got, want)
	}
	path := filepath.Join(t.TempDir(), "kube-scheduler.tar")
	if err := WriteArchive(path, assemble(t, options(t)["amd64"]), names); err != nil {
		t.Fatal(err)
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil || len(manifest) != 1 || strings.Join(manifest[0].RepoTags, " ") != want {
		t.Errorf("the archive lists %v (%v), want one image with the names %s", manifest, err, want)
	}
	// A reader that is not told a name, like skopeo and crane, accepts only one image.
	if read, err := tarball.ImageFromPath(path, nil); err != nil {
		t.Error(err)
	} else if err := validate.Image(read); err != nil {
		t.Error(err)
	}
	extender, err := Names(Extender, version, "amd64", "registry.example.com/team")
	if got := fmt.Sprint(extender); err != nil || got != "[localhost/scheduler-extender:v1.23.17_fork.0123456789ab "+
		"registry.example.com/team/scheduler-extender:v1.23.17_fork.0123456789ab]" {
		t.Errorf("names of the extender's image: %s, %v", got, err)
	}
	if _, err := Names(Scheduler, version, "amd64", "Not A Registry"); err == nil || !strings.Contains(err.Error(), "next: ") {
		t.Errorf("a registry that cannot be gives %v, want an error with the next command", err)
	}
}

func TestNewRefusesWhatWouldNotStart(t *testing.T) {
	all := options(t)
	other := all["amd64"]
	other.Binary = all["arm64"].Binary
	text := all["amd64"]
	text.LogRunner = filepath.Join(t.TempDir(), "text")
	write(t, text.LogRunner, "#!/bin/sh\n")
	missing := all["amd64"]
	missing.Binary = filepath.Join(t.TempDir(), "none")
	unknown := all["amd64"]
	unknown.Architecture = "s390x"
	noZones := all["amd64"]
	noZones.Zoneinfo = missing.Binary
	for name, tt := range map[string]struct {
		options Options
		want    string
	}{
		"a binary of another architecture": {other, "is for EM_AARCH64, not for amd64; next: make binary ARCH=amd64"},
		"a script":                         {text, "next: make binary"},
		"no binary":                        {missing, "next: make binary"},
		"an unknown architecture":          {unknown, `"s390x" is unknown`},
		"no time zones":                    {noZones, "the time zones of Go"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want an error that contains %q", err, tt.want)
			}
		})
	}
	// The test's own binary is dynamic only under the race detector; bash always is.
	if runtime.GOARCH == "amd64" {
		if shell, err := exec.LookPath("bash"); err == nil {
			dynamic := all["amd64"]
			dynamic.Binary = shell
			if _, err := New(dynamic); err == nil || !strings.Contains(err.Error(), "is not static") {
				t.Errorf("a dynamic binary gives %v, want an error", err)
			}
		}
	}
}

func TestFailedWriteLeavesTheOldArchive(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kube-scheduler.tar")
	write(t, path, "old")
	image := assemble(t, options(t)["amd64"])
	// A directory at the path of the temporary file makes writing fail.
	if err := os.Mkdir(filepath.Join(dir, ".kube-scheduler.tar.new"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".kube-scheduler.tar.new", "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	names, err := Names(Scheduler, version, "amd64", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteArchive(path, image, names); err == nil {
		t.Fatal("writing succeeded")
	}
	content, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(content, []byte("old")) {
		t.Errorf("the old archive is now %q (%v)", content, err)
	}
}

func TestPush(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(registry.New())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	all := options(t)
	layout := filepath.Join(t.TempDir(), "oci")
	if err := WriteLayout(layout, version, []v1.Image{assemble(t, all["amd64"]), assemble(t, all["arm64"])}); err != nil {
		t.Fatal(err)
	}
	index, tag, err := ReadLayout(layout)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := Push(context.Background(), host+"/team", tag, index)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(host + "/team/kube-scheduler:v1.23.17_fork.0123456789ab")
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Index(reference)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pushed.Digest(); err != nil || !strings.HasSuffix(digest.String(), got.String()) {
		t.Errorf("pushed %s, the registry has %s (%v)", digest, got, err)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		image, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
		if err != nil {
			t.Fatal(err)
		}
		want, err := assemble(t, all[architecture]).Digest()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := image.Digest(); err != nil || got != want {
			t.Errorf("%s: the registry has %s (%v), want %s", architecture, got, err, want)
		}
	}

	for registry, want := range map[string]string{
		"":                 "no registry is given",
		"127.0.0.1:1/team": "next: docker login 127.0.0.1:1",
	} {
		if _, err := Push(context.Background(), registry, tag, index); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Push to %q = %v, want an error that contains %q", registry, err, want)
		}
	}
	if _, _, err := ReadLayout(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "next: make oci") {
		t.Errorf("ReadLayout of nothing = %v, want the next command", err)
	}
}
