// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
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

const dependency, carriedPath = "example.org/dependency", "example.org/carried"

// published are the modules that the tests' proxy offers.
var published = map[module.Version]map[string]string{
	{Path: dependency, Version: "v1.1.0"}: {
		"go.mod":           "module example.org/dependency\n\ngo 1.13\n",
		"LICENSE":          "of the dependency\n",
		"used/used.go":     "package used\n",
		"unused/unused.go": "package unused\n",
	},
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
}

// upstream makes a repository with a tree that vendors some of the published modules' packages, and points the go
// command at a proxy that offers these modules alone. It gives the repository, its one commit, and a module to carry.
func upstream(t *testing.T) (repository, commit string, carried Module) {
	t.Helper()
	proxy := t.TempDir()
	sums := map[string]string{}
	for version, files := range published {
		source, folder := t.TempDir(), filepath.Join(proxy, version.Path, "@v")
		writeTree(t, source, files)
		writeTree(t, folder, map[string]string{
			version.Version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2021-01-01T00:00:00Z"}`, version.Version),
			version.Version + ".mod":  files["go.mod"],
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
		if sums[version.Path], err = dirhash.HashZip(name, dirhash.Hash1); err != nil {
			t.Fatal(err)
		}
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
	writeTree(t, repository, map[string]string{
		"go.mod": "module k8s.io/kubernetes\n\ngo 1.16\n\n" +
			"require (\n\texample.org/carried v1.0.0\n\texample.org/dependency v1.1.0\n)\n\n" +
			"replace example.org/carried => example.org/carried v1.0.0\n",
		"main.go": "package main\n\nimport (\n\t_ \"example.org/carried\"\n\t_ \"example.org/carried/known\"\n" +
			"\t_ \"example.org/dependency/used\"\n)\n\nfunc main() {}\n",
	})
	in(t, repository, "go", "mod", "tidy")
	in(t, repository, "go", "mod", "vendor")
	in(t, repository, "git", "init", "-q")
	in(t, repository, "git", "add", "-A")
	in(t, repository, "git", "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "Release")
	carried = Module{Path: carriedPath, Version: "v1.0.0", Sum: sums[carriedPath]}
	carried.Packages = []string{"client/v1", "client", "inner/deep"}
	return repository, in(t, repository, "git", "rev-parse", "HEAD"), carried
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

// in runs a command in a folder, and gives what it prints.
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

func TestCarryIsWhatGoModVendorMakes(t *testing.T) {
	repository, commit, carried := upstream(t)
	carry(t, []Module{carried}, repository, commit, "refs/modules/one")
	if got := in(t, repository, "git", "rev-parse", "refs/modules/one^"); got != commit {
		t.Errorf("the parent is %s, want %s", got, commit)
	}
	if changes := in(t, repository, "git", "status", "--porcelain"); changes != "" {
		t.Errorf("the work tree has changes: %s", changes)
	}

	// The go command accepts it, and makes no other when the tree itself imports the packages.
	in(t, repository, "git", "checkout", "-q", "refs/modules/one")
	writeTree(t, repository, map[string]string{
		"more.go": "package main\n\nimport _ \"example.org/carried/client/v1\"\n" +
			"import _ \"example.org/carried/inner/deep\"\n",
	})
	in(t, repository, "go", "build", "-mod=vendor", "-o", os.DevNull, ".")
	in(t, repository, "go", "mod", "vendor")
	if changes := in(t, repository, "git", "status", "--porcelain", "--untracked-files=all"); changes != "?? more.go" {
		t.Errorf("go mod vendor makes another vendor folder:\n%s", changes)
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
		// wants are in the error.
		wants []string
	}{
		"a version that upstream does not vendor": {func(_ *testing.T, m *Module) { m.Version = "v1.2.0" }, []string{
			"upstream vendors example.org/carried@v1.0.0, but modules.yaml has example.org/carried@v1.2.0",
			"next: put upstream's version", "go mod download -json example.org/carried@v1.0.0",
		}},
		"a module that is not vendored": {func(_ *testing.T, m *Module) { m.Path = "example.org/none" }, []string{
			"upstream vendors no package of example.org/none", "next: take it out",
		}},
		"a package that upstream vendors": {packages("client", "known"), []string{
			"upstream vendors example.org/carried/known itself", "next: take the package out",
		}},
		"another sum": {func(_ *testing.T, m *Module) { m.Sum = "h1:other" }, []string{
			"example.org/carried@v1.0.0 has the sum " + carried.Sum + ", but modules.yaml pins h1:other",
			"next: do not build",
		}},
		"imports that would be missing, on any system": {packages("incomplete", "client/v1"), []string{
			"example.org/carried/client/v1 imports example.org/carried/client, " +
				"example.org/carried/incomplete imports example.org/dependency/unused", "next: add what is imported",
		}},
		"a folder without a package":    {packages("docs"), []string{"no Go files", "next: correct"}},
		"a folder that is not there":    {packages("absent"), []string{"no Go files", "next: correct"}},
		"a package that does not parse": {packages("broken"), []string{"broken.go:3", "next: correct"}},
		"a proxy that does not answer": {func(t *testing.T, _ *Module) {
			t.Setenv("GOPROXY", "off")
			in(t, ".", "go", "clean", "-modcache")
		}, []string{"next: see that"}},
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
	const valid = "modules:\n" + entry
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
		"a package twice":            {"- client\n", "- client\n  - client\n", "example.org/carried/client stands"},
		"a module twice":             {entry, entry + strings.Replace(entry, "client", "other", 1), "carried stands"},
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

// TestModulesOfThisProject holds modules.yaml against plugins/, which is compiled and tested with these modules.
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
