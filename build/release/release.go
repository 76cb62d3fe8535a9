// SPDX-License-Identifier: Apache-2.0

// Package release makes the bundle that an operator takes to a control-plane node: the image, the tool that swaps it in
// and back, the plugin of kubectl, the manifests, the patches, a list of all that is in the binaries, and the licences of
// all that. The same inputs give the same bytes.
package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"kube-scheduler-fork/build/image"
	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/source"
)

// Options are the inputs of a bundle.
type Options struct {
	// Architecture is amd64 or arm64; image and tools must be of it.
	Architecture string
	// Version is what `kube-scheduler --version` prints: v1.23.17+fork.0123456789ab.
	Version string
	// Kubernetes is upstream's tag, Sum the h1: sum of the Go module k8s.io/kubernetes at it, Commit the commit that it
	// points to; empty where a module proxy does not tell it.
	Kubernetes, Sum, Commit string
	// Created stands on the files and in the SBOM. It is an input, not the time of the build.
	Created time.Time
	// Image is the image archive that `make image` wrote, Swap the binary of kube-scheduler-swap, Kubectl that of
	// kubectl-scheduling.
	Image, Swap, Kubectl string
	// Tree is the tree of Kubernetes that the image's binaries were compiled from.
	Tree string
	// ModuleCache is where the go command keeps modules, GoRoot where the Go lies that compiled the binaries.
	ModuleCache, GoRoot string
	// Project is this project's folder, with manifests/, docs/ and README.md; Patches, UpstreamVersion and Modules are
	// the folder of the series, the file of the pin and the file of what is carried, which may lie elsewhere.
	Project, Patches, UpstreamVersion, Modules string
	// ModulesPatch is what Modules adds to upstream's tree, as a patch that comes before the others; empty if it adds
	// nothing.
	ModulesPatch string
	// CRDs is a folder with the CustomResourceDefinitions that plugins of Modules need, a file each.
	CRDs string
	// Roots is the module that the certificate authorities in the image come from.
	Roots debug.Module
}

// tools are the programs beside the image, by their names, and where they lie.
func (o Options) tools() map[string]string {
	return map[string]string{swapName: o.Swap, kubectlName: o.Kubectl}
}

// Name is the name of a bundle: of the archive, without .tar.gz, and of the one folder in it. The version stands in it
// as it does in the image's tag, with "_" for "+": a file with a plus is stored under another name by sites that host
// releases, and asked for under another name, with a blank, where a URL is decoded as a form.
func Name(version, architecture string) string {
	return namePrefix(version) + architecture
}

func namePrefix(version string) string {
	return "kube-scheduler-" + image.Tag(version) + "-linux-"
}

// RootsModule is the module of the certificate authorities that this program puts into images.
func RootsModule() (debug.Module, error) {
	const path = "golang.org/x/crypto/x509roots/fallback"
	info, known := debug.ReadBuildInfo()
	if known {
		for _, module := range info.Deps {
			if module.Path == path {
				return *module, nil
			}
		}
	}
	return debug.Module{}, nextstep.With(fmt.Errorf("this program does not know its version of %s", path),
		"build it with make release")
}

// Write makes a bundle in a folder, with a copy of its SBOM beside it, and lists both in the folder's SHA256SUMS, last:
// a file that is not listed there, or not with that sum, is not finished. It gives the paths of the bundle and of the
// SBOM.
func Write(folder string, options Options) (bundle, document string, err error) {
	files, err := assemble(options)
	if err != nil {
		return "", "", err
	}
	name := Name(options.Version, options.Architecture)
	archive, err := pack(name, files, options.Created)
	if err != nil {
		return "", "", err
	}
	list := named(files, documentName)
	bundleName, listName := name+".tar.gz", name+".spdx.json"
	written := []string{bundleName, listName}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", "", err
	}
	if err := removeLeftovers(folder); err != nil {
		return "", "", err
	}
	if err := listSums(folder, options.Version, written, nil); err != nil {
		return "", "", err
	}
	if err := replaceFile(filepath.Join(folder, bundleName), archive); err != nil {
		return "", "", err
	}
	if err := replaceFile(filepath.Join(folder, listName), list); err != nil {
		return "", "", err
	}
	if err := listSums(folder, options.Version, written, []string{sumLine(archive, bundleName), sumLine(list, listName)}); err != nil {
		return "", "", err
	}
	return filepath.Join(folder, bundleName), filepath.Join(folder, listName), nil
}

