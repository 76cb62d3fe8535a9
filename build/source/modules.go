// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// Module is an entry of modules.yaml: a Go module with packages that the image adds to those that upstream vendors.
type Module struct {
	Path    string `json:"module"`
	Version string `json:"version"`
	// Sum is the module's h1: sum, as in go.sum.
	Sum string `json:"sum"`
	// Raises are the reasons why the module replaces an older version that upstream vendors, for all of its packages: ids
	// in the Go vulnerability database, or raised modules that need this version. Without reasons the version is
	// upstream's.
	Raises []string `json:"raises,omitempty"`
	// Packages are directories of the module, "." for its root, that upstream does not vendor.
	Packages []string `json:"packages,omitempty"`
	// Plugins are registered with kube-scheduler.
	Plugins []Plugin `json:"plugins,omitempty"`
	// Arguments is the package that registers the plugins' arguments with the scheduler's scheme when it is imported;
	// empty if they have none.
	Arguments string `json:"arguments,omitempty"`
	// Dependencies are modules that only this one needs; they have neither plugins nor dependencies themselves.
	Dependencies []Module `json:"dependencies,omitempty"`
}

// Plugin is a scheduling plugin of a module.
type Plugin struct {
	Name string `json:"name"`
	// Package is its directory in the module, and Constructor the function there that creates the plugin.
	Package     string `json:"package"`
	Constructor string `json:"constructor"`
	// CRDs are files of the module with the CustomResourceDefinitions that the plugin needs to start.
	CRDs []string `json:"crds,omitempty"`
}

// ImportPaths returns the import paths of the packages.
func (m Module) ImportPaths() []string {
	var paths []string
	for _, folder := range m.Packages {
		paths = append(paths, path.Join(m.Path, folder))
	}
	return paths
}

// owns reports whether a package is below the module's path.
func (m Module) owns(imported string) bool {
	return imported == m.Path || strings.HasPrefix(imported, m.Path+"/")
}

// among returns the module's packages among those whose imports are given, sorted.
func (m Module) among(imports map[string][]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(imports)), func(imported string) bool { return !m.owns(imported) })
}

// String returns the module in one line, with everything that determines its files in the tree.
func (m Module) String() string {
	text := fmt.Sprintf("%s@%s %s: %s", m.Path, m.Version, m.Sum, strings.Join(m.Packages, ", "))
	if len(m.Raises) > 0 {
		text += "; raised for " + strings.Join(m.Raises, ", ")
	}
	for _, plugin := range m.Plugins {
		text += fmt.Sprintf("; %s from %s.%s", plugin.Name, plugin.Package, plugin.Constructor)
		if len(plugin.CRDs) > 0 {
			text += " with " + strings.Join(plugin.CRDs, " and ")
		}
	}
	if m.Arguments != "" {
		text += "; arguments from " + m.Arguments
	}
	return text
}

// All returns the modules and their dependencies, each once, with the union of the packages that are listed for it.
// ReadModules has checked that versions and sums agree.
func All(modules []Module) []Module {
	var all []Module
	add := func(m Module) {
		m.Dependencies = nil
		at := slices.IndexFunc(all, func(other Module) bool { return other.Path == m.Path })
		if at < 0 {
			all = append(all, m)
			return
		}
		all[at].Packages = slices.Compact(slices.Sorted(slices.Values(slices.Concat(all[at].Packages, m.Packages))))
		if len(m.Raises) > 0 {
			all[at].Raises = m.Raises
		}
		if len(m.Plugins) > 0 {
			all[at].Plugins, all[at].Arguments = m.Plugins, m.Arguments
		}
	}
	for _, m := range modules {
		add(m)
		for _, dependency := range m.Dependencies {
			add(dependency)
		}
	}
	return all
}

// WithoutPlugins returns the modules that this project's own plugins need.
func WithoutPlugins(modules []Module) []Module {
	return slices.DeleteFunc(slices.Clone(modules), func(m Module) bool { return len(m.Plugins) > 0 })
}

