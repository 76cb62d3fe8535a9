// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	gomodule "golang.org/x/mod/module"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/source"
)

// Module is a Go module of which a binary holds code.
type Module struct {
	// Path and Version are the module's own: those of the replacement where one module replaces another.
	Path, Version string
	// Origin says where its source came from, and its h1: sum where one is known; a sentence without a full stop.
	Origin string
	// Folder is where its source lies on this machine.
	Folder string
}

// Binary is what a Go binary says of itself.
type Binary struct {
	// GoVersion is the toolchain's name, "go1.27.4".
	GoVersion string
	// Modules are sorted by path. The module that the command itself belongs to is not among them.
	Modules []Module
	// SHA256 of the file, in hex.
	SHA256 string
}

// kubernetes is the module, and in a Go path the folder, that the commands of Kubernetes belong to.
const kubernetes = "k8s.io/kubernetes"

// inspect reads from a binary what is linked into it, and refuses one that would not run on a node of that
// architecture.
//
// A binary built in module mode lists its modules. Upstream's make builds in a Go path, where nothing is listed; but
// every Go binary, stripped or not, names the source files of its functions, for stack traces. Inlined functions are
// among them, what the linker threw away is not. vendor tells which module a vendored package belongs to, and
// moduleCache is where the go command keeps the others.
func inspect(name string, content []byte, architecture string, vendor vendored, moduleCache string) (Binary, error) {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return Binary{}, nextstep.With(fmt.Errorf("%s: %w", name, err), "make image")
	}
	for key, want := range map[string]string{"GOOS": "linux", "GOARCH": architecture, "CGO_ENABLED": "0"} {
		if got := setting(info, key); got != want {
			return Binary{}, nextstep.With(
				fmt.Errorf("%s was built with %s=%s, not %s=%s, and would not run on such a node",
					name, key, got, key, want),
				"make release ARCH=%s", architecture)
		}
	}
	binary := Binary{GoVersion: info.GoVersion, SHA256: fmt.Sprintf("%x", sha256.Sum256(content))}
	if info.Main.Path != "" {
		binary.Modules, err = listed(info.Deps, moduleCache)
		return binary, err
	}
	files, err := sourceFiles(content)
	if err != nil {
		return Binary{}, nextstep.With(fmt.Errorf("%s: its list of source files: %w", name, err), "make image")
	}
	if binary.Modules, err = vendor.modules(files); err != nil {
		return Binary{}, fmt.Errorf("%s: %w", name, err)
	}
	return binary, nil
}

func setting(info *buildinfo.BuildInfo, key string) string {
	for _, setting := range info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}

// listed are the modules that a binary built in module mode names.
func listed(dependencies []*debug.Module, moduleCache string) ([]Module, error) {
	var modules []Module
	for _, dependency := range dependencies {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		module := Module{Path: dependency.Path, Version: dependency.Version, Origin: "Go module"}
		if dependency.Sum != "" {
			module.Origin += ", sum " + dependency.Sum
		}
		folder, err := gomodule.EscapePath(module.Path)
		if err != nil {
			return nil, nextstep.With(err, "take a published module for it in build/go.mod, then make release")
		}
		version, err := gomodule.EscapeVersion(module.Version)
		if err != nil {
			return nil, nextstep.With(fmt.Errorf("%s: %w", module.Path, err),
				"take a published version of it in build/go.mod, then make release")
		}
		module.Folder = filepath.Join(moduleCache, filepath.FromSlash(folder)+"@"+version)
		modules = append(modules, module)
	}
	slices.SortFunc(modules, byPath)
	return modules, nil
}

// sourceFiles are the files that a binary's functions come from, as the compiler was told to name them: with -trimpath
// the import path of the package, and the file's name.
func sourceFiles(content []byte) ([]string, error) {
	binary, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	table, text := binary.Section(".gopclntab"), binary.Section(".text")
	if table == nil || text == nil {
		return nil, fmt.Errorf("it has no section .gopclntab")
	}
	data, err := table.Data()
	if err != nil {
		return nil, err
	}
	symbols, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return nil, err
	}
	var files []string
	for file := range symbols.Files {
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("it is empty")
	}
	slices.Sort(files)
	return files, nil
}

// vendored tells which module each package in the vendor folder of a Kubernetes tree belongs to.
type vendored struct {
	// packages are those that modules.txt names: all that something in the tree imports.
	packages map[string]Module
	// staging are the modules that lie in vendor/ whole, by their paths: commands that nothing imports are in them too.
	staging map[string]Module
}

