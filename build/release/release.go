// SPDX-License-Identifier: Apache-2.0

// Package release writes the bundle for an operator: the image, the swap tool, the kubectl plugin, the simulator, the
// manifests, the patches, an SBOM, and the licences of all modules. The same inputs give the same bytes.
package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"kube-scheduler-fork/build/image"
	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/patches"
	"kube-scheduler-fork/build/signature"
	"kube-scheduler-fork/build/source"
)

// Options are the inputs of a bundle.
type Options struct {
	// Architecture is amd64 or arm64; the image and the tools must match it.
	Architecture string
	// Version is what `kube-scheduler --version` prints: v1.23.17+fork.0123456789ab.
	Version string
	// Kubernetes is upstream's tag, Sum the h1: sum of the Go module k8s.io/kubernetes, and Commit the tag's commit,
	// which is empty if the source came from a module proxy that does not know it.
	Kubernetes, Sum, Commit string
	// Created is the time of the files and of the SBOM. It is an input, not the time of the build.
	Created time.Time
	// Image and Extender are the image archives from `make image` and `make extender-image`, Swap is the binary of
	// kube-scheduler-swap, Kubectl that of kubectl-scheduling, and Simulate that of kube-scheduler-simulate.
	Image, Extender, Swap, Kubectl, Simulate string
	// Tree is the tree of Kubernetes that the image's binaries were compiled from.
	Tree string
	// ModuleCache is the go command's module cache, and GoRoot the Go installation that compiled the binaries.
	ModuleCache, GoRoot string
	// Project is this project's directory, with manifests/, docs/ and README.md. Patches, UpstreamVersion and Modules
	// are the directory of the series, the pin file and modules.yaml, which may be elsewhere.
	Project, Patches, UpstreamVersion, Modules string
	// Carried are the modules in Modules, Series the patches of the image in Patches, and Pin is what is in UpstreamVersion;
	// an image's SBOM needs no Pin.
	Carried []source.Module
	Series  []patches.Patch
	Pin     source.Pin
	// ModulesPatch is the patch that adds Modules to upstream's tree, or empty.
	ModulesPatch string
	// CRDs is a directory with the CustomResourceDefinitions that plugins of Modules need, one file each.
	CRDs string
	// Roots is the module that the certificate authorities in the image come from.
	Roots debug.Module
	// ProjectCommit is this project's commit, or empty if its files are not as committed.
	ProjectCommit string
	// SignKey is the file of the SSH key that signs the release, or empty.
	SignKey string
}

// tools returns the paths of the programs next to the image, by name.
func (o Options) tools() map[string]string {
	return map[string]string{swapName: o.Swap, kubectlName: o.Kubectl, simulateName: o.Simulate}
}

// archives returns the paths of the image archives, by the program in them.
func (o Options) archives() map[string]string {
	return map[string]string{image.Scheduler: o.Image, image.Extender: o.Extender}
}

// Name returns the name of a bundle's directory and, without .tar.gz, of its archive. The version has "_" for "+", as
// in the image's tag, because sites that host releases rename files with a plus, and some clients decode it as a blank.
func Name(version, architecture string) string {
	return namePrefix(version) + architecture
}

func namePrefix(version string) string {
	return "kube-scheduler-" + image.Tag(version) + "-linux-"
}

// RootsModule returns the module of the certificate authorities in the image.
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
	return debug.Module{}, nextstep.With(fmt.Errorf("this program was built without the version of %s", path),
		"build it with make release")
}

