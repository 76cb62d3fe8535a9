// SPDX-License-Identifier: Apache-2.0

package record

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

	"kube-scheduler-fork/build/swap/swaptest"
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
	whole, err := OpenArchive(archiveWith(t, map[string]string{SchedulerInImage: "x"}))
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
	if _, err := OpenArchive(writeImage(t, other)); err == nil || !strings.Contains(err.Error(), "the image's configuration has sha256:0000") {
		t.Errorf("%v", err)
	}
}

// The test damages every fifth byte in turn: an accepted archive must still hold the same image.
func TestADamagedArchiveIsRefused(t *testing.T) {
	file := archiveWith(t, map[string]string{SchedulerInImage: strings.Repeat("the scheduler ", 20)})
	whole, err := OpenArchive(file)
	if err != nil {
		t.Fatal(err)
	}
	if whole.Version != "v1.23.17+test" || whole.Name != "registry.k8s.io/kube-scheduler:test" {
		t.Errorf("the archive holds %s, %s", whole.Name, whole.Version)
	}
	content := []byte(swaptest.Get(t, file))
	refused := 0
	for offset := 0; offset < len(content); offset += 5 {
		damaged := bytes.Clone(content)
		damaged[offset] ^= 1
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := OpenArchive(file)
		if err != nil {
			refused++
			continue
		}
		if found.ID != whole.ID {
			t.Fatalf("byte %d: another image is accepted, %s", offset, found.ID)
		}
		folder := t.TempDir()
		if err := found.Unpack(folder); err != nil {
			t.Fatalf("byte %d: accepted, and cannot be unpacked: %v", offset, err)
		}
		if got := swaptest.Get(t, filepath.Join(folder, SchedulerInImage)); got != strings.Repeat("the scheduler ", 20) {
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
		if _, err := OpenArchive(file); err == nil {
			t.Errorf("the first %d bytes are accepted", size)
		}
	}
}

func TestAnImageWithoutASchedulerIsRefused(t *testing.T) {
	found, err := OpenArchive(archiveWith(t, map[string]string{"bin/other": "x"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Unpack(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no /"+SchedulerInImage) {
		t.Errorf("%v", err)
	}
}
