// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"kube-scheduler-fork/build/nextstep"
)

// raised returns the modules that replace an older version which upstream vendors.
func raised(modules []Module) []Module {
	return slices.DeleteFunc(slices.Clone(modules), func(m Module) bool { return len(m.Raises) == 0 })
}

// checkRaise returns an error for a module that upstream does not vendor, or at this version or a newer one. Modules
// that are vendored below its directory would be lost with its old files.
func (t *treeModule) checkRaise(m Module) error {
	old := t.vendored(m.Path)
	if old == nil {
		return nextstep.With(fmt.Errorf("upstream does not vendor %s, which modules.yaml raises", m.Path),
			"remove its raises from modules.yaml, or the module")
	}
	if semver.Compare(old.takes().Version, m.Version) >= 0 {
		return nextstep.With(fmt.Errorf("upstream vendors %s, but modules.yaml raises it to %s", old.takes(), m.Version),
			"remove the module from modules.yaml, or raise it to a newer version")
	}
	for _, imported := range m.ImportPaths() {
		if slices.Contains(old.Packages, imported) {
			return nextstep.With(fmt.Errorf("upstream vendors %s itself", imported), "remove the package from modules.yaml")
		}
	}
	for _, other := range t.list {
		if strings.HasPrefix(other.Module.Path, m.Path+"/") && len(other.Packages) > 0 {
			return nextstep.With(fmt.Errorf("%s is vendored below %s, which modules.yaml raises", other.Module.Path, m.Path),
				"remove %s from modules.yaml", m.Path)
		}
	}
	return nil
}

// raise puts the new version into go.mod, go.sum and vendor/modules.txt. The packages stay those of the old one.
func (t *treeModule) raise(m Module, d download) error {
	vendored := t.vendored(m.Path)
	old := []byte(vendored.takes().Path + " " + vendored.takes().Version)
	lines := slices.DeleteFunc(bytes.SplitAfter(t.goSum, []byte("\n")), func(line []byte) bool {
		return bytes.HasPrefix(line, append(old, ' ')) || bytes.HasPrefix(line, append(old, "/go.mod "...))
	})
	t.goSum = bytes.Join(lines, nil)
	for _, replace := range t.goMod.Replace {
		if replace.Old.Path != m.Path {
			continue
		}
		if err := t.goMod.AddReplace(m.Path, "", m.Path, m.Version); err != nil {
			return err
		}
		for _, v := range t.list {
			if v.Module.Path == m.Path && v.Module.Version == "" {
				v.head[0] = "# " + m.Path + " => " + m.Path + " " + m.Version
			}
		}
		break
	}
	updated, err := t.entry(m, d)
	if err != nil {
		return err
	}
	updated.Packages = vendored.Packages
	*vendored = *updated
	return nil
}

// vendorRaised adds the files of raised modules: the packages that upstream vendors of them, and those that packages now
// import. A package that the new version no longer has is left out, unless the tree imports it.
func (t *treeModule) vendorRaised(
	ctx context.Context, all []Module, folders map[string]string, repository, commit string,
	files map[string][]byte, imports map[string][]string,
) error {
	modules := raised(all)
	exists := func(m Module, imported string) bool {
		found, _ := filepath.Glob(filepath.Join(folders[m.Path], strings.TrimPrefix(imported, m.Path), "*.go"))
		return slices.ContainsFunc(found, func(file string) bool { return !strings.HasSuffix(file, "_test.go") })
	}
	add := func(m Module, imported string) error {
		m.Packages = []string{path.Clean(strings.TrimPrefix(strings.TrimPrefix(imported, m.Path), "/"))}
		return vendorPackages(folders[m.Path], m, files, imports)
	}
	for _, m := range modules {
		for _, imported := range t.vendored(m.Path).Packages {
			if exists(m, imported) {
				if err := add(m, imported); err != nil {
					return err
				}
				continue
			}
			arguments := []string{"grep", "-lF", `"` + imported + `"`, commit, "--", "*.go"}
			for _, other := range modules {
				arguments = append(arguments, ":!vendor/"+other.Path)
			}
			importers, err := git(ctx, repository, nil, arguments...)
			if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
				return err
			}
			if err == nil {
				importer, _, _ := strings.Cut(string(importers), "\n")
				return nextstep.With(
					fmt.Errorf("%s has no package %s, which %s imports", m, imported, strings.TrimPrefix(importer, commit+":")),
					"choose another version in modules.yaml, or raise the module that imports it, too")
			}
		}
	}
	for again := true; again; {
		again = false
		for _, importer := range slices.Sorted(maps.Keys(imports)) {
			for _, imported := range imports[importer] {
				at := slices.IndexFunc(modules, func(m Module) bool { return m.owns(imported) && exists(m, imported) })
				if _, known := imports[imported]; known || at < 0 {
					continue
				}
				if err := add(modules[at], imported); err != nil {
					return err
				}
				again = true
			}
		}
	}
	for _, m := range modules {
		t.vendored(m.Path).Packages = m.among(imports)
	}
	return nil
}
