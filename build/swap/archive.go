// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"sort"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/signature"
)

// schedulerInImage is the path of the scheduler in the image.
const schedulerInImage = "usr/local/bin/kube-scheduler"

// versionLabel is the image label with the output of `kube-scheduler --version`.
const versionLabel = "org.opencontainers.image.version"

// archive is an image archive on the node's disk.
type archive struct {
	path string
	// image is read lazily from the file.
	image v1.Image
	// id is the image ID in Docker and containerd: the digest of the image configuration, sha256:….
	id string
	// names are all names in the archive; name is the one for the manifest.
	names []string
	name  string
	// architecture and version are from the image configuration.
	architecture, version string
}

// openArchive reads an archive and verifies its content against its
// own manifest, so that a damaged archive is never run or loaded.
func openArchive(file string) (*archive, error) {
	damaged := func(err error) error {
		return nextstep.With(fmt.Errorf("the image archive %s is damaged or incomplete: %w", file, err),
			"copy it here again, and check it with sha256sum -c SHA256SUMS")
	}
	if err := refuseSpecial(file); err != nil {
		return nil, fmt.Errorf("the image archive: %w", err)
	}
	opener := func() (io.ReadCloser, error) { return os.Open(file) }
	manifest, err := tarball.LoadManifest(opener)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nextstep.With(fmt.Errorf("the image archive %s does not exist", file), "copy it to this node")
	} else if err != nil {
		return nil, damaged(err)
	}
	a := &archive{path: file}
	for _, descriptor := range manifest {
		a.names = append(a.names, descriptor.RepoTags...)
	}
	if len(a.names) == 0 {
		return nil, damaged(errors.New("it names no image"))
	}
	if err := verifyNames(file); err != nil {
		return nil, damaged(err)
	}
	// Prefer kubeadm's own repository.
	sort.SliceStable(a.names, func(i, j int) bool {
		return strings.HasPrefix(a.names[i], "registry.k8s.io/") && !strings.HasPrefix(a.names[j], "registry.k8s.io/")
	})
	for _, name := range a.names {
		image, id, config, err := imageOf(opener, name)
		if err != nil {
			return nil, damaged(fmt.Errorf("%s: %w", name, err))
		}
		if a.image == nil {
			if err := verifyLayers(image, config); err != nil {
				return nil, damaged(err)
			}
			a.name, a.image, a.id = name, image, id
			a.architecture, a.version = config.Architecture, config.Config.Labels[versionLabel]
		} else if id != a.id {
			return nil, nextstep.With(fmt.Errorf("%s contains several images (%s, %s)", file, a.name, name),
				"use the kube-scheduler.tar of the release bundle")
		}
	}
	return a, nil
}

// verifySignature returns an error for an archive without a good signature by the request's key.
func verifySignature(request Request) error {
	if request.Archive == "" {
		return nextstep.With(errors.New("--verify-key is given without --archive: an image in the container runtime has no signature"),
			"add --archive kube-scheduler.tar, or leave out --verify-key")
	}
	if err := refuseSpecial(request.Archive); err != nil {
		return fmt.Errorf("the image archive: %w", err)
	}
	return signature.Verify(request.VerifyKey, request.Archive)
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
	tag, err := parseTag(name)
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
