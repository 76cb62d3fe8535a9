// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"k8s.io/client-go/kubernetes/fake"
)

// archiveWith writes the archive of an image with files, and returns its path.
func archiveWith(t *testing.T, files map[string]string) string {
	t.Helper()
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	for name, text := range files {
		if err := writer.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	image, err = mutate.Config(image, v1.Config{Labels: map[string]string{versionLabel: "v1.23.17+test"}})
	if err != nil {
		t.Fatal(err)
	}
	return writeImage(t, image)
}

func writeImage(t *testing.T, image v1.Image) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(file, name.MustParseReference("registry.k8s.io/kube-scheduler:test"), image); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAnImageWithOtherLayersThanItSaysIsRefused(t *testing.T) {
	whole, err := openArchive(archiveWith(t, map[string]string{schedulerInImage: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	config, err := whole.image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.RootFS.DiffIDs = []v1.Hash{{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}}
	other, err := mutate.ConfigFile(whole.image, config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openArchive(writeImage(t, other)); err == nil || !strings.Contains(err.Error(), "the image's configuration has sha256:0000") {
		t.Errorf("%v", err)
	}
}

// The test damages every fifth byte in turn: an accepted archive must still hold the same image.
func TestADamagedArchiveIsRefused(t *testing.T) {
	file := archiveWith(t, map[string]string{schedulerInImage: strings.Repeat("the scheduler ", 20)})
	whole, err := openArchive(file)
	if err != nil {
		t.Fatal(err)
	}
	if whole.version != "v1.23.17+test" || whole.name != "registry.k8s.io/kube-scheduler:test" {
		t.Errorf("the archive holds %s, %s", whole.name, whole.version)
	}
	content := []byte(get(t, file))
	refused := 0
	for offset := 0; offset < len(content); offset += 5 {
		damaged := bytes.Clone(content)
		damaged[offset] ^= 1
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := openArchive(file)
		if err != nil {
			refused++
			continue
		}
		if found.id != whole.id {
			t.Fatalf("byte %d: another image is accepted, %s", offset, found.id)
		}
		folder := t.TempDir()
		if err := found.unpack(folder); err != nil {
			t.Fatalf("byte %d: accepted, and cannot be unpacked: %v", offset, err)
		}
		if got := get(t, filepath.Join(folder, schedulerInImage)); got != strings.Repeat("the scheduler ", 20) {
			t.Fatalf("byte %d: accepted with the scheduler %q", offset, got)
		}
	}
	if refused == 0 {
		t.Error("no damage is noticed")
	}
	for _, size := range []int{0, 100, len(content) / 2} {
		if err := os.WriteFile(file, content[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openArchive(file); err == nil {
			t.Errorf("the first %d bytes are accepted", size)
		}
	}
}

func TestAnImageWithoutASchedulerIsRefused(t *testing.T) {
	found, err := openArchive(archiveWith(t, map[string]string{"bin/other": "x"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := found.unpack(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no /"+schedulerInImage) {
		t.Errorf("%v", err)
	}
}

func TestAnUnsignedArchiveIsRefused(t *testing.T) {
	key := put(t, filepath.Join(t.TempDir(), "release.pub"), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJKzJ3Yk1fWmM0VJ1bn5HcWk0l9k2yhmnHLdlbsL1rkQ\n")
	archive := archiveWith(t, map[string]string{schedulerInImage: "x"})
	put(t, filepath.Join(filepath.Dir(archive), "SHA256SUMS"), "")
	for want, request := range map[string]Request{
		archive + " is not signed":            {Archive: archive, VerifyKey: key},
		"--verify-key is given without":       {VerifyKey: key},
		"--verify-key is given without --arc": {VerifyKey: key, Image: "ours:1"},
	} {
		tool := toolFor(t, stock)
		tool.node.runtime, tool.node.cluster = &runtime{images: noImages{}}, &cluster{client: fake.NewSimpleClientset()}
		findings, err := tool.Check(t.Context(), request)
		var found strings.Builder
		findings.Write(&found)
		if err != nil || !strings.Contains(found.String(), want) {
			t.Errorf("check: %v, want %q in:\n%s", err, want, found.String())
		}
		if err := tool.Install(t.Context(), request); err == nil || !strings.Contains(err.Error(), want) || get(t, tool.manifest) != stock {
			t.Errorf("install: %v, want %q, and the manifest as before", err, want)
		}
	}
}
