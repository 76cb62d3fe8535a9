// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/module"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// Module is a Go module of which the image carries packages that upstream does not vendor: an entry of modules.yaml.
type Module struct {
	Path    string `json:"module"`
	Version string `json:"version"`
	// Sum is the module's h1: sum, as in go.sum.
	Sum string `json:"sum"`
	// Packages are folders of the module, "." for its root.
	Packages []string `json:"packages"`
}

// ImportPaths are those of the packages.
func (m Module) ImportPaths() []string {
	var paths []string
	for _, folder := range m.Packages {
		paths = append(paths, path.Join(m.Path, folder))
	}
	return paths
}

// String is the module in one line: all that decides which files come into vendor/.
func (m Module) String() string {
	return fmt.Sprintf("%s@%s %s: %s", m.Path, m.Version, m.Sum, strings.Join(m.Packages, ", "))
}

// ReadModules reads modules.yaml. A key that is not known is an error.
func ReadModules(file string) ([]Module, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("cannot read what is carried: %w", err), "git checkout -- modules.yaml")
	}
	var list struct {
		Modules []Module `json:"modules"`
	}
	if err = yaml.UnmarshalStrict(content, &list); err == nil {
		err = checkModules(list.Modules)
	}
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("%s: %w", file, err),
			"correct it; docs/patches.md, 'Third-party code', says what stands there")
	}
	return list.Modules, nil
}

func checkModules(modules []Module) error {
	seen := map[string]bool{}
	for _, m := range modules {
		if err := module.Check(m.Path, m.Version); err != nil {
			return err
		}
		if !sumForm.MatchString(m.Sum) {
			return fmt.Errorf("%s: sum %q is not of the form %s", m.Path, m.Sum, sumForm)
		}
		if len(m.Packages) == 0 {
			return fmt.Errorf("%s: no packages", m.Path)
		}
		for _, folder := range m.Packages {
			if !fs.ValidPath(folder) {
				return fmt.Errorf("%s: package %q is not a folder of the module", m.Path, folder)
			}
		}
		for _, name := range append(m.ImportPaths(), m.Path+"@") {
			if seen[name] {
				return fmt.Errorf("%s stands there twice", strings.TrimSuffix(name, "@"))
			}
			seen[name] = true
		}
	}
	return nil
}

// Carry makes a commit in a git repository, and puts it at ref: on top of a commit that holds the tree of a Kubernetes
// release, the packages of modules in vendor/, as `go mod vendor` would put them there. The same modules on the same
// commit are the same commit everywhere. Nothing is changed if anything is refused: a module at another version than
// the one that upstream vendors, a zip with another sum, or an import that would be missing.
func Carry(ctx context.Context, modules []Module, repository, commit, ref string, progress io.Writer) error {
	if len(modules) == 0 {
		_, err := git(ctx, repository, nil, "update-ref", ref, commit)
		return err
	}
	listed, err := git(ctx, repository, nil, "cat-file", "blob", commit+":vendor/modules.txt")
	if err != nil {
		return nextstep.With(fmt.Errorf("%s: no tree of Kubernetes: %w", repository, err), "make source")
	}
	list := ParseVendorList(listed)
	if err := addToList(list, modules); err != nil {
		return err
	}
	files := map[string][]byte{"vendor/modules.txt": formatVendorList(list)}
	imports := map[string][]string{}
	downloads, err := carriedDownloads(ctx, modules)
	if err != nil {
		return err
	}
	for i, m := range modules {
		before := len(files)
		if err := vendorPackages(downloads[i], m, files, imports); err != nil {
			return err
		}
		fmt.Fprintf(progress, "modules: %s %s: %s, %d files\n",
			m.Path, m.Version, strings.Join(m.Packages, ", "), len(files)-before)
	}
	if err := checkImports(list, imports); err != nil {
		return err
	}
	return writeCommit(ctx, repository, commit, ref, message(modules), files)
}

// addToList adds the packages of modules to upstream's list of vendored ones.
func addToList(list []*Vendored, modules []Module) error {
	for _, m := range modules {
		at := slices.IndexFunc(list, func(v *Vendored) bool {
			return v.Module.Path == m.Path && v.Module.Version != ""
		})
		if at < 0 {
			return nextstep.With(
				fmt.Errorf("upstream vendors no package of %s, so no version of it is known to fit", m.Path),
				"take it out of modules.yaml; only modules that upstream's vendor/modules.txt names can be carried")
		}
		vendored := list[at]
		takes := vendored.Module
		if vendored.Replacement.Path != "" {
			takes = vendored.Replacement
		}
		if takes.Path != m.Path || takes.Version != m.Version {
			return nextstep.With(
				fmt.Errorf("upstream vendors %s, but modules.yaml has %s@%s: two versions cannot be in one binary",
					takes, m.Path, m.Version),
				"put upstream's version into modules.yaml, with the sum that `go mod download -json %s` prints; "+
					"or take the module out", takes)
		}
		for _, imported := range m.ImportPaths() {
			if slices.Contains(vendored.Packages, imported) {
				return nextstep.With(fmt.Errorf("upstream vendors %s itself", imported),
					"take the package out of modules.yaml")
			}
		}
		vendored.Packages = slices.Sorted(slices.Values(append(vendored.Packages, m.ImportPaths()...)))
	}
	return nil
}

