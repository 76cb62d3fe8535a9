// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"kube-scheduler-fork/build/nextstep"
)

// treeModule is the tree of a Kubernetes release as a Go module: the files that describe vendor/. The go command
// refuses a tree in which they disagree.
type treeModule struct {
	goMod *modfile.File
	goSum []byte
	// list is vendor/modules.txt.
	list []*Vendored
}

// readTree reads the files from a commit.
func readTree(ctx context.Context, repository, commit string) (*treeModule, error) {
	var content [3][]byte
	for i, name := range []string{"go.mod", "go.sum", "vendor/modules.txt"} {
		var err error
		if content[i], err = git(ctx, repository, nil, "cat-file", "blob", commit+":"+name); err != nil {
			return nil, nextstep.With(fmt.Errorf("%s is not a Kubernetes tree: %w", repository, err), "make source")
		}
	}
	goMod, err := modfile.Parse("go.mod", content[0], nil)
	return &treeModule{goMod: goMod, goSum: content[1], list: ParseVendorList(content[2])}, err
}

// files returns the contents of the files by their paths in the tree.
func (t *treeModule) files() map[string][]byte {
	return map[string][]byte{
		"go.mod": modfile.Format(t.goMod.Syntax), "go.sum": t.goSum, "vendor/modules.txt": formatVendorList(t.list),
	}
}

// check returns an error for modules at another version than upstream's, and for packages that upstream vendors itself.
func (t *treeModule) check(modules []Module) error {
	for _, m := range modules {
		if len(m.Raises) > 0 {
			if err := t.checkRaise(m); err != nil {
				return err
			}
		} else if vendored := t.vendored(m.Path); vendored != nil {
			if err := vendored.check(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// require adds the packages of modules to vendor/modules.txt, and the modules that upstream does not vendor to go.mod
// and go.sum. downloads are the go command's results for them.
func (t *treeModule) require(modules []Module, downloads []download) error {
	for i, m := range modules {
		var err error
		vendored := t.vendored(m.Path)
		if len(m.Raises) > 0 {
			err = t.raise(m, downloads[i])
		} else if vendored == nil {
			vendored, err = t.entry(m, downloads[i])
			t.list = append(t.list, vendored)
		}
		if err != nil {
			return err
		}
		vendored.Packages = slices.Sorted(slices.Values(append(slices.Clone(vendored.Packages), m.ImportPaths()...)))
	}
	// Before 1.17, the go command refuses vendor/ if a module is not in go.mod that the tree imports, and patches import some
	// that upstream does not.
	for _, v := range t.list {
		if !t.pruned() && v.Module.Version != "" && len(v.head) == 1 {
			v.head = append(v.head, "## explicit")
			if err := t.goMod.AddRequire(v.Module.Path, v.Module.Version); err != nil {
				return err
			}
		}
	}
	// Sorted by path, with the replacements, which have no version, at the end.
	slices.SortStableFunc(t.list, func(a, b *Vendored) int {
		if a.Module.Version == "" || b.Module.Version == "" {
			return cmp.Compare(b.Module.Version, a.Module.Version)
		}
		return cmp.Compare(a.Module.Path, b.Module.Path)
	})
	t.goMod.SortBlocks()
	lines := bytes.SplitAfter(t.goSum, []byte("\n"))
	slices.SortFunc(lines, bytes.Compare)
	t.goSum = bytes.Join(slices.CompactFunc(lines, bytes.Equal), nil)
	return nil
}

// pruned reports whether the tree has language version 1.17 or newer: go.mod then lists all modules, and modules.txt
// their language versions.
func (t *treeModule) pruned() bool {
	return t.goMod.Go != nil && semver.Compare("v"+t.goMod.Go.Version, "v1.17") >= 0
}

// vendored returns the entry of a module that upstream vendors packages of, or nil.
func (t *treeModule) vendored(path string) *Vendored {
	at := slices.IndexFunc(t.list, func(v *Vendored) bool { return v.Module.Path == path && v.Module.Version != "" })
	if at < 0 {
		return nil
	}
	return t.list[at]
}

// entry puts a module at its version into go.mod and go.sum, and returns its entry for vendor/modules.txt as `go mod
// vendor` writes it: with upstream's replacement, and with the module's language version if that of the tree is at least
// 1.17.
func (t *treeModule) entry(m Module, d download) (*Vendored, error) {
	content, err := os.ReadFile(d.GoMod)
	if err != nil {
		return nil, err
	}
	own, err := modfile.ParseLax(d.GoMod, content, nil)
	if err != nil {
		return nil, err
	}
	added := &Vendored{Module: module.Version{Path: m.Path, Version: m.Version}}
	head := "# " + m.Path + " " + m.Version
	for _, replace := range t.goMod.Replace {
		if replace.Old.Path == m.Path {
			added.Replacement = replace.New
			head += " => " + replace.New.Path + " " + replace.New.Version
		}
	}
	if err := added.check(m); err != nil {
		return nil, err
	}
	explicit := "## explicit"
	// A raised module may need a newer language than the tree has.
	if own.Go != nil && (t.pruned() || len(m.Raises) > 0) {
		explicit += "; go " + own.Go.Version
	}
	added.head = []string{head, explicit}
	if err := t.goMod.AddRequire(m.Path, m.Version); err != nil {
		return nil, err
	}
	t.goSum = fmt.Appendf(t.goSum, "%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", m.Path, m.Version, m.Sum, d.GoModSum)
	return added, nil
}

// check returns an error for a module at another version than upstream's, and for packages that upstream vendors
// itself.
func (v *Vendored) check(m Module) error {
	takes := v.takes()
	if takes.Path != m.Path || takes.Version != m.Version {
		return nextstep.With(
			fmt.Errorf("upstream vendors %s, but modules.yaml has %s@%s: a binary cannot contain two versions of a module",
				takes, m.Path, m.Version),
			"put upstream's version into modules.yaml, with the sum that `go mod download -json %s` prints; "+
				"or remove the module", takes)
	}
	for _, imported := range m.ImportPaths() {
		if slices.Contains(v.Packages, imported) {
			return nextstep.With(fmt.Errorf("upstream vendors %s itself", imported), "remove the package from modules.yaml")
		}
	}
	return nil
}
