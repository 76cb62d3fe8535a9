// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/build/constraint"
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

	"kube-scheduler-fork/build/nextstep"
)

// Carry makes a commit in a git repository and points ref at it. The commit adds to the tree of a Kubernetes release,
// at commit, the packages of modules in vendor/, exactly as `go mod vendor` would, with the modules in go.mod and
// go.sum, and the file that registers their plugins with kube-scheduler. Modules that are raised replace upstream's. The
// same modules on the same commit always make the same commit. Carry changes nothing when it returns an error: for a
// module at another version than upstream vendors that is not raised, a zip with another sum, or a missing import.
func Carry(ctx context.Context, modules []Module, repository, commit, ref string, progress io.Writer) error {
	if len(modules) == 0 {
		_, err := git(ctx, repository, nil, "update-ref", ref, commit)
		return err
	}
	tree, err := readTree(ctx, repository, commit)
	if err != nil {
		return err
	}
	all := All(modules)
	if err := tree.check(all); err != nil {
		return err
	}
	files := map[string][]byte{}
	imports := map[string][]string{}
	err = unpacked(ctx, all, func(folders map[string]string, downloads []download) error {
		if err := tree.require(all, downloads); err != nil {
			return err
		}
		for _, m := range all {
			if err := vendorPackages(folders[m.Path], m, files, imports); err != nil {
				return err
			}
		}
		if err := tree.vendorRaised(ctx, all, folders, repository, commit, files, imports); err != nil {
			return err
		}
		for _, m := range all {
			fmt.Fprintf(progress, "modules: %s %s: packages %d\n", m.Path, m.Version, len(m.among(imports)))
		}
		if err := checkImports(tree.list, imports); err != nil {
			return err
		}
		crds, err := readCRDs(modules, folders)
		if registration := register(modules, crds); registration != nil {
			for _, name := range registrationFiles {
				files[name] = registration
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	maps.Copy(files, tree.files())
	return writeCommit(ctx, repository, commit, ref, message(all), raised(all), files)
}

// unpacked calls use with the directories that hold the modules' files during the call, by module path, and with the go
// command's downloads, in the order of modules.
func unpacked(
	ctx context.Context, modules []Module, use func(folders map[string]string, downloads []download) error,
) error {
	if len(modules) == 0 {
		return nil
	}
	downloads, err := carriedDownloads(ctx, modules)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "modules-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	folders := map[string]string{}
	for i, m := range modules {
		folders[m.Path] = filepath.Join(folder, strconv.Itoa(i))
		if err := extract(downloads[i], folders[m.Path]); err != nil {
			return err
		}
	}
	return use(folders, downloads)
}

// carriedDownloads downloads the modules into the module cache and compares each sum with the one pinned in
// modules.yaml. Where the checksum database is switched off, only the pinned sum is checked, as with go.sum.
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
				"check module and version in modules.yaml, and whether the module proxy (go env GOPROXY) has them")
		case d.Error != "":
			return nil, downloadError(d)
		case d.Sum != m.Sum:
			return nil, nextstep.With(fmt.Errorf("%s has the sum %s, but modules.yaml pins %s", names[i], d.Sum, m.Sum),
				"do not build it; check which proxy it comes from (go env GOPROXY); if modules.yaml is wrong, correct it")
		}
	}
	return downloads, nil
}

// licenceNames are prefixes of the files that `go mod vendor` also copies from the directories above a package.
var licenceNames = []string{
	"AUTHORS", "CONTRIBUTORS", "COPYLEFT", "COPYING", "COPYRIGHT", "LEGAL", "LICENSE", "NOTICE", "PATENTS",
}

