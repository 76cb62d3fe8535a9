// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

const (
	dependency, carriedPath = "example.org/dependency", "example.org/carried"
	lackingPath, gangsPath  = "example.org/lacking", "example.org/gangs"
	// replacedPath is a module that upstream's go.mod replaces but does not require.
	replacedPath = "example.org/replaced"
)

// kubernetesFiles is a minimal tree of Kubernetes with this project's plugins, just enough for the imports of plugins.
var kubernetesFiles = map[string]string{
	"pkg/runtime/runtime.go":                                       "package runtime\n\ntype Object interface{}\n",
	"pkg/scheduler/apis/config/scheme/scheme.go":                   "package scheme\n\nvar Kinds []string\n",
	"pkg/scheduler/framework/plugins/names/names.go":               "package names\n\nconst ImageLocality = \"ImageLocality\"\n",
	"pkg/scheduler/framework/plugins/nodeload/nodeload.go":         "package nodeload\n",
	"pkg/scheduler/framework/plugins/registry.go":                  "package plugins\n\nimport _ \"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload\"\n",
	"pkg/scheduler/framework/framework.go":                         "package framework\n\ntype Plugin interface{ Name() string }\n\ntype Handle interface{}\n",
	"pkg/scheduler/framework/plugins/shared/carried/registered.go": "package carried\n",
	"cmd/kube-scheduler/main.go":                                   "package main\n\nfunc main() {}\n",
}

// published are the modules that the tests' proxy serves.
var published = map[module.Version]map[string]string{
	{Path: dependency, Version: "v1.1.0"}: {
		"go.mod":           "module example.org/dependency\n\ngo 1.13\n",
		"LICENSE":          "of the dependency\n",
		"used/used.go":     "package used\n",
		"unused/unused.go": "package unused\n",
	},
	{Path: dependency, Version: "v1.3.0"}: {
		"go.mod":         "module example.org/dependency\n\ngo 1.16\n",
		"LICENSE":        "of the dependency\n",
		"used/other.go":  "package used\n\nimport _ \"example.org/dependency/fresh\"\n",
		"fresh/fresh.go": "package fresh\n\nimport _ \"example.org/carried/client\"\n",
	},
	{Path: carriedPath, Version: "v1.4.0"}: {
		"go.mod":           "module example.org/carried\n\ngo 1.16\n\nrequire example.org/dependency v1.3.0\n",
		"root.go":          "package carried\n",
		"known/known.go":   "package known\n",
		"client/client.go": "package client\n",
		"added/added.go":   "package added\n",
	},
	{Path: carriedPath, Version: "v1.5.0"}: {"root.go": "package carried\n"},
	{Path: carriedPath, Version: "v1.0.0"}: {
		"go.mod":                    "module example.org/carried\n\ngo 1.13\n\nrequire example.org/dependency v1.1.0\n",
		"LICENSE":                   "of the module\n",
		"root.go":                   "package carried\n",
		"known/known.go":            "package known\n",
		"client/NOTICE":             "of the client\n",
		"client/data.json":          "{}\n",
		"client/client.go":          "package client\n\nimport _ \"example.org/dependency/used\"\n",
		"client/client_test.go":     "package client\n",
		"client/testdata/file":      "not taken\n",
		"client/v1/v1.go":           "package v1\n\nimport _ \"example.org/carried/client\"\nimport _ \"net/http\"\n",
		"client/v1/v1_windows.go":   "package v1\n\nimport _ \"example.org/carried/known\"\n",
		"incomplete/incomplete.go":  "package incomplete\n",
		"incomplete/other_plan9.go": "package incomplete\n\nimport _ \"example.org/dependency/unused\"\n",
		"broken/broken.go":          "package broken\n\nimport _ \"\n",
		"inner/PATENTS":             "of the inner\n",
		"inner/notes.txt":           "not taken\n",
		"inner/deep/deep.go":        "package deep\n",
		"docs/only.md":              "no package\n",
	},
	{Path: lackingPath, Version: "v0.5.0"}: {
		"LICENSE":         "of what upstream lacks\n",
		"lacking.go":      "package lacking\n\nimport _ \"example.org/lacking/below\"\n",
		"below/below.go":  "package below\n",
		"unused/other.go": "package unused\n",
	},
	{Path: replacedPath, Version: "v1.0.0"}: {"go.mod": "module example.org/replaced\n\ngo 1.12\n", "sub/sub.go": "package sub\n"},
	{Path: gangsPath, Version: "v1.0.0"}:    gangs(),
	// Each of these is invalid in one way.
	{Path: gangsPath, Version: "v1.1.0"}: gangs("go.mod", "example.org/dependency v1.1.0", "example.org/dependency v1.2.0"),
	{Path: gangsPath, Version: "v1.2.0"}: gangs("go.mod", "k8s.io/kubernetes v1.23.4", "k8s.io/kubernetes v1.24.0"),
	{Path: gangsPath, Version: "v1.3.0"}: gangs("go.mod", ")\n\nreplace", ")\nunheard of\n\nreplace"),
	{Path: gangsPath, Version: "v1.4.0"}: gangs("pkg/other/other.go", "func New", "func init() {}\n\nfunc New"),
}

