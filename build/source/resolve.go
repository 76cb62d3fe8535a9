// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"kube-scheduler-fork/build/nextstep"
)

const (
	schemePackage = kubernetesModule + "/pkg/scheduler/apis/config/scheme"
	// manualEntry is the next step if the code of a module is ambiguous.
	manualEntry = "write the entry into modules.yaml yourself; see docs/modules.md"
	// otherVersion is the next step if the version of a module is incompatible. Its argument is the module path.
	otherVersion = "use the module's version for Kubernetes 1.23: go list -m -versions %s"
)

// Resolve returns the entry of modules.yaml for plugins of a module. The entry has the packages and constructors of the
// plugins, the package that registers their arguments, their CRDs, and all imported packages that are not in the tree
// of the Kubernetes release, which is a commit of repository. Resolve returns an error if the module and that release
// cannot be in one binary. modules are those of modules.yaml, some of which may be raised.
func Resolve(
	ctx context.Context, modules []Module, name, version string, plugins []string, repository, commit string,
) (Module, error) {
	r := resolver{ctx: ctx, repository: repository, commit: commit, modules: map[string]*unpackedModule{}}
	defer r.cleanup()
	listed, err := git(ctx, repository, nil, "cat-file", "blob", commit+":vendor/modules.txt")
	if err != nil {
		return Module{}, nextstep.With(fmt.Errorf("%s is not a Kubernetes tree: %w", repository, err), "make tree")
	}
	r.vendored = ParseVendorList(listed)
	for _, m := range raised(modules) {
		for _, v := range r.vendored {
			if v.Module.Path == m.Path && v.Module.Version != "" {
				v.Replacement.Path, v.Replacement.Version = m.Path, m.Version
			}
		}
	}
	if r.root, err = r.unpack(name, version); err != nil {
		return Module{}, err
	}
	if err := r.root.addReplacements(); err != nil {
		return Module{}, err
	}
	if err := r.sameMinor(); err != nil {
		return Module{}, err
	}
	code, err := scan(r.root.folder)
	if err != nil {
		return Module{}, err
	}
	m := Module{Path: name, Version: r.root.version, Sum: r.root.sum}
	for i, wanted := range plugins {
		if slices.Contains(plugins[:i], wanted) {
			return Module{}, nextstep.With(fmt.Errorf("PLUGINS has %s twice", wanted), "leave out one of them")
		}
		if err := r.free(wanted); err != nil {
			return Module{}, err
		}
		plugin, err := code.plugin(name, wanted)
		if err != nil {
			return Module{}, err
		}
		plugin.CRDs = code.crdsOf(plugin.Package)
		m.Plugins = append(m.Plugins, plugin)
	}
	if m.Arguments, err = code.arguments(name); err != nil {
		return Module{}, err
	}
	return m, r.addImports(&m)
}

// resolver follows the imports of a module's plugins.
type resolver struct {
	ctx                context.Context
	repository, commit string
	vendored           []*Vendored
	root               *unpackedModule
	// modules has the unpacked modules by PATH@VERSION.
	modules map[string]*unpackedModule
}

type unpackedModule struct {
	path, version, sum, folder string
	// requires has the versions of the modules that its go.mod requires, by module path.
	requires map[string]string
}

func (m *unpackedModule) String() string { return m.path + "@" + m.version }