// Write creates a bundle, copies of its SBOMs and its provenance to a directory, and returns their paths, the bundle's
// first. It updates the directory's SHA256SUMS last, so a file that is not listed there, or has another sum, is
// incomplete; and then signs it.
func Write(folder string, options Options) ([]string, error) {
	contents, modules, err := assemble(options)
	if err != nil {
		return nil, err
	}
	name := Name(options.Version, options.Architecture)
	archive, err := pack(name, contents, options.Created)
	if err != nil {
		return nil, err
	}
	files := []file{
		{name: name + ".tar.gz", content: archive},
		{name: name + spdxSuffix, content: named(contents, "sbom"+spdxSuffix)},
		{name: name + cycloneDXSuffix, content: named(contents, "sbom"+cycloneDXSuffix)},
	}
	subjects := slices.Clone(files)
	for program := range options.archives() {
		subjects = append(subjects, file{name: program + ".tar", content: named(contents, program+".tar")})
	}
	slices.SortFunc(subjects, byName)
	statement, err := provenance(options, subjects, modules)
	if err != nil {
		return nil, err
	}
	files = append(files, file{name: name + provenanceSuffix, content: statement})
	var names, lines, paths []string
	for _, file := range files {
		names, paths = append(names, file.name), append(paths, filepath.Join(folder, file.name))
		lines = append(lines, sumLine(file.content, file.name))
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := removeLeftovers(folder); err != nil {
		return nil, err
	}
	signed := filepath.Join(folder, signature.Signature)
	if err := os.Remove(signed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := listSums(folder, options.Version, names, nil); err != nil {
		return nil, err
	}
	for i, file := range files {
		if err := replaceFile(paths[i], file.content); err != nil {
			return nil, err
		}
	}
	if err := listSums(folder, options.Version, names, lines); err != nil || options.SignKey == "" {
		return paths, err
	}
	sums, err := os.ReadFile(filepath.Join(folder, sumsName))
	if err != nil {
		return nil, err
	}
	text, err := signature.Sign(options.SignKey, sums)
	if err != nil {
		return nil, err
	}
	return append(paths, signed), replaceFile(signed, text)
}

// removeLeftovers deletes temporary files of interrupted runs.
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

// assemble returns all files of a bundle, sorted by name, and the modules in its binaries and images; SHA256SUMS lists
// the others, and is signed if there is a key.
func assemble(options Options) ([]file, []Module, error) {
	files, err := gather(options)
	if err != nil {
		return nil, nil, err
	}
	var images []unpacked
	contents := map[string][]byte{}
	for _, program := range slices.Sorted(maps.Keys(options.archives())) {
		found, err := unpack(options, program)
		if err != nil {
			return nil, nil, err
		}
		found.archive = named(files, program+".tar")
		images = append(images, found)
		maps.Copy(contents, found.binaries)
	}
	for name := range options.tools() {
		contents[name] = named(files, name)
	}
	binaries, err := inspectAll(options, contents)
	if err != nil {
		return nil, nil, err
	}
	roots, err := listed([]*debug.Module{&options.Roots}, options.ModuleCache)
	if err != nil {
		return nil, nil, err
	}
	modules := slices.Clone(roots)
	for _, binary := range binaries {
		modules = append(modules, binary.Modules...)
	}
	slices.SortFunc(modules, byPath)
	modules = slices.CompactFunc(modules, func(a, b Module) bool { return a.Path == b.Path && a.Version == b.Version && a.Sum == b.Sum })
	texts, err := licences(options, modules)
	if err != nil {
		return nil, nil, err
	}
	files = append(files, texts...)
	inventory := describe(options, images, binaries, roots[0])
	spdx, err := inventory.encode()
	if err != nil {
		return nil, nil, err
	}
	cycloneDX, err := inventory.cycloneDX()
	if err != nil {
		return nil, nil, err
	}
	files = append(files, file{"sbom" + spdxSuffix, 0o644, spdx}, file{"sbom" + cycloneDXSuffix, 0o644, cycloneDX})
	slices.SortFunc(files, byName)
	files = append(files, file{sumsName, 0o644, sumsOf(files)})
	if options.SignKey != "" {
		text, err := signature.Sign(options.SignKey, named(files, sumsName))
		if err != nil {
			return nil, nil, err
		}
		files = append(files, file{signature.Signature, 0o644, text})
	}
	slices.SortFunc(files, byName)
	return files, modules, nil
}

func byName(a, b file) int { return strings.Compare(a.name, b.name) }

// named returns the content of the file with that name, which must exist.
func named(files []file, name string) []byte {
	return files[slices.IndexFunc(files, func(f file) bool { return f.name == name })].content
}

// inspectAll returns the facts of all binaries by their names.
func inspectAll(options Options, contents map[string][]byte) (map[string]Binary, error) {
	tree, err := readTree(options)
	if err != nil {
		return nil, err
	}
	binaries := map[string]Binary{}
	for name, content := range contents {
		binary, err := inspect(name, content, options)
		if err != nil {
			return nil, err
		}
		if command := commands[name]; command != "" {
			binary.Modules, err = tree.modules(command)
		} else if !bytes.Contains(content, []byte(options.Version)) {
			// The linker silently ignores -X for a variable that does not exist.
			err = nextstep.With(fmt.Errorf("%s does not contain its version %s", name, options.Version),
				"add a variable named version to its package main, then make release")
		}
		if err != nil {
			return nil, err
		}
		binaries[name] = binary
	}
	return binaries, nil
}

// pack returns a compressed archive of one directory. The headers depend only on the files' names and modes: all files
// have the same time, and root as the owner.
func pack(folder string, files []file, modified time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	// The gzip header has neither name nor time.
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