// ReadModules reads modules.yaml. Unknown keys are errors.
func ReadModules(file string) ([]Module, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("cannot read the list of modules: %w", err), "git checkout -- modules.yaml")
	}
	modules, err := parseModules(content)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("%s: %w", file, err),
			"correct it; see docs/modules.md")
	}
	return modules, nil
}

func parseModules(content []byte) ([]Module, error) {
	var list struct {
		Modules []Module `json:"modules"`
	}
	if err := yaml.UnmarshalStrict(content, &list); err != nil {
		return nil, err
	}
	return list.Modules, checkModules(list.Modules)
}

func checkModules(modules []Module) error {
	entries, plugins := map[string]bool{}, map[string]bool{}
	versions := map[string]Module{}
	for _, m := range modules {
		if entries[m.Path] {
			return fmt.Errorf("%s is listed twice", m.Path)
		}
		entries[m.Path] = true
		for _, each := range append([]Module{m}, m.Dependencies...) {
			if err := each.check(); err != nil {
				return err
			}
			if other, known := versions[each.Path]; known && (other.Version != each.Version || other.Sum != each.Sum) {
				return fmt.Errorf("%s is listed as %s %s and as %s %s: a binary cannot contain two versions of a module",
					each.Path, other.Version, other.Sum, each.Version, each.Sum)
			}
			versions[each.Path] = each
		}
		for _, dependency := range m.Dependencies {
			if len(dependency.Plugins) > 0 || len(dependency.Dependencies) > 0 || dependency.Arguments != "" {
				return fmt.Errorf("%s: a dependency can only have packages", dependency.Path)
			}
		}
		if err := m.checkPlugins(plugins); err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	return nil
}

func (m Module) check() error {
	if err := module.Check(m.Path, m.Version); err != nil {
		return err
	}
	if !sumForm.MatchString(m.Sum) {
		return fmt.Errorf("%s: sum %q is not of the form %s", m.Path, m.Sum, sumForm)
	}
	if len(m.Packages) == 0 && len(m.Raises) == 0 {
		return fmt.Errorf("%s: no packages", m.Path)
	}
	seen := map[string]bool{}
	for _, folder := range m.Packages {
		if !fs.ValidPath(folder) {
			return fmt.Errorf("%s: package %q is not a directory of the module", m.Path, folder)
		}
		if seen[folder] {
			return fmt.Errorf("%s is listed twice", path.Join(m.Path, folder))
		}
		seen[folder] = true
	}
	return nil
}

// pluginName is the form of plugin names, which appear in Go strings and in messages.
var pluginName = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_.]*$`)

// checkPlugins checks the plugins and adds their names to seen.
func (m Module) checkPlugins(seen map[string]bool) error {
	if len(m.Plugins) == 0 && (m.Arguments != "" || len(m.Dependencies) > 0) {
		return errors.New("it has arguments or dependencies, but no plugins")
	}
	if m.Arguments != "" && !slices.Contains(m.Packages, m.Arguments) {
		return fmt.Errorf("arguments: %s is not one of its packages", m.Arguments)
	}
	for _, plugin := range m.Plugins {
		switch {
		case !pluginName.MatchString(plugin.Name):
			return fmt.Errorf("plugin %q: the name is not of the form %s", plugin.Name, pluginName)
		case seen[plugin.Name]:
			return fmt.Errorf("the plugin %s is listed twice", plugin.Name)
		case !slices.Contains(m.Packages, plugin.Package):
			return fmt.Errorf("plugin %s: %s is not one of its module's packages", plugin.Name, plugin.Package)
		case !token.IsIdentifier(plugin.Constructor) || !token.IsExported(plugin.Constructor):
			return fmt.Errorf("plugin %s: %q is not the name of an exported function", plugin.Name, plugin.Constructor)
		}
		seen[plugin.Name] = true
		for _, file := range plugin.CRDs {
			if !fs.ValidPath(file) {
				return fmt.Errorf("plugin %s: %q is not the path of a file in the module", plugin.Name, file)
			}
		}
	}
	return nil
}
