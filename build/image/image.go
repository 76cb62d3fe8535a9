// SPDX-License-Identifier: Apache-2.0

// Package image assembles the replacement control-plane image, and that of scheduler-extender, without a container
// engine, writes them in the forms that engines load, and pushes them. The same inputs give the same bytes.
package image

import (
	"archive/tar"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kube-scheduler-fork/build/nextstep"
)

// Options are the inputs of New.
type Options struct {
	// Program is the name of the program: Scheduler or Extender.
	Program string
	// Binary and LogRunner are the files of the program and of kube-log-runner. Both are static.
	Binary, LogRunner string
	// Zoneinfo is Go's zoneinfo.zip, lib/time/zoneinfo.zip in a Go installation.
	Zoneinfo string
	// Architecture is amd64 or arm64; the binaries must match it.
	Architecture string
	// Version is what the program prints for --version: v1.23.17+fork.0123456789ab.
	Version string
	// Commit is upstream's commit, or empty if a module proxy does not know it.
	Commit string
	// Created is the time of the image and of its files. It is an input, not the time of the build.
	Created time.Time
	// SBOM is the image's SPDX document, or empty for an image without one.
	SBOM []byte
}

// SBOMFile returns the path of the SBOM in a program's image: in the directory that images of other publishers use, with
// the suffix by which scanners find it.
func SBOMFile(program string) string { return "/var/lib/db/sbom/" + program + ".spdx.json" }

// The programs that there are images of.
const (
	Scheduler = "kube-scheduler"
	Extender  = "scheduler-extender"
)

// descriptions are the texts of the label org.opencontainers.image.description.
var descriptions = map[string]string{
	Scheduler: "kube-scheduler of Kubernetes with additional plugins",
	Extender:  "scheduler extender for kube-scheduler of Kubernetes, with the same plugins",
}

// machines are the ELF machine types of the architectures.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// New returns an image like the official one of kube-scheduler: the program in /usr/local/bin, on PATH, started by
// /go-runner, which can redirect its output to a file, with certificates, time zones and users.
func New(options Options) (v1.Image, error) {
	base, err := baseFiles(options.Zoneinfo)
	if err != nil {
		return nil, err
	}
	runner, err := program(options.LogRunner, "/go-runner", options.Architecture)
	if err != nil {
		return nil, err
	}
	main, err := program(options.Binary, "/usr/local/bin/"+options.Program, options.Architecture)
	if err != nil {
		return nil, err
	}
	top := []file{main}
	if len(options.SBOM) > 0 {
		top = append(top, file{path: SBOMFile(options.Program), mode: 0o644, content: options.SBOM})
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		files   []file
		comment string
	}{
		{base, "certificate authorities, time zones, users"},
		{[]file{runner}, "kube-log-runner"},
		{top, options.Program + " " + options.Version},
	} {
		layer, err := newLayer(part.files, options.Created)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:   layer,
			History: v1.History{Created: v1.Time{Time: options.Created}, CreatedBy: "kube-scheduler-build image", Comment: part.comment},
		})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", options.Architecture
	config.Created = v1.Time{Time: options.Created}
	config.Config.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
	}
	config.Config.Entrypoint = []string{"/go-runner"}
	config.Config.WorkingDir = "/"
	config.Config.User = "0"
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title":       options.Program,
		"org.opencontainers.image.description": descriptions[options.Program],
		"org.opencontainers.image.version":     options.Version,
		"org.opencontainers.image.revision":    options.Commit,
		"org.opencontainers.image.source":      "https://github.com/kubernetes/kubernetes",
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	if options.Commit == "" {
		delete(config.Config.Labels, "org.opencontainers.image.revision")
	}
	return mutate.ConfigFile(image, config)
}

// program reads a binary. It returns an error for another architecture, and for a dynamic binary, which would not start
// in the image.
func program(path, target, architecture string) (file, error) {
	machine, known := machines[architecture]
	if !known {
		return file{}, nextstep.With(fmt.Errorf("architecture %q is unknown", architecture),
			"make image ARCH=amd64 or ARCH=arm64")
	}
	binary, err := elf.Open(path)
	if err != nil {
		return file{}, nextstep.With(fmt.Errorf("%s: %w", path, err), "make binary")
	}
	defer binary.Close()
	if binary.Machine != machine {
		return file{}, nextstep.With(fmt.Errorf("%s is for %s, not for %s", path, binary.Machine, architecture),
			"make binary ARCH=%s", architecture)
	}
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			return file{}, nextstep.With(fmt.Errorf("%s is not static and would not start in the image", path),
				"make binary")
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	return file{path: target, mode: 0o755, content: content}, nil
}

