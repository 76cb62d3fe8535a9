// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
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

// openArchive reads what an archive says of its image.
func openArchive(file string) (*archive, error) {
	const again = "make the archive again with make image, and copy it here whole; sha256sum -c SHA256SUMS tells"
	opener := func() (io.ReadCloser, error) { return os.Open(file) }
	manifest, err := tarball.LoadManifest(opener)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nextstep.With(fmt.Errorf("the image archive %s is not there", file), "copy it to this node")
	} else if err != nil {
		return nil, nextstep.With(fmt.Errorf("%s is not a whole image archive: %w", file, err), again)
	}
	a := &archive{path: file}
	for _, descriptor := range manifest {
		a.names = append(a.names, descriptor.RepoTags...)
	}
	if len(a.names) == 0 {
		return nil, nextstep.With(fmt.Errorf("%s names no image", file), again)
	}
	// kubeadm's own repository goes before all others.
	sort.SliceStable(a.names, func(i, j int) bool {
		return strings.HasPrefix(a.names[i], "registry.k8s.io/") && !strings.HasPrefix(a.names[j], "registry.k8s.io/")
	})
	for _, name := range a.names {
		image, id, config, err := imageOf(opener, name)
		if err != nil {
			return nil, nextstep.With(fmt.Errorf("%s: %s: %w", file, name, err), again)
		}
		if a.image == nil {
			a.name, a.image, a.id = name, image, id
			a.architecture, a.version = config.Architecture, config.Config.Labels[versionLabel]
		} else if id != a.id {
			return nil, nextstep.With(fmt.Errorf("%s holds several images (%s, %s)", file, a.name, name), again)
		}
	}
	return a, nil
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

// extractScheduler writes the scheduler out of the image to a file, to ask it what it accepts.
func (a *archive) extractScheduler(target string) error {
	content := mutate.Extract(a.image)
	defer content.Close()
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nextstep.With(fmt.Errorf("%s has no /%s", a.path, schedulerInImage),
				"take an image that make image made")
		} else if err != nil {
			return nextstep.With(fmt.Errorf("%s is damaged: %w", a.path, err), "copy it here again")
		}
		if strings.TrimPrefix(path.Clean(header.Name), "/") != schedulerInImage {
			continue
		}
		file, err := os.OpenFile(target, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700)
		if err != nil {
			return err
		}
		if _, err := io.Copy(file, reader); err != nil {
			file.Close()
			return nextstep.With(fmt.Errorf("cannot take the scheduler out of %s: %w", a.path, err),
				"see that there is room in %s", filepath.Dir(target))
		}
		return file.Close()
	}
}
