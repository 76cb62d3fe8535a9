// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kube-scheduler-fork/build/image"
)

// imageRecipe must change whenever the same binary results in a different image, so that older images are not reused.
const imageRecipe = "1"

// buildImages writes archives of the images that kubeadm needs, with
// kubeadm's names for them. Images of unchanged binaries are reused.
func (h *Hub) buildImages(ctx context.Context) error {
	kubeadm := filepath.Join(h.programs, "kubeadm")
	list := exec.CommandContext(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", h.version)
	// kubeadm warns that there is no internet.
	var messages bytes.Buffer
	list.Stderr = &messages
	output, err := list.Output()
	if err != nil {
		return fmt.Errorf("%s cannot list the images that it needs: %w: %s; next: %s",
			kubeadm, err, strings.TrimSpace(messages.String()), nextScript)
	}
	for _, imageName := range strings.Fields(string(output)) {
		component, _, _ := strings.Cut(path.Base(imageName), ":")
		target := "/usr/local/bin/" + component
		switch component {
		case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd":
		case "pause":
			target = "/pause"
			h.pauseImage = imageName
		default:
			// kube-proxy and CoreDNS are left out of the cluster.
			continue
		}
		archive := filepath.Join(h.folder, "images", component+".tar")
		if err := BuildImage(archive, imageName, filepath.Join(h.programs, component), target); err != nil {
			return err
		}
		h.images = append(h.images, archive)
	}
	if h.pauseImage == "" {
		return fmt.Errorf("%s config images list has no pause image; next: run this command", kubeadm)
	}
	return nil
}

// BuildImage writes an archive of an image that has only a static binary,
// its entry point. An existing archive of the same inputs is reused.
func BuildImage(archive, imageName, binary, target string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("image %s: %w; next: %s builds it", imageName, err, nextScript)
	}
	inputs := fmt.Sprintf("%s %s %s %x\n", imageRecipe, imageName, target, sha256.Sum256(content))
	inputsFile := strings.TrimSuffix(archive, ".tar") + ".inputs"
	if made, err := os.ReadFile(inputsFile); err == nil && string(made) == inputs {
		if _, err := os.Stat(archive); err == nil {
			return nil
		}
	}
	tag, err := name.NewTag(imageName, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("image name: %w; next: use the form registry/name:tag", err)
	}
	layer, err := layerOf(content, target)
	if err != nil {
		return err
	}
	built, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	config.Config.Entrypoint = []string{target}
	if built, err = mutate.ConfigFile(built, config); err != nil {
		return err
	}
	// The inputs are written last: an archive without them is incomplete and rebuilt.
	if err := os.RemoveAll(inputsFile); err != nil {
		return err
	}
	if err := image.WriteArchive(archive, built, []name.Tag{tag}); err != nil {
		return err
	}
	return os.WriteFile(inputsFile, []byte(inputs), 0o644)
}

// layerOf returns a layer with one file. It is not compressed,
// because that is faster for an image that stays on this machine.
func layerOf(content []byte, target string) (v1.Layer, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	folder := ""
	for _, part := range strings.Split(path.Dir(target), "/") {
		if folder = path.Join(folder, part); folder == "" {
			continue
		}
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: target[1:], Mode: 0o755, Size: int64(len(content))})
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(writer, bytes.NewReader(content)); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return static.NewLayer(buffer.Bytes(), types.DockerUncompressedLayer), nil
}