// removeLeftovers deletes what interrupted runs left under temporary names.
func removeLeftovers(folder string) error {
	left, err := filepath.Glob(filepath.Join(folder, ".*.new"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// assemble gives all files of a bundle in the order of their names; SHA256SUMS, one of them, lists the others.
func assemble(options Options) ([]file, error) {
	files, err := gather(options)
	if err != nil {
		return nil, err
	}
	contents, err := unpack(options)
	if err != nil {
		return nil, err
	}
	vendor, err := readTree(options)
	if err != nil {
		return nil, err
	}
	for name, source := range options.tools() {
		contents.binaries[name] = named(files, name)
		// A linker that is told to set a variable that is not there says nothing.
		if !bytes.Contains(contents.binaries[name], []byte(options.Version)) {
			return nil, nextstep.With(fmt.Errorf("%s does not know its version %s", source, options.Version),
				"see that its package main has a variable named version, "+
					"then make release")
		}
	}
	binaries := map[string]Binary{}
	for name, content := range contents.binaries {
		if binaries[name], err = inspect(name, content, options.Architecture, vendor, options.ModuleCache); err != nil {
			return nil, err
		}
	}
	roots, err := listed([]*debug.Module{&options.Roots}, options.ModuleCache)
	if err != nil {
		return nil, err
	}
	texts, err := licences(options, binaries, roots[0])
	if err != nil {
		return nil, err
	}
	files = append(files, texts...)
	list, err := describe(options, named(files, archiveName), contents.id, binaries, roots[0])
	if err != nil {
		return nil, err
	}
	files = append(files, file{documentName, 0o644, list})
	slices.SortFunc(files, byName)
	files = append(files, file{sumsName, 0o644, sumsOf(files)})
	slices.SortFunc(files, byName)
	return files, nil
}

func byName(a, b file) int { return strings.Compare(a.name, b.name) }

// named is the content of the file with that name; it must be there.
func named(files []file, name string) []byte {
	return files[slices.IndexFunc(files, func(f file) bool { return f.name == name })].content
}

// readTree reads which module each vendored package of the tree belongs to.
func readTree(options Options) (vendored, error) {
	var contents [2][]byte
	for i, name := range []string{"vendor/modules.txt", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(options.Tree, name))
		if err != nil {
			return vendored{}, nextstep.With(err, "make tree")
		}
		contents[i] = content
	}
	carried, err := source.ReadModules(options.Modules)
	if err != nil {
		return vendored{}, err
	}
	return readVendored(contents[0], contents[1], options.Kubernetes, options.Tree, carried)
}

// pack makes a compressed archive of one folder. What stands in its headers depends on the names and modes of the files
// alone: one time for all, and root as the owner.
func pack(folder string, files []file, modified time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	// The header of gzip keeps neither name nor time.
	compressor, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	writer := tar.NewWriter(compressor)
	add := func(header tar.Header, content []byte) error {
		header.ModTime, header.Format = modified, tar.FormatUSTAR
		if err := writer.WriteHeader(&header); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
		_, err := writer.Write(content)
		return err
	}
	folders := map[string]bool{}
	for _, file := range files {
		place := path.Join(folder, file.name)
		var missing []string
		for above := path.Dir(place); above != "." && !folders[above]; above = path.Dir(above) {
			folders[above] = true
			missing = append(missing, above)
		}
		slices.Reverse(missing)
		for _, above := range missing {
			if err := add(tar.Header{Typeflag: tar.TypeDir, Name: above + "/", Mode: 0o755}, nil); err != nil {
				return nil, err
			}
		}
		header := tar.Header{Typeflag: tar.TypeReg, Name: place, Mode: int64(file.mode.Perm()), Size: int64(len(file.content))}
		if err := add(header, file.content); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(writer.Close(), compressor.Close()); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}