// goMod parses the module's go.mod. The result is empty if there is none, as in releases older than Go modules.
func (m *unpackedModule) goMod(
	parse func(string, []byte, modfile.VersionFixer) (*modfile.File, error),
) (*modfile.File, error) {
	content, err := os.ReadFile(filepath.Join(m.folder, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return &modfile.File{}, nil
	} else if err != nil {
		return nil, err
	}
	file, err := parse(m.String()+"/go.mod", content, nil)
	if err != nil {
		return nil, nextstep.With(err, "use another version of %s: go list -m -versions %s", m.path, m.path)
	}
	return file, nil
}

// addReplacements uses the versions in the module's replace directives as required versions. The go command only
// applies replace directives in the module's own build, but these are the versions with which it was built.
func (m *unpackedModule) addReplacements() error {
	file, err := m.goMod(modfile.Parse)
	if err != nil {
		return err
	}
	for _, replace := range file.Replace {
		if replace.New.Version != "" && replace.New.Path == replace.Old.Path {
			m.requires[replace.Old.Path] = replace.New.Version
		}
	}
	return nil
}

func (r *resolver) cleanup() {
	for _, m := range r.modules {
		os.RemoveAll(m.folder)
	}
}

// unpack downloads a module into a temporary directory and reads its requirements.
func (r *resolver) unpack(name, version string) (*unpackedModule, error) {
	if m := r.modules[name+"@"+version]; m != nil {
		return m, nil
	}
	downloads, err := downloadModules(r.ctx, []string{name + "@" + version})
	if err != nil {
		return nil, err
	}
	d := downloads[0]
	if d.Error != "" {
		if err = downloadError(d); errors.Is(err, ErrNotAvailable) {
			err = nextstep.With(err, "check MODULE=path@version, and whether the module proxy (go env GOPROXY) has it")
		}
		return nil, err
	}
	m := &unpackedModule{path: name, version: d.Version, sum: d.Sum, requires: map[string]string{}}
	if m.folder, err = os.MkdirTemp("", "module-*"); err != nil {
		return nil, err
	}
	r.modules[name+"@"+d.Version] = m
	if err := extract(d, m.folder); err != nil {
		return nil, err
	}
	file, err := m.goMod(modfile.ParseLax)
	if err != nil {
		return nil, err
	}
	for _, require := range file.Require {
		m.requires[require.Mod.Path] = require.Mod.Version
	}
	return m, nil
}

// sameMinor returns an error if the module was made for another minor release of Kubernetes.
func (r *resolver) sameMinor() error {
	needs := r.root.requires[kubernetesModule]
	if needs == "" {
		return nextstep.With(
			fmt.Errorf("%s does not require %s, so it has no kube-scheduler plugins", r.root, kubernetesModule),
			"check MODULE=path@version")
	}
	if semver.MajorMinor(needs) != "v1.23" {
		return nextstep.With(fmt.Errorf("%s is made for Kubernetes %s, and this is 1.23", r.root, needs),
			otherVersion, r.root.path)
	}
	return nil
}

// free returns an error if upstream, or the registry of the checked-out tree, already has a plugin of that name.
func (r *resolver) free(name string) error {
	const folder = "pkg/scheduler/framework/plugins/"
	names, err := git(r.ctx, r.repository, nil, "cat-file", "blob", r.commit+":"+folder+"names/names.go")
	if err != nil {
		return err
	}
	registry, err := git(r.ctx, r.repository, nil, "cat-file", "blob", "HEAD:"+folder+"registry.go")
	if err != nil {
		return err
	}
	if strings.Contains(string(names), strconv.Quote(name)) ||
		strings.Contains(string(registry), strconv.Quote(kubernetesModule+"/"+folder+strings.ToLower(name))) {
		return nextstep.With(fmt.Errorf("kube-scheduler already has its own plugin %s", name), "leave it out of PLUGINS")
	}
	return nil
}

// goPackage has what the resolver needs of a package.
type goPackage struct {
	name, folder string
	imports      []string
	// constants has the values of string constants by name, if they are literals.
	constants map[string]string
	// constructors are the names of the exported functions that return a plugin.
	constructors []string
	// identifiers are all identifiers in the package, in lower case.
	identifiers map[string]bool
	hasInit     bool
}

// goModule has what the resolver needs of a module: its packages by directory, and its CRDs by file.
type goModule struct {
	packages map[string]*goPackage
	crds     map[string][]CRD
	// registered has the plugins that the module's own commands register, by name: package directory and constructor.
	registered map[string][2]string
}

// scan reads all packages and CRDs of a module, except tests and vendored packages.
func scan(root string) (*goModule, error) {
	m := &goModule{packages: map[string]*goPackage{}, crds: map[string][]CRD{}, registered: map[string][2]string{}}
	files := map[string]*ast.File{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if entry.IsDir() {
			left := []string{"vendor", "testdata", "test"}
			if relative != "." && (slices.Contains(left, entry.Name()) || strings.HasPrefix(entry.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		switch path.Ext(relative) {
		case ".yaml", ".yml":
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			// Files that cannot be parsed, such as the templates of a chart, have no CRDs.
			if crds, err := parseCRDs(content); err == nil {
				m.crds[relative] = crds
			}
		case ".go":
			if strings.HasSuffix(relative, "_test.go") {
				return nil
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files[relative] = parsed
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		m.add(path.Dir(name), files[name])
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name].Name.Name == "main" {
			m.addRegistered(files[name])
		}
	}
	return m, nil
}

func (m *goModule) add(folder string, file *ast.File) {
	p := m.packages[folder]
	if p == nil {
		p = &goPackage{name: file.Name.Name, folder: folder, constants: map[string]string{}, identifiers: map[string]bool{}}
		m.packages[folder] = p
	}
	for _, spec := range file.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
			p.imports = append(p.imports, imported)
		}
	}
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			p.hasInit = p.hasInit || declaration.Recv == nil && declaration.Name.Name == "init"
			if isConstructor(declaration) {
				p.constructors = append(p.constructors, declaration.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				value, ok := spec.(*ast.ValueSpec)
				if !ok || declaration.Tok != token.CONST || len(value.Names) != len(value.Values) {
					continue
				}
				for i, name := range value.Names {
					if literal, ok := value.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
						p.constants[name.Name], _ = strconv.Unquote(literal.Value)
					}
				}
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if name, ok := node.(*ast.Ident); ok {
			p.identifiers[strings.ToLower(name.Name)] = true
		}
		return true
	})
}

// isConstructor reports whether a function is a PluginFactory, func(runtime.Object, framework.Handle)
// (framework.Plugin, error).
func isConstructor(function *ast.FuncDecl) bool {
	if function.Recv != nil || !function.Name.IsExported() || function.Type.TypeParams != nil ||
		function.Type.Results == nil {
		return false
	}
	var types []string
	for _, list := range []*ast.FieldList{function.Type.Params, function.Type.Results} {
		for _, field := range list.List {
			name := ""
			switch t := field.Type.(type) {
			case *ast.Ident:
				name = t.Name
			case *ast.SelectorExpr:
				name = t.Sel.Name
			}
			for range max(1, len(field.Names)) {
				types = append(types, name)
			}
		}
	}
	return slices.Equal(types, []string{"Object", "Handle", "Plugin", "error"})
}

// addRegistered adds the plugins that a command registers by calls app.WithPlugin(package.Constant,
// package.Constructor).
func (m *goModule) addRegistered(file *ast.File) {
	imported := map[string]*goPackage{}
	for _, spec := range file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		for folder, p := range m.packages {
			if folder != "." && strings.HasSuffix(name, "/"+folder) {
				if spec.Name != nil {
					imported[spec.Name.Name] = p
				} else {
					imported[p.name] = p
				}
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		called, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || called.Sel.Name != "WithPlugin" {
			return true
		}
		name, isName := call.Args[0].(*ast.SelectorExpr)
		constructor, isConstructor := call.Args[1].(*ast.SelectorExpr)
		if !isName || !isConstructor {
			return true
		}
		nameFrom, _ := name.X.(*ast.Ident)
		from, _ := constructor.X.(*ast.Ident)
		if nameFrom == nil || from == nil || imported[nameFrom.Name] == nil || imported[from.Name] == nil {
			return true
		}
		if text := imported[nameFrom.Name].constants[name.Sel.Name]; text != "" {
			m.registered[text] = [2]string{imported[from.Name].folder, constructor.Sel.Name}
		}
		return true
	})
}

// plugin returns the plugin of that name, as the module's own command registers it. If none does, it searches for a
// package with a constructor and a constant …Name of that value, and fails unless there is exactly one candidate.
func (m *goModule) plugin(module, name string) (Plugin, error) {
	if found, ok := m.registered[name]; ok {
		return Plugin{Name: name, Package: found[0], Constructor: found[1]}, nil
	}
	var found []Plugin
	known := slices.Collect(maps.Keys(m.registered))
	for _, folder := range slices.Sorted(maps.Keys(m.packages)) {
		p := m.packages[folder]
		for _, constructor := range p.constructors {
			for constant, text := range p.constants {
				if !strings.HasSuffix(constant, "Name") {
					continue
				}
				if text == name {
					found = append(found, Plugin{Name: name, Package: folder, Constructor: constructor})
				} else if pluginName.MatchString(text) && len(p.constructors) == 1 {
					known = append(known, text)
				}
			}
		}
	}
	slices.Sort(known)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		next := "use another module: this one has no plugins"
		if len(known) > 0 {
			next = "choose PLUGINS from those that were found: " + strings.Join(slices.Compact(known), ", ")
		}
		return Plugin{}, nextstep.With(fmt.Errorf("%s has no plugin %q with a constructor "+
			"func(runtime.Object, framework.Handle) (framework.Plugin, error)", module, name), "%s", next)
	default:
		var constructors []string
		for _, p := range found {
			constructors = append(constructors, p.Package+"."+p.Constructor)
		}
		return Plugin{}, nextstep.With(fmt.Errorf("%s has several constructors for %s: %s", module, name,
			strings.Join(constructors, ", ")), manualEntry)
	}
}

// crdsOf returns the files with the CRDs of the resources that a package, or a package below it, uses. If several files
// define the same CRD, it returns the first.
func (m *goModule) crdsOf(folder string) []string {
	var files []string
	taken := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(m.crds)) {
		for _, crd := range m.crds[file] {
			for _, p := range m.packages {
				below := p.folder == folder || strings.HasPrefix(p.folder, folder+"/")
				if below && p.identifiers[crd.Spec.Names.Plural] && !taken[crd.Metadata.Name] {
					taken[crd.Metadata.Name] = true
					files = append(files, file)
				}
			}
		}
	}
	return slices.Compact(files)
}

