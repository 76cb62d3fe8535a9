// SPDX-License-Identifier: Apache-2.0

package patches

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-scheduler-fork/build/source"
)

const sample = `From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: kube-scheduler build <build@localhost>
Date: Sun, 9 Sep 2001 01:46:40 +0000
Subject: [PATCH] scheduler: change a number

It was too small.

Why: it was too small for large clusters,
 and nobody knew.
Upstream-Status: Inappropriate
Applies-To: v1.23.0 - v1.23.17
Drop-When: never

diff --git a/pkg/a.go b/pkg/a.go
index 8f85ffb58a4b22a6c3e6eea4213173189d433e79..e716044dd0de860d766818a33096aad6926156bc 100644
--- a/pkg/a.go
+++ b/pkg/a.go
@@ -1,3 +1,4 @@
 package pkg
 
-const a = 1
+const a = 2
+const b = 3
`

// series writes the files to a directory and reads them as a series.
func series(t *testing.T, files map[string]string) []Patch {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestRead(t *testing.T) {
	read := series(t, map[string]string{
		"0200-second.patch": strings.ReplaceAll(sample, "a.go", "b.go"),
		"0100-first.patch":  sample + "-- \n2.39.5\n\n",
		"README.md":         "not a patch",
	})
	if len(read) != 2 || read[0].Name != "0100-first.patch" || read[1].Name != "0200-second.patch" {
		t.Fatalf("Read gives %d patches, not the two in the order of their names", len(read))
	}
	patch := read[0]
	if patch.Subject != "scheduler: change a number" || patch.Body != "It was too small." {
		t.Errorf("subject %q, body %q", patch.Subject, patch.Body)
	}
	if got, want := patch.Trailer("Why"), "it was too small for large clusters, and nobody knew."; got != want {
		t.Errorf("Why: %q, want %q", got, want)
	}
	if len(patch.Files) != 1 || patch.Files[0] != "pkg/a.go" || patch.Added != 2 || patch.Deleted != 1 {
		t.Errorf("files %q +%d −%d, want pkg/a.go +2 −1", patch.Files, patch.Added, patch.Deleted)
	}
	if !strings.HasPrefix(string(patch.Diff), "diff --git a/pkg/a.go") || !strings.HasSuffix(string(patch.Diff), "+const b = 3\n") {
		t.Errorf("the diff is %q", patch.Diff)
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "no patches") {
		t.Errorf("Read of an empty folder = %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "0100-a.patch"), []byte("only words\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "0100-a.patch") {
		t.Errorf("Read of a patch without a diff = %v, want an error that names it", err)
	}
}

func TestVersionNamesWhatIsInside(t *testing.T) {
	const sum, goVersion = "h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU=", "go1.27.4"
	version := func(kubernetes, suffix, sum, goVersion string, files map[string]string) string {
		t.Helper()
		v, err := Version(kubernetes, suffix, sum, goVersion, nil, series(t, files))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	files := func(first string) map[string]string {
		return map[string]string{"0100-a.patch": first, "0200-b.patch": strings.ReplaceAll(sample, "a.go", "b.go")}
	}
	original := version("v1.23.17", "fork", sum, goVersion, files(sample))
	// Computed independently of the code, with sha256sum over the lines that the documentation of Version lists.
	if want := "v1.23.17+fork.562ee7495520"; original != want {
		t.Errorf("Version = %s, want %s", original, want)
	}

	same := map[string]string{
		"a reworded message": version("v1.23.17", "fork", sum, goVersion, files(strings.Replace(sample, "It was too small.", "Other words.", 1))),
		"git's signature":    version("v1.23.17", "fork", sum, goVersion, files(sample+"-- \n2.39.5\n\n")),
		"renamed patches": version("v1.23.17", "fork", sum, goVersion,
			map[string]string{"0110-x.patch": sample, "0210-y.patch": strings.ReplaceAll(sample, "a.go", "b.go")}),
	}
	for change, got := range same {
		if got != original {
			t.Errorf("%s changes the version to %s", change, got)
		}
	}
	different := map[string]string{
		"another diff":       version("v1.23.17", "fork", sum, goVersion, files(strings.Replace(sample, "const b = 3", "const b = 4", 1))),
		"another order":      version("v1.23.17", "fork", sum, goVersion, map[string]string{"0300-a.patch": sample, "0200-b.patch": strings.ReplaceAll(sample, "a.go", "b.go")}),
		"one patch less":     version("v1.23.17", "fork", sum, goVersion, map[string]string{"0100-a.patch": sample}),
		"another sum":        version("v1.23.17", "fork", "h1:x", goVersion, files(sample)),
		"another Go":         version("v1.23.17", "fork", sum, "go1.27.3", files(sample)),
		"another Kubernetes": version("v1.23.1", "fork", sum, goVersion, files(sample)),
		"another suffix":     version("v1.23.17", "acme", sum, goVersion, files(sample)),
	}
	for change, got := range different {
		if got == original {
			t.Errorf("%s does not change the version", change)
		}
	}
	seen := map[string]bool{original: true}
	for _, module := range []source.Module{
		{Path: "example.org/a", Version: "v1.0.0", Sum: sum, Packages: []string{"x"}},
		{Path: "example.org/b", Version: "v1.0.0", Sum: sum, Packages: []string{"x"}},
		{Path: "example.org/a", Version: "v1.0.1", Sum: sum, Packages: []string{"x"}},
		{Path: "example.org/a", Version: "v1.0.0", Sum: "h1:x", Packages: []string{"x"}},
		{Path: "example.org/a", Version: "v1.0.0", Sum: sum, Packages: []string{"x", "y"}},
		withPlugin("Gang", "x", "New", nil),
		withPlugin("Gangs", "x", "New", nil),
		withPlugin("Gang", "y", "New", nil),
		withPlugin("Gang", "x", "NewGang", nil),
		withPlugin("Gang", "x", "New", func(m *source.Module) { m.Arguments = "y" }),
		withPlugin("Gang", "x", "New", func(m *source.Module) { m.Plugins[0].CRDs = []string{"crd.yaml"} }),
		withPlugin("Gang", "x", "New", func(m *source.Module) {
			m.Dependencies = []source.Module{{Path: "example.org/b", Version: "v1.0.0", Sum: sum, Packages: []string{"x"}}}
		}),
		withPlugin("Gang", "x", "New", func(m *source.Module) {
			m.Dependencies = []source.Module{{Path: "example.org/b", Version: "v1.0.0", Sum: "h1:x", Packages: []string{"x"}}}
		}),
	} {
		got, err := Version("v1.23.17", "fork", sum, goVersion, []source.Module{module}, series(t, files(sample)))
		if err != nil || seen[got] {
			t.Errorf("with %v the version is %s (%v), one that other modules give, too", module, got, err)
		}
		seen[got] = true
	}
	for _, suffix := range []string{"", "a-b", "a.b", "ä"} {
		if _, err := Version("v1.23.17", suffix, sum, goVersion, nil, series(t, files(sample))); err == nil {
			t.Errorf("the suffix %q is accepted", suffix)
		}
	}
}

// withPlugin returns a module with one plugin, modified by change.
func withPlugin(name, folder, constructor string, change func(*source.Module)) source.Module {
	m := source.Module{
		Path: "example.org/a", Version: "v1.0.0", Sum: "h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU=", Packages: []string{"x", "y"},
		Plugins: []source.Plugin{{Name: name, Package: folder, Constructor: constructor}},
	}
	if change != nil {
		change(&m)
	}
	return m
}

func TestPatchesForAModuleComeWithIt(t *testing.T) {
	of := func(module string) string {
		return strings.Replace(strings.ReplaceAll(sample, "pkg/a.go", "vendor/"+module+"/x/b.go"), "Drop-When: never", "Module: "+module+"\nDrop-When: never", 1)
	}
	all := series(t, map[string]string{"0100-a.patch": sample, "0700-b.patch": of("example.org/a"), "0710-c.patch": of("example.org/a/v2")})
	version := func(modules []source.Module, series []Patch) string {
		t.Helper()
		v, err := Version("v1.23.17", "fork", "h1:x", "go1.27.4", modules, series)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, tt := range map[string]struct {
		modules []source.Module
		want    []string
	}{
		"nothing is carried": {nil, []string{"0100-a.patch"}},
		"the module of one is": {[]source.Module{withPlugin("Gang", "x", "New", nil)}, []string{
			"0100-a.patch",
			"0700-b.patch",
		}},
		"another module is": {[]source.Module{{Path: "example.org/b", Packages: []string{"x"}}}, []string{"0100-a.patch"}},
		"another package of it is": {[]source.Module{withPlugin("Gang", "y", "New", func(m *source.Module) { m.Packages = []string{"y"} })},
			[]string{"0100-a.patch"}},
		"the module is a dependency": {[]source.Module{{Path: "example.org/b", Dependencies: []source.Module{{Path: "example.org/a", Packages: []string{"x"}}}}},
			[]string{"0100-a.patch", "0700-b.patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			carried := Carried(all, tt.modules)
			var names []string
			for _, patch := range carried {
				names = append(names, patch.Name)
			}
			if !slices.Equal(names, tt.want) {
				t.Errorf("Carried gives %q, want %q", names, tt.want)
			}
			// Patches that are left out do not affect the version.
			if got, want := version(tt.modules, all), version(tt.modules, carried); got != want {
				t.Errorf("the version with all patches is %s, and with those that come %s", got, want)
			}
		})
	}
	with := []source.Module{withPlugin("Gang", "x", "New", nil)}
	if version(with, all) == version(with, all[:1]) {
		t.Error("a patch for a module that is carried does not count in the version")
	}
}

func TestLint(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(sample, old, new, 1) }
	for name, tt := range map[string]struct {
		file, content string
		// want are substrings of the faults, in order.
		want []string
	}{
		"a good patch":            {"0100-a.patch", sample, nil},
		"a bad name":              {"a.patch", sample, []string{"a.patch: the name is not of the form 0123-what-it-does"}},
		"a sentence as a subject": {"0100-a.patch", replace("scheduler: change a number", "Changed a number."), []string{"the subject"}},
		"no body":                 {"0100-a.patch", replace("It was too small.\n\n", ""), []string{"no text between"}},
		"no reason": {"0100-a.patch", replace("Why:", "Because:"), []string{
			"Why: occurs 0 times",
			"Because: is unknown",
		}},
		"a line that ends a mail": {"0100-a.patch", replace("It was too small.", "It was too small.\n--- a/pkg"), []string{`would not take the line "--- a/pkg"`}},
		"a patch for speed":       {"0100-a.patch", replace("Drop-When: never", "Gain: half\nOracle: no difference\nDrop-When: never"), nil},
		"a patch for a module":    {"0700-a.patch", replace("Drop-When: never", "Module: example.org/a\nDrop-When: never"), nil},
		"a patch for two modules": {"0700-a.patch", replace("Drop-When: never", "Module: example.org/a\nModule: example.org/b\nDrop-When: never"), []string{"Module: occurs 2 times"}},
		"a gain alone":            {"0100-a.patch", replace("Drop-When: never", "Gain: half\nDrop-When: never"), []string{"Oracle: occurs 0 times"}},
		"a check":                 {"0100-a.patch", replace("Drop-When: never", "Drop-Check: pkg/a.go lacks a = [0-9]+\nDrop-When: never"), nil},
		"a check of another form": {"0100-a.patch", replace("Drop-When: never", "Drop-Check: grep a pkg/a.go\nDrop-When: never"), []string{
			"is not of the form",
		}},
		"a check with a bad pattern": {"0100-a.patch", replace("Drop-When: never", "Drop-Check: pkg/a.go has (\nDrop-When: never"), []string{"Drop-Check: error parsing"}},
		"a reason twice":             {"0100-a.patch", replace("Drop-When: never", "Drop-When: never\nDrop-When: ever"), []string{"Drop-When: occurs 2 times"}},
		"a word of one's own": {"0100-a.patch", replace("Inappropriate", "Whatever"), []string{
			`Upstream-Status: "Whatever" is not one of Inappropriate, End-Of-Life, Fixed-Later`,
		}},
		"not a range": {"0100-a.patch", replace("v1.23.0 - v1.23.17", "all"), []string{
			`Applies-To: "all"`,
		}},
		"a plugin patch outside its folder": {"0200-plugin-mine.patch", sample,
			[]string{"changes pkg/a.go, outside", "deletes lines"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Lint(series(t, map[string]string{tt.file: tt.content}))
			if len(got) != len(tt.want) {
				t.Fatalf("Lint = %q, want %d faults", got, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("fault %d is %q, want %q in it", i, got[i], want)
				}
			}
		})
	}
}

func TestReadme(t *testing.T) {
	files := map[string]string{
		"0100-a.patch":           sample + string(newFile("pkg/c.go", []byte("package pkg\n"))),
		"0200-plugin-mine.patch": strings.ReplaceAll(sample, "a.go", "b.go"),
	}
	modules := []source.Module{{
		Path: "example.org/a", Version: "v1.0.0", Packages: []string{"x", "y/z"},
		Plugins:      []source.Plugin{{Name: "Gang"}, {Name: "Quota"}},
		Dependencies: []source.Module{{Path: "example.org/b", Version: "v2.0.0+incompatible", Packages: []string{"."}}},
	}}
	page, err := Readme(series(t, files), modules)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| [0100-a](0100-a/) | scheduler: change a number | +3 −1 | Inappropriate |",
		"| [0200-plugin-mine](../plugins/mine) |",
		"which exist before them: +2 −1 in 1 files",
		"`0000-modules.patch`",
		"| example.org/a v1.0.0 | `x`, `y/z` |\n| example.org/b v2.0.0+incompatible | `.` |\n",
		"The plugins of example.org/a: Gang, Quota.\n",
		"\n## 0100-a\n\nIt was too small.\n\n- Why: it was too small for large clusters, and nobody knew.\n- Drop when: never\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not contain %q:\n%s", want, page)
		}
	}
	if strings.Contains(string(page), "\n## 0200-plugin-mine") {
		t.Error("a generated patch has a section of its own")
	}
	if page, err = Readme(series(t, files), nil); err != nil || strings.Contains(string(page), "modules") {
		t.Errorf("where nothing is carried the page speaks of modules (%v):\n%s", err, page)
	}
}
