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
	// byHand is the next step where the code of a module does not say what is meant.
	byHand = "write the entry into modules.yaml yourself; see docs/modules.md"
	// otherVersion is the next step where a version of a module does not fit; it names the module.
	otherVersion = "use the module's version for Kubernetes 1.23: go list -m -versions %s"
)

// Resolve makes the entry of modules.yaml for plugins of a module: it finds their packages and constructors, the
// package that knows their arguments, their CRDs, and all that these import and the tree of a Kubernetes release, a
// commit of repository, does not have. It refuses what cannot be in one binary with that release.
func Resolve(ctx context.Context, name, version string, plugins []string, repository, commit string) (Module, error) {
	r := resolver{ctx: ctx, repository: repository, commit: commit, modules: map[string]*unpackedModule{}}
	defer r.cleanup()
	listed, err := git(ctx, repository, nil, "cat-file", "blob", commit+":vendor/modules.txt")
	if err != nil {
		return Module{}, nextstep.With(fmt.Errorf("%s is not a Kubernetes tree: %w", repository, err), "make tree")
	}
	r.vendored = ParseVendorList(listed)
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
	return m, r.close(&m)
}

// resolver follows imports from a module's plugins.
type resolver struct {
	ctx                context.Context
	repository, commit string
	vendored           []*Vendored
	root               *unpackedModule
	// modules are those that were unpacked, by path and version.
	modules map[string]*unpackedModule
}

type unpackedModule struct {
	path, version, sum, folder string
	// requires are the versions of the modules that its go.mod names, by their paths.
	requires map[string]string
}

func (m *unpackedModule) String() string { return m.path + "@" + m.version }

// goMod reads go.mod; a module from before there were modules has none.
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

// addReplacements takes the versions that a module replaces others by for those that it requires. They count in its own
// build alone, but they say what it was made with.
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

// unpack has a module's files in a folder, and reads what it requires.
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

// sameMinor refuses a module that was made for another minor release of Kubernetes.
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

// free refuses a name that a plugin of upstream's has, or one in the registry of the tree that is checked out.
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

// goPackage is what is read of a package of a module.
type goPackage struct {
	name, folder string
	imports      []string
	// constants are those with a literal text, by their names.
	constants map[string]string
	// constructors are the functions that make a plugin.
	constructors []string
	// words are the names that are used in it.
	words   map[string]bool
	hasInit bool
}

// goModule is what is read of a module: its packages by their folders, and its CRDs by their files.
type goModule struct {
	packages map[string]*goPackage
	crds     map[string][]CRD
	// registered are the plugins that the module's own commands register, by name: package folder and constructor.
	registered map[string][2]string
}

// scan reads all packages of a module but its tests and what it vendors.
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
			// Of what is no definition, a chart's template among them, nothing is wanted.
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
		p = &goPackage{name: file.Name.Name, folder: folder, constants: map[string]string{}, words: map[string]bool{}}
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
			p.words[strings.ToLower(name.Name)] = true
		}
		return true
	})
}

// isConstructor says whether a function is a PluginFactory: func(runtime.Object, framework.Handle) (framework.Plugin,
// error).
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

// addRegistered reads the calls app.WithPlugin(package.Constant, package.Constructor) of a command.
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

// plugin finds the plugin of that name: as the module's own command registers it, or the one constructor of the one
// package with a constant of that text whose own name ends with Name.
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
			strings.Join(constructors, ", ")), byHand)
	}
}

// crdsOf are the files with the definitions of the resources that a package, or one below it, names. Where several
// files define the same, the first one is taken.
func (m *goModule) crdsOf(folder string) []string {
	var files []string
	taken := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(m.crds)) {
		for _, crd := range m.crds[file] {
			for _, p := range m.packages {
				below := p.folder == folder || strings.HasPrefix(p.folder, folder+"/")
				if below && p.words[crd.Spec.Names.Plural] && !taken[crd.Metadata.Name] {
					taken[crd.Metadata.Name] = true
					files = append(files, file)
				}
			}
		}
	}
	return slices.Compact(files)
}

// arguments is the package that adds types to the scheduler's scheme when it is initialised; "" if there is none.
func (m *goModule) arguments(module string) (string, error) {
	var found []string
	for _, folder := range slices.Sorted(maps.Keys(m.packages)) {
		if p := m.packages[folder]; p.hasInit && p.name != "main" && slices.Contains(p.imports, schemePackage) {
			found = append(found, folder)
		}
	}
	if len(found) > 1 {
		return "", nextstep.With(fmt.Errorf("several packages of %s add to the scheduler's scheme: %s", module,
			strings.Join(found, ", ")), byHand)
	}
	return strings.Join(found, ""), nil
}

// close adds to m all packages that its plugins and arguments import, of its own and of other modules, and that
// Kubernetes does not vendor.
func (r *resolver) close(m *Module) error {
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

// asked is the module that a package comes from, as the module that imports it asks for it, or the root does: the one
// with the longest path.
func (r *resolver) asked(imported string, by *unpackedModule) (name, version string) {
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

// required is the module that a package comes from: upstream's version where upstream vendors some of it, which may not
// be older than what the importing module requires. It says, too, whether the module lies in the tree of Kubernetes
// whole.
func (r *resolver) required(imported string, by *unpackedModule) (takes module.Version, inStaging bool, err error) {
	name, version := r.asked(imported, by)
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

// provider unpacks the module that a package comes from; nil for a module that lies in the tree of Kubernetes whole.
func (r *resolver) provider(imported string, by *unpackedModule) (*unpackedModule, error) {
	takes, inStaging, err := r.required(imported, by)
	if err != nil || inStaging {
		return nil, err
	}
	if takes.Path == "" {
		return nil, nextstep.With(
			fmt.Errorf("%s imports %s, which is in none of the modules that it requires", by, imported), byHand)
	}
	return r.unpack(takes.Path, takes.Version)
}