// upstream makes a repository with a tree that vendors some of the published modules' packages, and points the go
// command at a proxy that serves only these modules. It returns the repository, its only commit, and a module to add.
func upstream(t *testing.T) (repository, commit string, carried Module) {
	t.Helper()
	proxy := t.TempDir()
	for version, files := range published {
		source, folder := t.TempDir(), filepath.Join(proxy, version.Path, "@v")
		writeTree(t, source, files)
		writeTree(t, folder, map[string]string{
			version.Version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2021-01-01T00:00:00Z"}`, version.Version),
			version.Version + ".mod":  cmp.Or(files["go.mod"], "module "+version.Path+"\n"),
			"list":                    readIfThere(t, filepath.Join(folder, "list")) + version.Version + "\n",
		})
		name := filepath.Join(folder, version.Version+".zip")
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := zip.CreateFromDir(file, version, source); err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	for name, value := range map[string]string{
		"GOPROXY": "file://" + proxy, "GOSUMDB": "off", "GOMODCACHE": t.TempDir(), "GOFLAGS": "", "GOWORK": "off",
		"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
	} {
		t.Setenv(name, value)
	}
	// The go command makes its cache read-only.
	t.Cleanup(func() { exec.Command("go", "clean", "-modcache").Run() })

	repository = t.TempDir()
	writeTree(t, repository, kubernetesFiles)
	writeTree(t, repository, map[string]string{
		"go.mod": "module k8s.io/kubernetes\n\ngo 1.16\n\n" +
			"require (\n\texample.org/carried v1.0.0\n\texample.org/dependency v1.1.0\n)\n\n" +
			"replace (\n\texample.org/carried => example.org/carried v1.0.0\n" +
			"\texample.org/replaced => example.org/replaced v1.0.0\n)\n",
		"main.go": "package main\n\nimport (\n\t_ \"example.org/carried\"\n\t_ \"example.org/carried/known\"\n" +
			"\t_ \"example.org/dependency/used\"\n)\n\nfunc main() {}\n",
	})
	in(t, repository, "go", "mod", "tidy")
	in(t, repository, "go", "mod", "vendor")
	in(t, repository, "git", "init", "-q")
	in(t, repository, "git", "add", "-A")
	in(t, repository, "git", "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "Release")
	carried = Module{Path: carriedPath, Version: "v1.0.0", Sum: sumOf(t, carriedPath, "v1.0.0")}
	carried.Packages = []string{"client/v1", "client", "inner/deep"}
	return repository, in(t, repository, "git", "rev-parse", "HEAD"), carried
}

func readIfThere(t *testing.T, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return readFile(t, path)
}

// sumOf returns the sum of a module from the tests' proxy.
func sumOf(t *testing.T, path, version string) string {
	t.Helper()
	proxy := strings.TrimPrefix(os.Getenv("GOPROXY"), "file://")
	sum, err := dirhash.HashZip(filepath.Join(proxy, path, "@v", version+".zip"), dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func writeTree(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// in runs a command in a directory and returns its output.
func in(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	command := exec.Command(name, arguments...)
	command.Dir = folder
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", command.Args, err, &stderr)
	}
	return strings.TrimSpace(string(output))
}

func carry(t *testing.T, modules []Module, repository, commit, ref string) {
	t.Helper()
	if err := Carry(context.Background(), modules, repository, commit, ref, io.Discard); err != nil {
		t.Fatal(err)
	}
}

func TestCarryMakesWhatGoModVendorMakes(t *testing.T) {
	// Upstream's early releases have language version 1.16, the last ones 1.19; modules.txt has more detail since 1.17.
	for _, level := range []string{"1.16", "1.19"} {
		t.Run(level, func(t *testing.T) { testCarryMakesWhatGoModVendorMakes(t, level) })
	}
}

// setLevel commits another language version of the tree, and returns the commit.
func setLevel(t *testing.T, repository, level string) string {
	t.Helper()
	in(t, repository, "go", "mod", "edit", "-go="+level)
	in(t, repository, "go", "mod", "tidy")
	in(t, repository, "go", "mod", "vendor")
	in(t, repository, "git", "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qam", "Level", "--allow-empty")
	return in(t, repository, "git", "rev-parse", "HEAD")
}

func testCarryMakesWhatGoModVendorMakes(t *testing.T, level string) {
	repository, _, carried := upstream(t)
	commit := setLevel(t, repository, level)
	lacking := Module{Path: lackingPath, Version: "v0.5.0", Sum: sumOf(t, lackingPath, "v0.5.0"), Packages: []string{".", "below"}}
	replaced := Module{Path: replacedPath, Version: "v1.0.0", Sum: sumOf(t, replacedPath, "v1.0.0"), Packages: []string{"sub"}}
	carry(t, []Module{carried, lacking, replaced}, repository, commit, "refs/modules/one")
	if got := in(t, repository, "git", "rev-parse", "refs/modules/one^"); got != commit {
		t.Errorf("the parent is %s, want %s", got, commit)
	}
	if changes := in(t, repository, "git", "status", "--porcelain"); changes != "" {
		t.Errorf("the work tree has changes: %s", changes)
	}

	// The go command accepts the tree without any settings, and changes nothing when the tree itself imports the
	// packages.
	in(t, repository, "git", "checkout", "-q", "refs/modules/one")
	writeTree(t, repository, map[string]string{
		"more.go": "package main\n\nimport _ \"example.org/carried/client/v1\"\nimport _ \"example.org/carried/inner/deep\"\n" +
			"import _ \"example.org/lacking\"\nimport _ \"example.org/replaced/sub\"\n",
	})
	in(t, repository, "go", "build", "-o", os.DevNull, ".")
	in(t, repository, "go", "mod", "vendor")
	if changes := in(t, repository, "git", "status", "--porcelain", "--untracked-files=all"); changes != "?? more.go" {
		t.Errorf("go mod vendor changes files:\n%s\n%s", changes, in(t, repository, "git", "diff"))
	}
	for name, want := range map[string]bool{
		"client/NOTICE": true, "client/data.json": true, "client/client_test.go": false, "client/testdata": false,
		"docs": false, "inner/PATENTS": true, "inner/notes.txt": false,
	} {
		if _, err := os.Stat(filepath.Join(repository, "vendor", carriedPath, name)); (err == nil) != want {
			t.Errorf("%s is in vendor/: %v, want %v", name, err == nil, want)
		}
	}
}

// Raised modules, one of them replaced in go.mod, come as go mod vendor brings them: with the packages that they import
// now, and without their old files.
func TestCarryRaises(t *testing.T) {
	repository, _, _ := upstream(t)
	commit := setLevel(t, repository, "1.19")
	raises := func(path, version string, packages ...string) Module {
		return Module{Path: path, Version: version, Sum: sumOf(t, path, version), Raises: []string{"GO-2026-1"}, Packages: packages}
	}
	carry(t, []Module{raises(dependency, "v1.3.0"), raises(carriedPath, "v1.4.0", "added")}, repository, commit, "refs/modules/raised")
	in(t, repository, "git", "checkout", "-q", "refs/modules/raised")
	in(t, repository, "go", "build", "-o", os.DevNull, ".")
	writeTree(t, repository, map[string]string{"more.go": "package main\n\nimport _ \"example.org/carried/added\"\n"})
	in(t, repository, "go", "mod", "vendor")
	if changes := in(t, repository, "git", "status", "--porcelain", "--untracked-files=all"); changes != "?? more.go" {
		t.Errorf("go mod vendor changes files:\n%s\n%s", changes, in(t, repository, "git", "diff"))
	}
	if _, err := os.Stat(filepath.Join(repository, "vendor", dependency, "used/used.go")); err == nil {
		t.Error("a file of the old version is still there")
	}

	for name, tt := range map[string]struct {
		module Module
		want   string
	}{
		"upstream's version":        {raises(dependency, "v1.1.0"), "upstream vendors example.org/dependency@v1.1.0, but modules.yaml raises it to v1.1.0"},
		"one that is not vendored":  {raises(lackingPath, "v0.5.0"), "upstream does not vendor example.org/lacking"},
		"one without what is used":  {raises(carriedPath, "v1.5.0"), "has no package example.org/carried/known, which main.go imports"},
		"one vendored package more": {raises(carriedPath, "v1.4.0", "known"), "upstream vendors example.org/carried/known itself"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Carry(context.Background(), []Module{tt.module}, repository, commit, "refs/modules/refused", io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "next: ") {
				t.Errorf("Carry = %v, want an error that contains %q", err, tt.want)
			}
		})
	}
}

func TestCarryMakesTheSameCommitEverywhere(t *testing.T) {
	repository, commit, carried := upstream(t)
	clone := filepath.Join(t.TempDir(), "clone")
	in(t, ".", "git", "clone", "-q", repository, clone)
	in(t, clone, "git", "config", "core.autocrlf", "true")
	var ids []string
	for i, folder := range []string{repository, clone, clone} {
		t.Setenv("GIT_COMMITTER_NAME", fmt.Sprint("person ", i))
		t.Setenv("TZ", []string{"UTC", "Asia/Tokyo", "UTC"}[i])
		carry(t, []Module{carried}, folder, commit, "refs/modules/same")
		ids = append(ids, in(t, folder, "git", "rev-parse", "refs/modules/same"))
	}
	if ids[0] != ids[1] || ids[0] != ids[2] {
		t.Errorf("three runs make the commits %v", ids)
	}
	carry(t, nil, clone, commit, "refs/modules/none")
	if got := in(t, clone, "git", "rev-parse", "refs/modules/none"); got != commit {
		t.Errorf("without modules the commit is %s, want upstream's own, %s", got, commit)
	}
}

func TestCarryRefuses(t *testing.T) {
	repository, commit, carried := upstream(t)
	packages := func(folders ...string) func(*testing.T, *Module) {
		return func(_ *testing.T, m *Module) { m.Packages = folders }
	}
	for name, tt := range map[string]struct {
		change func(t *testing.T, m *Module)
		// wants are parts of the error.
		wants []string
	}{
		"a version that upstream does not vendor": {func(_ *testing.T, m *Module) { m.Version = "v1.2.0" }, []string{
			"upstream vendors example.org/carried@v1.0.0, but modules.yaml has example.org/carried@v1.2.0",
			"next: put upstream's version", "go mod download -json example.org/carried@v1.0.0",
		}},
		"a module that there is not": {func(_ *testing.T, m *Module) { m.Path = "example.org/none" }, []string{
			"example.org/none@v1.0.0", "next: check",
		}},
		"a CRD that there is not": {func(_ *testing.T, m *Module) {
			m.Plugins = []Plugin{{Name: "Gang", Package: "client", Constructor: "New", CRDs: []string{"crd.yaml"}}}
		}, []string{"example.org/carried@v1.0.0: crd.yaml, which Gang needs: ", "next: correct the crds of Gang"}},
		"a CRD that is none": {func(_ *testing.T, m *Module) {
			m.Plugins = []Plugin{{Name: "Gang", Package: "client", Constructor: "New", CRDs: []string{"client/data.json"}}}
		}, []string{"it contains no CustomResourceDefinition", "next: correct the crds of Gang"}},
		"a package that upstream vendors": {packages("client", "known"), []string{
			"upstream vendors example.org/carried/known itself", "next: remove the package",
		}},
		"another sum": {func(_ *testing.T, m *Module) { m.Sum = "h1:other" }, []string{
			"example.org/carried@v1.0.0 has the sum " + carried.Sum + ", but modules.yaml pins h1:other",
			"next: do not build",
		}},
		"imports that would be missing, on any system": {packages("incomplete", "client/v1"), []string{
			"example.org/carried/client/v1 imports example.org/carried/client, " +
				"example.org/carried/incomplete imports example.org/dependency/unused", "next: add the imported packages",
		}},
		"a folder without a package":    {packages("docs"), []string{"no Go files", "next: correct"}},
		"a folder that is not there":    {packages("absent"), []string{"no Go files", "next: correct"}},
		"a package that does not parse": {packages("broken"), []string{"broken.go:3", "next: correct"}},
		"a proxy that does not answer": {func(t *testing.T, _ *Module) {
			t.Setenv("GOPROXY", "off")
			in(t, ".", "go", "clean", "-modcache")
		}, []string{"next: check"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := carried
			tt.change(t, &m)
			err := Carry(context.Background(), []Module{m}, repository, commit, "refs/modules/refused", io.Discard)
			for _, want := range tt.wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Carry = %v, want an error that contains %q", err, want)
				}
			}
			if left := in(t, repository, "git", "for-each-ref", "refs/modules"); left != "" {
				t.Errorf("a ref was made: %s", left)
			}
		})
	}
}

func TestReadModulesRefuses(t *testing.T) {
	const entry = "- module: example.org/carried\n  version: v1.0.0\n" +
		"  sum: h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU=\n  packages:\n  - client\n"
	const gang = "  - name: Gang\n    package: client\n    constructor: New\n"
	const plugins = entry + "  plugins:\n" + gang
	const dependencies = "  dependencies:\n"
	const sum = "h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU="
	const below = "  - module: example.org/lacking\n    version: v0.5.0\n    sum: " + sum + "\n    packages:\n    - .\n"
	const valid = "modules:\n" + plugins
	file := func(content string) string { return writeFile(t, "modules.yaml", content) }
	modules, err := ReadModules(file(valid))
	if err != nil || len(modules) != 1 || modules[0].ImportPaths()[0] != "example.org/carried/client" {
		t.Fatalf("ReadModules = %v, %v", modules, err)
	}
	for name, tt := range map[string]struct{ old, new, want string }{
		"an unknown key":             {"  sum:", "  summ:", `unknown field "summ"`},
		"no sum":                     {"h1:", "h2:", "is not of the form"},
		"a version that is none":     {"v1.0.0", "latest", "example.org/carried@latest"},
		"a path that is none":        {"example.org/carried", "carried", `"carried"`},
		"no packages":                {"packages:\n  - client", "packages: []", "no packages"},
		"a package elsewhere":        {"- client", "- ../client", `package "../client"`},
		"a package by its full path": {"- client", "- /client", `package "/client"`},
		"a package twice":            {"- client\n", "- client\n  - client\n", "example.org/carried/client is listed twice"},
		"a module twice":             {entry, entry + strings.Replace(entry, "client", "other", 1), "carried is listed twice"},
		"another version below a module": {plugins, plugins + dependencies + strings.Replace(below, "v0.5.0", "v0.5.1", 1) +
			strings.Replace(plugins, "carried", "more", 1) + dependencies + below, "lacking is listed as v0.5.1 " + sum + " and as v0.5.0"},
		"another sum below a module": {plugins, plugins + dependencies + strings.Replace(below, "h1:nzP", "h1:aaa", 1) +
			strings.Replace(plugins, "carried", "more", 1) + dependencies + below, "and as v0.5.0 " + sum + ": a binary cannot contain two versions"},
		"a dependency with a dependency":  {plugins, plugins + dependencies + below + "    dependencies: [{module: a.b/c}]\n", "a dependency can only have packages"},
		"a dependency with arguments":     {plugins, plugins + dependencies + below + "    arguments: .\n", "a dependency can only have packages"},
		"a dependency without packages":   {plugins, plugins + dependencies + "  - module: example.org/lacking\n    version: v0.5.0\n    sum: " + sum + "\n", "lacking: no packages"},
		"dependencies without plugins":    {plugins, entry + dependencies + below, "dependencies, but no plugins"},
		"arguments without plugins":       {plugins, entry + "  arguments: client\n", "it has arguments or dependencies, but no plugins"},
		"arguments from elsewhere":        {plugins, plugins + "  arguments: other\n", "arguments: other is not one of its packages"},
		"a plugin from elsewhere":         {"package: client", "package: other", "plugin Gang: other is not one of its module's packages"},
		"a plugin whose name is no name":  {"name: Gang", "name: '\"'", "the name is not of the form"},
		"a plugin without a name":         {"name: Gang", "name: ''", `plugin "": the name is not of the form`},
		"a plugin without a constructor":  {"constructor: New", "constructor: ''", `plugin Gang: "" is not the name of an exported function`},
		"a constructor for itself":        {"constructor: New", "constructor: newGang", `"newGang" is not the name of an exported function`},
		"code in the place of a function": {"constructor: New", "constructor: New()", `"New()" is not the name of an exported function`},
		"a plugin twice":                  {plugins, plugins + gang, "the plugin Gang is listed twice"},
		"a plugin of two modules":         {plugins, plugins + strings.Replace(plugins, "carried", "more", 1), "more: the plugin Gang is listed twice"},
		"a CRD elsewhere":                 {"    constructor: New\n", "    constructor: New\n    crds:\n    - ../crd.yaml\n", `plugin Gang: "../crd.yaml" is not the path of a file`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadModules(file(strings.Replace(valid, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "next: ") {
				t.Errorf("ReadModules = %v, want an error that contains %q and the next step", err, tt.want)
			}
		})
	}
	_, err = ReadModules(filepath.Join(t.TempDir(), "none"))
	if err == nil || !strings.Contains(err.Error(), "next: git checkout -- modules.yaml") {
		t.Errorf("ReadModules of no file = %v", err)
	}
}

// modules.yaml matches plugins/, which is compiled and tested with these modules.
func TestModulesOfThisProject(t *testing.T) {
	modules, err := ReadModules("../../modules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	required, err := modfile.Parse("go.mod", []byte(readFile(t, "../../plugins/go.mod")), nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, require := range required.Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	sums := readFile(t, "../../plugins/go.sum")
	for _, m := range modules {
		version, found := versions[m.Path]
		// plugins/ is tested with upstream's own versions.
		found = found && len(m.Raises) == 0
		if found && version != m.Version {
			t.Errorf("plugins/go.mod requires %s %s, modules.yaml has %s", m.Path, version, m.Version)
		}
		if line := m.Path + " " + m.Version + " " + m.Sum + "\n"; found && !strings.Contains(sums, line) {
			t.Errorf("plugins/go.sum has no line %q", line)
		}
	}
}

func TestParseVendorList(t *testing.T) {
	const content = "# example.org/a v1.0.0 => example.org/fork v1.0.1\n## explicit; go 1.16\n" +
		"example.org/a/x\nexample.org/a/y\n# example.org/b v0.0.0 => ./staging/src/b\nexample.org/b\n" +
		"# example.org/c v2.0.0+incompatible\n## explicit\n# example.org/a => example.org/fork v1.0.1\n"
	list := ParseVendorList([]byte(content))
	got := map[string]string{}
	for _, vendored := range list {
		got[vendored.Module.String()] = vendored.Replacement.String() + " " + strings.Join(vendored.Packages, ",")
	}
	want := map[string]string{
		"example.org/a@v1.0.0":              "example.org/fork@v1.0.1 example.org/a/x,example.org/a/y",
		"example.org/b@v0.0.0":              "./staging/src/b example.org/b",
		"example.org/c@v2.0.0+incompatible": " ",
		"example.org/a":                     "example.org/fork@v1.0.1 ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if again := string(formatVendorList(list)); again != content {
		t.Errorf("written again it is\n%s", again)
	}
}