// vendorPackages adds the files of a module's packages from folder, by their paths in the tree, and the imports of each
// package. It takes the same files as `go mod vendor`: all files in a package's directory except tests, and the
// licences above it.
func vendorPackages(folder string, m Module, files map[string][]byte, imports map[string][]string) error {
	take := func(below string, wanted func(name string, content []byte) bool) error {
		entries, err := os.ReadDir(filepath.Join(folder, below))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, entry := range entries {
			if !entry.Type().IsRegular() {
				continue
			}
			content, err := os.ReadFile(filepath.Join(folder, below, entry.Name()))
			if err != nil {
				return err
			}
			if !wanted(entry.Name(), content) {
				continue
			}
			files[path.Join("vendor", m.Path, below, entry.Name())] = content
		}
		return nil
	}
	for i, imported := range m.ImportPaths() {
		below := m.Packages[i]
		err := take(below, isVendored)
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

// isVendored reports whether a file of a package is copied to vendor/: tests and programs for `go run` only are not.
func isVendored(name string, content []byte) bool {
	if strings.HasSuffix(name, "_test.go") || name == "go.mod" || name == "go.sum" {
		return false
	}
	if path.Ext(name) != ".go" {
		return true
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		return true
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			expression, err := constraint.Parse(comment.Text)
			if err == nil && comment.Pos() < file.Package && !satisfiable(expression, true) {
				return false
			}
		}
	}
	return true
}

// satisfiable reports whether a build constraint can evaluate to want, with any tags except ignore.
func satisfiable(expression constraint.Expr, want bool) bool {
	switch x := expression.(type) {
	case *constraint.AndExpr:
		return satisfiable(x.X, want) && satisfiable(x.Y, want)
	case *constraint.OrExpr:
		return satisfiable(x.X, want) || satisfiable(x.Y, want)
	case *constraint.NotExpr:
		return !satisfiable(x.X, !want)
	default:
		return want && expression.String() != "ignore"
	}
}

func isLicence(name string, _ []byte) bool {
	return slices.ContainsFunc(licenceNames, func(start string) bool { return strings.HasPrefix(name, start) })
}

// importsOf returns the imports of all Go files in a directory, for any operating system.
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

// checkImports returns an error for imports that are not in vendor/, Kubernetes or the standard library.
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
			if isStandard(imported) || strings.HasPrefix(imported, kubernetesModule+"/") {
				continue
			}
			if !known[imported] {
				missing = append(missing, importer+" imports "+imported)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return nextstep.With(
		fmt.Errorf("packages in modules.yaml import packages that vendor/ would not contain: %s",
			strings.Join(missing, ", ")),
		"add the imported packages to modules.yaml, to their module or to the dependencies; "+
			"or remove the packages that import them")
}

// isStandard reports whether an import is from the standard library, whose import paths do not begin with a host name.
func isStandard(imported string) bool {
	host, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(host, ".")
}

func message(modules []Module) string {
	text := "vendor: add the packages of modules.yaml\n\n" +
		"Each comes from its Go module, and is as go mod vendor would put it here.\n" +
		"Raised modules replace the versions that upstream vendors.\n" +
		"Plugins are registered in kube-scheduler's main package.\n\n"
	for _, m := range modules {
		text += m.String() + "\n"
	}
	return text
}

// author is the committer and date of the tree's commits, independent of who builds: see scripts/environment.sh.
const author = "kube-scheduler build <build@localhost> 1000000000 +0000"

// writeCommit makes a commit that adds files to its parent, instead of all vendored files of replaced modules, and points
// ref at it. It uses neither a work tree nor an index, so git settings cannot change any byte.
func writeCommit(
	ctx context.Context, repository, parent, ref, message string, replaced []Module, files map[string][]byte,
) error {
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "feature done\ncommit %s\ncommitter %s\ndata %d\n%s\nfrom %s\n",
		ref, author, len(message), message, parent)
	for _, m := range replaced {
		fmt.Fprintf(&stream, "D vendor/%s\n", m.Path)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", name, len(files[name]), files[name])
	}
	stream.WriteString("done\n")
	_, err := git(ctx, repository, &stream, "fast-import", "--quiet", "--force")
	return err
}
