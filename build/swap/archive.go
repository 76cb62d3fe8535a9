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
)

// schedulerInImage is where the image has the scheduler.
const schedulerInImage = "usr/local/bin/kube-scheduler"

// versionLabel is the image's label that holds what `kube-scheduler --version` prints.
const versionLabel = "org.opencontainers.image.version"

// archive is an image archive on the node's disk.
type archive struct {
	path string
	// image is read from the file when it is needed.
	image v1.Image
	// id is the image's id in docker and in containerd: the digest of its configuration, sha256:….
	id string
	// names are the names in the archive; name is the one that goes into the manifest.
	names []string
	name  string
	// architecture and version are what the image says of itself.
	architecture, version string
}

// openArchive reads an archive, and sees that all of it is what its own manifest says: nothing of a damaged one is ever
// run or loaded.
func openArchive(file string) (*archive, error) {
	damaged := func(err error) error {
		return nextstep.With(fmt.Errorf("the image archive %s is damaged or not whole: %w", file, err),
			"copy it here again, whole; sha256sum -c SHA256SUMS tells")
	}
	if err := refuseSpecial(file); err != nil {
		return nil, fmt.Errorf("the image archive: %w", err)
	}
	opener := func() (io.ReadCloser, error) { return os.Open(file) }
	manifest, err := tarball.LoadManifest(opener)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nextstep.With(fmt.Errorf("the image archive %s is not there", file), "copy it to this node")
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
	// kubeadm's own repository goes before all others.
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
			return nil, nextstep.With(fmt.Errorf("%s holds several images (%s, %s)", file, a.name, name),
				"take the kube-scheduler.tar of the release bundle")
		}
	}
	return a, nil
}

// digestName is the name of a file in an archive that tells the SHA-256 sum of its content: of an image's
// configuration, of a layer as it is packed, or of a blob.
var digestName = regexp.MustCompile(`^(?:sha256:)?([0-9a-f]{64})(?:\.json|\.tar\.gz)?$`)

// verifyNames sees that each file of an archive whose name is the sum of its content has that content.
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

// verifyLayers sees that an image has the layers that its configuration says; that there are as many, the library has
// seen.
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
			return fmt.Errorf("layer %d has the sum %s, and its configuration names %s", i+1, digest, config.RootFS.DiffIDs[i])
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