// carriedDownloads has the modules in the module cache, each with the sum that modules.yaml pins. Where the checksum
// database is switched off, that sum alone vouches for them, as one in go.sum does.
func carriedDownloads(ctx context.Context, modules []Module) ([]download, error) {
	var names []string
	for _, m := range modules {
		names = append(names, m.Path+"@"+m.Version)
	}
	downloads, err := downloadModules(ctx, names)
	if err != nil {
		return nil, err
	}
	for i, m := range modules {
		switch d := downloads[i]; {
		case d.Error != "" && errors.Is(downloadError(d), ErrNotAvailable):
			return nil, nextstep.With(downloadError(d),
				"see that module and version in modules.yaml are right, and that go env GOPROXY offers them")
		case d.Error != "":
			return nil, downloadError(d)
		case d.Sum != m.Sum:
			return nil, nextstep.With(fmt.Errorf("%s has the sum %s, but modules.yaml pins %s", names[i], d.Sum, m.Sum),
				"do not build it; see which proxy it comes from (go env GOPROXY). If modules.yaml is wrong, correct it")
		}
	}
	return downloads, nil
}

// licenceNames begin the names of files that `go mod vendor` takes from the folders above a package, too.
var licenceNames = []string{
	"AUTHORS", "CONTRIBUTORS", "COPYLEFT", "COPYING", "COPYRIGHT", "LEGAL", "LICENSE", "NOTICE", "PATENTS",
}

// vendorPackages adds the files of a module's packages, by their paths in the tree, and what each package imports. They
// are those that `go mod vendor` takes: all in the folder of a package but its tests, and licences on the way to it.
func vendorPackages(d download, m Module, files map[string][]byte, imports map[string][]string) error {
	folder, err := os.MkdirTemp("", "module-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := extract(d, folder); err != nil {
		return err
	}
	take := func(below string, wanted func(name string) bool) error {
		entries, err := os.ReadDir(filepath.Join(folder, below))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, entry := range entries {
			if !entry.Type().IsRegular() || !wanted(entry.Name()) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(folder, below, entry.Name()))
			if err != nil {
				return err
			}
			files[path.Join("vendor", m.Path, below, entry.Name())] = content
		}
		return nil
	}
	for i, imported := range m.ImportPaths() {
		below := m.Packages[i]
		err := take(below, func(name string) bool {
			return !strings.HasSuffix(name, "_test.go") && name != "go.mod" && name != "go.sum"
		})
		if err != nil {
			return err
		}
		if imports[imported], err = importsOf(files, path.Join("vendor", imported)); err != nil {
			return nextstep.With(err, "correct the packages of %s in modules.yaml", m.Path)
		}
		for above := below; above != "."; {
			above = path.Dir(above)
			if err := take(above, isLicence); err != nil {
				return err
			}
		}
	}
	return nil
}

func isLicence(name string) bool {
	return slices.ContainsFunc(licenceNames, func(start string) bool { return strings.HasPrefix(name, start) })
}

// importsOf are the imports of the Go files in a folder, on whatever system each of them is for.
func importsOf(files map[string][]byte, folder string) ([]string, error) {
	found, isPackage := map[string]bool{}, false
	for name, content := range files {
		if path.Dir(name) != folder || path.Ext(name) != ".go" {
			continue
		}
		isPackage = true
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			found[imported] = true
		}
	}
	if !isPackage {
		return nil, fmt.Errorf("%s has no Go files: not a package of its module", folder)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// checkImports refuses packages with an import that is neither in vendor/ nor in the standard library, whose packages
// begin with a word that is no host.
func checkImports(list []*Vendored, imports map[string][]string) error {
	known := map[string]bool{}
	for _, vendored := range list {
		for _, name := range vendored.Packages {
			known[name] = true
		}
	}
	var missing []string
	for _, importer := range slices.Sorted(maps.Keys(imports)) {
		for _, imported := range imports[importer] {
			if host, _, _ := strings.Cut(imported, "/"); strings.Contains(host, ".") && !known[imported] {
				missing = append(missing, importer+" imports "+imported)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return nextstep.With(
		fmt.Errorf("packages in modules.yaml import what vendor/ would not hold: %s", strings.Join(missing, ", ")),
		"add what is imported to the packages of its module in modules.yaml, if upstream vendors that module; "+
			"if not, take the importing package out")
}

func message(modules []Module) string {
	text := "vendor: add the packages of modules.yaml\n\n" +
		"Each comes from its Go module, and is as go mod vendor would put it here.\n\n"
	for _, m := range modules {
		text += m.String() + "\n"
	}
	return text
}

// author is who makes the commits of the tree, and when, whoever runs the build: see scripts/environment.sh.
const author = "kube-scheduler build <build@localhost> 1000000000 +0000"

// writeCommit makes a commit that adds files to its parent, and puts it at ref. No work tree or index takes part, and
// so no setting of git changes a byte.
func writeCommit(ctx context.Context, repository, parent, ref, message string, files map[string][]byte) error {
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "feature done\ncommit %s\ncommitter %s\ndata %d\n%s\nfrom %s\n",
		ref, author, len(message), message, parent)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", name, len(files[name]), files[name])
	}
	stream.WriteString("done\n")
	_, err := git(ctx, repository, &stream, "fast-import", "--quiet", "--force")
	return err
}
