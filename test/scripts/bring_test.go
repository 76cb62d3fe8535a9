// SPDX-License-Identifier: Apache-2.0

package scripttest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

// section returns the section of a page below a heading.
func section(name, heading string) (string, error) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name+".md"))
	_, section, _ := strings.Cut(string(page), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return section, err
}

// bringSection returns the section of docs/plugins.md about plugins that were written elsewhere.
func bringSection() (string, error) { return section("plugins", "Bring a plugin that you have") }

// page HEADING STEP EDIT [PLACE VALUE]… runs the first commands below a heading of docs/patches.md in the project, as one
// script: for the step STEP, with the command EDIT instead of the editor, and VALUE for each PLACE. Only the generators of
// make update, which need all plugins, do not run.
func page(ts *testscript.TestScript, _ bool, arguments []string) {
	section, err := section("patches", arguments[0])
	ts.Check(err)
	script := regexp.MustCompile(`(?m)(^    .*\n)+`).FindString(section)
	replaced := strings.NewReplacer(append([]string{"$EDITOR …", arguments[2], "0400-what-it-does", arguments[1],
		"make update tree", "bash scripts/update-patches.sh && make -s tree"}, arguments[3:]...)...).Replace(script)
	if replaced == script {
		ts.Fatalf("docs/patches.md has no commands below %q", arguments[0])
	}
	ts.Check(ts.Exec("bash", "-e", "-c", "cd project\n"+replaced))
}

// bring NAME DIRECTORY runs the commands of that section for the plugin in a directory, except make image, which needs
// the real upstream.
func bring(ts *testscript.TestScript, _ bool, arguments []string) {
	section, err := bringSection()
	ts.Check(err)
	block, ran := regexp.MustCompile(`(?m)(^    .*\n)+`).FindString(section), 0
	for _, found := range regexp.MustCompile(`(?m)^    ([^#\n]*[^#\s])`).FindAllStringSubmatch(block, -1) {
		command := strings.NewReplacer("~/my-scheduler/pkg/myplugin", ts.MkAbs(arguments[1]),
			"MyPlugin", arguments[0], "myplugin", strings.ToLower(arguments[0])).Replace(found[1])
		if command == "make image" {
			continue
		}
		// With the flags of the other tests, the scheduler's packages come from the build cache.
		if name, isTest := strings.CutPrefix(command, "make test-plugins "); isTest {
			command = name + " bash test/plugins.sh -trimpath -vet=off"
		}
		ts.Check(ts.Exec("bash", "-c", "cd project && "+command))
		ran++
	}
	if ran != 3 {
		ts.Fatalf("%d commands ran, want 3: cp, make new-plugin, make test-plugins", ran)
	}
}

// snippet is code in a cell of a table, in which … is any text.
type snippet struct {
	text    string
	pattern *regexp.Regexp
}

func snippets(cell string) (snippets []snippet) {
	for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(found[1]), "…", `[^\n]*`)
		// Only whole words match.
		pattern = regexp.MustCompile(`^\w`).ReplaceAllString(pattern, `\b$0`)
		pattern = regexp.MustCompile(`\w$`).ReplaceAllString(pattern, `$0\b`)
		snippets = append(snippets, snippet{found[1], regexp.MustCompile(pattern)})
	}
	return snippets
}

// names returns the imports of a Go file, with their quotes, and its selected names, such as NewStatus.
func names(t *testing.T, file txtar.File) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file.Name, file.Data, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for node := range ast.Preorder(parsed) {
		switch node := node.(type) {
		case *ast.ImportSpec:
			names = append(names, node.Path.Value)
		case *ast.SelectorExpr:
			names = append(names, node.Sel.Name)
		}
	}
	return names
}

// TestPageCoversCodeOfOtherReleases compares the tables of the page with the plugins that TestScripts brings. Each row is
// about code that a plugin has before the change, and about code that a plugin has after it, which compiles. Each import
// and name that a plugin has only before the change is in a row.
func TestPageCoversCodeOfOtherReleases(t *testing.T) {
	section, err := bringSection()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile("testdata/bring-plugin.txtar")
	if err != nil {
		t.Fatal(err)
	}
	code, used := map[string]string{}, map[string][]string{}
	for _, file := range archive.Files {
		when, path, _ := strings.Cut(file.Name, "/")
		plugin, _, _ := strings.Cut(path, "/")
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			continue
		}
		code[when] += string(file.Data)
		used[when+" "+plugin] = append(used[when+" "+plugin], names(t, file)...)
	}

	var old []snippet
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			continue
		}
		rows++
		for _, snippet := range snippets(cells[0]) {
			old = append(old, snippet)
			if !snippet.pattern.MatchString(code["before"]) {
				t.Errorf("no plugin has %s before the change; next: add it to one in testdata/bring-plugin.txtar", snippet.text)
			}
			if found := snippet.pattern.FindString(code["after"]); found != "" {
				t.Errorf("a plugin has %s after the change, too: %s", snippet.text, found)
			}
		}
		for _, snippet := range snippets(cells[1]) {
			if !snippet.pattern.MatchString(code["after"]) {
				t.Errorf("no plugin has %s after the change; next: add it to one in testdata/bring-plugin.txtar", snippet.text)
			}
		}
	}
	if rows < 30 {
		t.Errorf("there are %d rows, want at least 30: are they still found?", rows)
	}

	for _, plugin := range []string{"freecpu", "fewestpods", "racks"} {
		for _, name := range used["before "+plugin] {
			word := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(name) + `(\W|$)`)
			if !slices.Contains(used["after "+plugin], name) && !slices.ContainsFunc(old, func(row snippet) bool {
				return word.MatchString(row.text) || row.pattern.MatchString(name)
			}) {
				t.Errorf("%s has %s before the change only, and no row is about it; next: add a row to docs/plugins.md", plugin, name)
			}
		}
	}
}