// module finds the module of a package by its path below vendor/.
func (v vendored) module(imported string) (Module, bool) {
	if module, known := v.packages[imported]; known {
		return module, true
	}
	for above := imported; above != "."; above = path.Dir(above) {
		if module, known := v.staging[above]; known {
			return module, true
		}
	}
	return Module{}, false
}

// readVendored takes vendor/modules.txt and go.sum of a tree of that Kubernetes version, the folder of the tree, and
// the modules that it carries. A staging module, which lies in the tree itself, has the version under which the same
// code is published: v0.23.17 in v1.23.17.
func readVendored(modulesFile, sumFile []byte, version, tree string, carried []source.Module) (vendored, error) {
	sums := map[string]string{}
	for line := range strings.Lines(string(sumFile)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			sums[fields[0]+" "+fields[1]] = fields[2]
		}
	}
	vendor := vendored{packages: map[string]Module{}, staging: map[string]Module{}}
	for _, listed := range source.ParseVendorList(modulesFile) {
		module := Module{Path: listed.Module.Path, Version: listed.Module.Version}
		module.Folder = filepath.Join(tree, "vendor", filepath.FromSlash(module.Path))
		switch replacement := listed.Replacement; {
		case strings.HasPrefix(replacement.Path, "./staging/src/"):
			module.Version = source.StagingVersion(version)
			module.Origin = strings.TrimPrefix(replacement.Path, "./") + " of Kubernetes " + version
			vendor.staging[module.Path] = module
		case replacement.Version != "":
			module.Path, module.Version = replacement.Path, replacement.Version
		case replacement.Path != "":
			return vendored{}, nextstep.With(
				fmt.Errorf("vendor/modules.txt: %s in the place of %s is not understood", replacement.Path, module.Path),
				"rm -r _output/kubernetes; make tree")
		}
		if module.Origin == "" {
			module.Origin = "Go module in vendor/ of Kubernetes " + version
			if sum := sums[module.Path+" "+module.Version]; sum != "" {
				module.Origin += ", sum " + sum
			}
		}
		for _, imported := range listed.Packages {
			vendor.packages[imported] = module
		}
	}
	for _, entry := range source.All(carried) {
		for _, imported := range entry.ImportPaths() {
			module, known := vendor.packages[imported]
			if !known {
				return vendored{}, nextstep.With(
					fmt.Errorf("vendor/modules.txt does not name %s, which modules.yaml does", imported), "make tree")
			}
			module.Origin = "Go module, sum " + entry.Sum
			vendor.packages[imported] = module
		}
	}
	if len(vendor.packages) == 0 {
		return vendored{}, nextstep.With(errors.New("vendor/modules.txt names no package"),
			"rm -r _output/kubernetes; make tree")
	}
	return vendor, nil
}

// modules are those that the files of a binary built in a Go path belong to. A file of which that cannot be told is an
// error, so that no module is missing for want of knowledge.
func (v vendored) modules(files []string) ([]Module, error) {
	found := map[Module]bool{}
	for _, file := range files {
		folder := path.Dir(file)
		imported, isVendored := strings.CutPrefix(folder, kubernetes+"/vendor/")
		first, _, _ := strings.Cut(folder, "/")
		switch module, known := v.module(imported); {
		case isVendored && known:
			found[module] = true
		case isVendored:
			return nil, nextstep.With(
				fmt.Errorf("vendor/modules.txt does not name the package of %s, so the binary is not of this tree",
					file),
				"make image")
		case folder == kubernetes || strings.HasPrefix(folder, kubernetes+"/"):
		// The compiler's own functions are in "<autogenerated>"; a package of the standard library, of those that it
		// vendors too, begins with a word that is no host.
		case file == "<autogenerated>", folder != "." && !path.IsAbs(folder) && !strings.Contains(first, "."):
		default:
			return nil, nextstep.With(fmt.Errorf("it holds code from %s, which belongs to no known module", file), "make image")
		}
	}
	var modules []Module
	for module := range found {
		modules = append(modules, module)
	}
	slices.SortFunc(modules, byPath)
	return modules, nil
}

// byPath also tells apart two origins of one module: upstream vendors packages of it, and others are carried.
func byPath(a, b Module) int {
	return cmp.Or(strings.Compare(a.Path+"@"+a.Version, b.Path+"@"+b.Version), strings.Compare(a.Origin, b.Origin))
}
