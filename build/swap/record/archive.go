// SPDX-License-Identifier: Apache-2.0

package record

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// SchedulerInImage is the path of the scheduler in the image.
const SchedulerInImage = "usr/local/bin/kube-scheduler"

// versionLabel is the image label with the output of `kube-scheduler --version`.
const versionLabel = "org.opencontainers.image.version"

// Archive is an image archive on the node's disk.
type Archive struct {
	Path string
	// image is read lazily from the file.
	image v1.Image
	// ID is the image ID in Docker and containerd: the digest of the image configuration, sha256:….
	ID string
	// Names are all names in the archive; name is the one for the manifest.
	Names []string
	Name  string
	// Architecture and version are from the image configuration.
	Architecture, Version string
}

// OpenArchive reads an archive and verifies its content against its
// own manifest, so that a damaged archive is never run or loaded.
func OpenArchive(file string) (*Archive, error) {
	damaged := func(err error) error {
		return nextstep.With(fmt.Errorf("the image archive %s is damaged or incomplete: %w", file, err),
			"copy it here again, and check it with sha256sum -c SHA256SUMS")
	}
	if err := RefuseSpecial(file); err != nil {
		return nil, fmt.Errorf("the image archive: %w", err)
	}
	opener := func() (io.ReadCloser, error) { return os.Open(file) }
	manifest, err := tarball.LoadManifest(opener)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nextstep.With(fmt.Errorf("the image archive %s does not exist", file), "copy it to this node, or name it with --archive")
	} else if err != nil {
		return nil, damaged(err)
	}
	a := &Archive{Path: file}
	for _, descriptor := range manifest {
		a.Names = append(a.Names, descriptor.RepoTags...)
	}
	if len(a.Names) == 0 {
		return nil, damaged(errors.New("it names no image"))
	}
	if err := verifyNames(file); err != nil {
		return nil, damaged(err)
	}
	// Prefer kubeadm's own repository.
	sort.SliceStable(a.Names, func(i, j int) bool {
		return strings.HasPrefix(a.Names[i], "registry.k8s.io/") && !strings.HasPrefix(a.Names[j], "registry.k8s.io/")
	})
	for _, name := range a.Names {
		image, id, config, err := imageOf(opener, name)
		if err != nil {
			return nil, damaged(fmt.Errorf("%s: %w", name, err))
		}
		if a.image == nil {
			if err := verifyLayers(image, config); err != nil {
				return nil, damaged(err)
			}
			a.Name, a.image, a.ID = name, image, id
			a.Architecture, a.Version = config.Architecture, config.Config.Labels[versionLabel]
		} else if id != a.ID {
			return nil, nextstep.With(fmt.Errorf("%s contains several images (%s, %s)", file, a.Name, name),
				"use the kube-scheduler.tar of the release bundle")
		}
	}
	return a, nil
}

// digestName matches a file name that is the SHA-256 sum of the
// content: an image configuration, a compressed layer, or a blob.
var digestName = regexp.MustCompile(`^(?:sha256:)?([0-9a-f]{64})(?:\.json|\.tar\.gz)?$`)

// verifyNames verifies the content of each file whose name is its SHA-256 sum.
func verifyNames(file string) error {
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close()
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		found := digestName.FindStringSubmatch(path.Base(header.Name))
		if header.Typeflag != tar.TypeReg || found == nil {
			continue
		}
		digest, _, err := v1.SHA256(reader)
		if err != nil {
			return err
		}
		if digest.Hex != found[1] {
			return fmt.Errorf("%s has the sum %s", header.Name, digest.Hex)
		}
	}
}

// verifyLayers verifies the layers of an image against its
// configuration. The library has already compared their number.
func verifyLayers(image v1.Image, config *v1.ConfigFile) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for i, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			return err
		}
		digest, _, err := v1.SHA256(content)
		if err := errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
		if digest != config.RootFS.DiffIDs[i] {
			return fmt.Errorf("layer %d has the sum %s, but the image's configuration has %s",
				i+1, digest, config.RootFS.DiffIDs[i])
		}
	}
	return nil
}

func imageOf(opener tarball.Opener, name string) (v1.Image, string, *v1.ConfigFile, error) {
	tag, err := manifest.ParseTag(name)
	if err != nil {
		return nil, "", nil, err
	}
	image, err := tarball.Image(opener, &tag)
	if err != nil {
		return nil, "", nil, err
	}
	id, err := image.ConfigName()
	if err != nil {
		return nil, "", nil, err
	}
	config, err := image.ConfigFile()
	return image, id.String(), config, err
}

// SaveImage saves an image for a rollback, unless it is saved already.
func (d Directory) SaveImage(name, id string, save func(file string) error) error {
	file := d.ImageFile(name)
	// A saved file is always complete; its content is verified before it is loaded.
	tag, err := manifest.ParseTag(name)
	if err != nil {
		return err
	}
	if _, kept, _, err := imageOf(func() (io.ReadCloser, error) { return os.Open(file) }, tag.String()); err == nil && kept == id {
		return nil
	}
	if err := CreateDirectory(d.images()); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(d.Path, ".scratch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	saved := filepath.Join(scratch, "image.tar")
	if err := save(saved); err != nil {
		return err
	}
	return os.Rename(saved, file)
}