// arguments returns the package that adds types to the scheduler's scheme in its init function, or "".
func (m *goModule) arguments(module string) (string, error) {
	var found []string
	for _, folder := range slices.Sorted(maps.Keys(m.packages)) {
		if p := m.packages[folder]; p.hasInit && p.name != "main" && slices.Contains(p.imports, schemePackage) {
			found = append(found, folder)
		}
	}
	if len(found) > 1 {
		return "", nextstep.With(fmt.Errorf("several packages of %s add to the scheduler's scheme: %s", module,
			strings.Join(found, ", ")), manualEntry)
	}
	return strings.Join(found, ""), nil
}

// addImports adds to m all packages that its plugins and arguments import and that Kubernetes does not vendor: packages
// of the module itself, and of other modules as dependencies.
func (r *resolver) addImports(m *Module) error {
	have := map[string]bool{}
	for _, vendored := range r.vendored {
		for _, name := range vendored.Packages {
			have[name] = true
		}
	}
	type wanted struct {
		imported string
		by       *unpackedModule
	}
	var queue []wanted
	for _, plugin := range m.Plugins {
		queue = append(queue, wanted{path.Join(m.Path, plugin.Package), r.root})
	}
	if m.Arguments != "" {
		queue = append(queue, wanted{path.Join(m.Path, m.Arguments), r.root})
	}
	packages := map[*unpackedModule][]string{}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		switch {
		case isStandard(next.imported):
			continue
		case strings.HasPrefix(next.imported, kubernetesModule+"/"):
			below := strings.TrimPrefix(next.imported, kubernetesModule+"/")
			if _, err := git(r.ctx, r.repository, nil, "cat-file", "-e", r.commit+":"+below); err != nil {
				return nextstep.With(
					fmt.Errorf("%s imports %s, which this Kubernetes does not have", next.by, next.imported),
					otherVersion, r.root.path)
			}
			continue
		case have[next.imported]:
			if _, _, err := r.required(next.imported, next.by); err != nil {
				return err
			}
			continue
		}
		have[next.imported] = true
		provider, err := r.provider(next.imported, next.by)
		if err != nil {
			return err
		}
		if provider == nil {
			continue
		}
		folder := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(next.imported, provider.path), "/"), ".")
		packages[provider] = append(packages[provider], folder)
		files, imports := map[string][]byte{}, map[string][]string{}
		alone := Module{Path: provider.path, Packages: []string{folder}}
		if err := vendorPackages(provider.folder, alone, files, imports); err != nil {
			return nextstep.With(
				fmt.Errorf("%s imports %s, which %s does not have: %w", next.by, next.imported, provider, err),
				otherVersion, r.root.path)
		}
		for _, imported := range imports[next.imported] {
			queue = append(queue, wanted{imported, provider})
		}
	}
	for provider, folders := range packages {
		slices.Sort(folders)
		if provider == r.root {
			m.Packages = folders
			continue
		}
		m.Dependencies = append(m.Dependencies,
			Module{Path: provider.path, Version: provider.version, Sum: provider.sum, Packages: folders})
	}
	slices.SortFunc(m.Dependencies, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// requested returns the module that contains a package, which is the one with the longest matching path, and the higher
// of the versions that the importing module and the root module require.
func (r *resolver) requested(imported string, by *unpackedModule) (name, version string) {
	for _, requires := range []map[string]string{{by.path: by.version}, by.requires, r.root.requires} {
		for candidate, v := range requires {
			if (imported == candidate || strings.HasPrefix(imported, candidate+"/")) && len(candidate) > len(name) {
				name, version = candidate, v
			}
		}
	}
	if v := r.root.requires[name]; semver.Compare(v, version) > 0 {
		version = v
	}
	return name, version
}

// required returns the module that contains a package. If upstream vendors some of the module, the version is
// upstream's, which must not be older than the requested version. inStaging reports whether the Kubernetes tree
// contains the whole module.
func (r *resolver) required(imported string, by *unpackedModule) (takes module.Version, inStaging bool, err error) {
	name, version := r.requested(imported, by)
	takes = module.Version{Path: name, Version: version}
	at := slices.IndexFunc(r.vendored, func(v *Vendored) bool { return v.Module.Path == name && v.Module.Version != "" })
	if at < 0 || r.vendored[at].inStaging() {
		return takes, at >= 0, nil
	}
	takes.Version = r.vendored[at].takes().Version
	if semver.Compare(version, takes.Version) > 0 {
		return takes, false, nextstep.With(
			fmt.Errorf("%s needs %s@%s, but upstream vendors %s: a binary cannot contain two versions of a module",
				by, name, version, takes.Version),
			"use an older version of the module (go list -m -versions %s), or leave out the plugin that needs it",
			r.root.path)
	}
	return takes, false, nil
}

// provider unpacks the module that contains a package. It returns nil if the Kubernetes tree contains the whole module.
func (r *resolver) provider(imported string, by *unpackedModule) (*unpackedModule, error) {
	takes, inStaging, err := r.required(imported, by)
	if err != nil || inStaging {
		return nil, err
	}
	if takes.Path == "" {
		return nil, nextstep.With(
			fmt.Errorf("%s imports %s, which is in none of the modules that it requires", by, imported), manualEntry)
	}
	return r.unpack(takes.Path, takes.Version)
}