// Tag returns a version as an image tag, with "_" for "+", as upstream does.
func Tag(version string) string {
	return strings.ReplaceAll(version, "+", "_")
}

// Names returns the names of a program's image in an archive, and, if registry is not empty, that in the user's
// registry. The scheduler's are kubeadm's, and the one in upstream's release archives.
func Names(program, version, architecture, registry string) ([]name.Tag, error) {
	repositories := []string{"localhost/" + program}
	if program == Scheduler {
		repositories = []string{"registry.k8s.io/kube-scheduler", "k8s.gcr.io/kube-scheduler-" + architecture}
	}
	if registry != "" {
		repositories = append(repositories, strings.TrimSuffix(registry, "/")+"/"+program)
	}
	var names []name.Tag
	for _, repository := range repositories {
		tag, err := name.NewTag(repository+":"+Tag(version), name.StrictValidation)
		if err != nil {
			return nil, nextstep.With(fmt.Errorf("image name: %w", err),
				"make image REGISTRY=registry.example.com/team")
		}
		names = append(names, tag)
	}
	return names, nil
}

// WriteArchive writes an image atomically as an archive that docker, containerd, podman, skopeo and crane can read: one
// image with all names, in their order.
func WriteArchive(path string, image v1.Image, names []name.Tag) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	defer os.Remove(temporary)
	output, err := os.Create(temporary)
	if err != nil {
		return err
	}
	if err := errors.Join(writeArchive(output, image, names), output.Close()); err != nil {
		return fmt.Errorf("%s: %w", temporary, err)
	}
	return os.Rename(temporary, path)
}

// writeArchive writes the files of an archive. The library's own function would write several names of one image in
// random order.
func writeArchive(output io.Writer, image v1.Image, names []name.Tag) error {
	manifest, err := tarball.ComputeManifest(map[name.Reference]v1.Image{names[0]: image})
	if err != nil {
		return err
	}
	manifest[0].RepoTags = nil
	for _, tag := range names {
		manifest[0].RepoTags = append(manifest[0].RepoTags, tag.String())
	}
	index, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	files := []file{{path: manifest[0].Config, content: config}}
	for i, layer := range layers {
		content, err := compressed(layer)
		if err != nil {
			return err
		}
		files = append(files, file{path: manifest[0].Layers[i], content: content})
	}
	archive := tar.NewWriter(output)
	for _, f := range append(files, file{path: "manifest.json", content: index}) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Size: int64(len(f.content)), Mode: 0o644}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// compressed returns the bytes of a layer as it is stored.
func compressed(layer v1.Layer) ([]byte, error) {
	reader, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}

// WriteLayout writes an OCI image layout with one manifest list of all images, named by the version's tag. It replaces
// an older layout.
func WriteLayout(path, version string, images []v1.Image) error {
	index, err := newIndex(version, images)
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	root, err := layout.Write(temporary, empty.Index)
	if err != nil {
		return err
	}
	if err := root.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": Tag(version),
	})); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func newIndex(version string, images []v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture}},
		})
	}
	return mutate.Annotations(index, map[string]string{"org.opencontainers.image.version": version}).(v1.ImageIndex), nil
}

// ReadLayout returns the manifest list of a layout of WriteLayout, and its tag.
func ReadLayout(path string) (v1.ImageIndex, string, error) {
	root, err := layout.ImageIndexFromPath(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nextstep.With(fmt.Errorf("%s does not exist", path), "make oci")
	} else if err != nil {
		return nil, "", err
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return nil, "", err
	}
	if len(manifest.Manifests) != 1 {
		return nil, "", nextstep.With(fmt.Errorf("%s contains %d manifests instead of one", path, len(manifest.Manifests)),
			"rm -r %s; make oci", path)
	}
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	return index, manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"], err
}
