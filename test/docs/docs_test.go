// SPDX-License-Identifier: Apache-2.0

// Package docs checks the pages: that links lead somewhere, and that the configurations shown are among those that
// other tests run.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kube-scheduler-fork/test/cluster"
)

const root = "../.."

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// unslugged is what code hosts leave out of a heading's anchor.
	unslugged = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// pages gives the project's pages by their names.
func pages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"README*.md", "docs/*.md", "patches/README.md"} {
		for _, file := range glob(t, pattern) {
			pages[file] = cluster.Read(t, file)
		}
	}
	return pages
}

// glob fails the test when there is no such file: a check of nothing would pass.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files (%v)", pattern, len(files), err)
	}
	return files
}

// anchors gives what links to a page's headings end with.
func anchors(page string) []string {
	var anchors []string
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		anchors = append(anchors, strings.ReplaceAll(unslugged.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-"))
	}
	return anchors
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for file, page := range all {
		for _, found := range link.FindAllStringSubmatch(page, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: the link %s: %v", file, found[1], err)
			} else if anchor != "" && !slices.Contains(anchors(all[path]), anchor) {
				t.Errorf("%s: the link %s: %s has no such heading, but %q", file, found[1], path, anchors(all[path]))
			}
		}
	}
}

// The profile of the example pod only uses nodes with a label, which the line above sets. test/e2e runs that of operations.
func TestExamplePodIsCreatedWhereItsNodesAreLabelled(t *testing.T) {
	create, found := regexp.MustCompile(`(?m)(.*)\n *kubectl apply --filename manifests/examples/nginx-pod.yaml$`), 0
	for file, page := range pages(t) {
		for _, lines := range create.FindAllStringSubmatch(page, -1) {
			found++
			if strings.TrimSpace(lines[1]) != "kubectl label nodes --selector '!disktype' disktype=ssd" {
				t.Errorf("%s creates the example pod after %q, which sets no label", file, lines[1])
			}
		}
	}
	if found < 3 {
		t.Errorf("the example pod is created %d times, want at least 3: is it still found?", found)
	}
}

// lines gives the lines of a configuration that say something, without their indentation.
func lines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// holds tells whether a file has all lines of a block, in the same order: a page may leave some out.
func holds(file, block []string) bool {
	for _, line := range file {
		if len(block) > 0 && line == block[0] {
			block = block[1:]
		}
	}
	return len(block) == 0
}

// Each command in README.zh-CN.md, and each line of its output, is in README.md. Comments are translated.
func TestChineseReadmeShowsCommandsOfREADME(t *testing.T) {
	shown := func(page string) (commands []string) {
		for _, block := range regexp.MustCompile(`(?m)(?:^    .*\n)+`).FindAllString(cluster.Read(t, root+"/"+page), -1) {
			commands = append(commands, lines(regexp.MustCompile(`(?m)\s+# .*$`).ReplaceAllString(block, ""))...)
		}
		return commands
	}
	english, chinese := shown("README.md"), shown("README.zh-CN.md")
	for _, command := range chinese {
		if !slices.Contains(english, command) {
			t.Errorf("README.zh-CN.md shows %q, and README.md does not; next: change both", command)
		}
	}
	if len(chinese) < 30 {
		t.Errorf("%d lines are in the blocks of README.zh-CN.md, want at least 30: are blocks still found?", len(chinese))
	}
}

// Each row of the table names a configuration, and each profile that is there for a name from elsewhere is in a row.
func TestNamesFromElsewhereHaveAConfiguration(t *testing.T) {
	profile := regexp.MustCompile("`([a-z-]+)` in \\[known-as\\.yaml]")
	var inRows, inFile []string
	rows := 0
	for line := range strings.Lines(cluster.Read(t, root+"/docs/known-as.md")) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| you know it as") {
			continue
		}
		rows++
		if !strings.Contains(cells[1], "](../manifests/config/") {
			t.Errorf("the row of %s links no configuration; next: link one of manifests/config", cells[0])
		}
		for _, found := range profile.FindAllStringSubmatch(cells[1], -1) {
			inRows = append(inRows, found[1])
		}
	}
	if rows < 9 {
		t.Errorf("there are %d rows, want at least 9: are they still found?", rows)
	}
	file := cluster.Read(t, root+"/manifests/config/known-as.yaml")
	for _, found := range regexp.MustCompile(`(?m)^  - schedulerName: (.+)$`).FindAllStringSubmatch(file, -1) {
		if found[1] != "default-scheduler" {
			inFile = append(inFile, found[1])
		}
	}
	slices.Sort(inRows)
	slices.Sort(inFile)
	if inRows = slices.Compact(inRows); !slices.Equal(inRows, inFile) {
		t.Errorf("the rows name the profiles %q, and known-as.yaml has %q", inRows, inFile)
	}
}

// TestTheSmallestConfigurationOfNodeLoadStandsFirst: the first block of its page, with six lines of arguments at most.
func TestTheSmallestConfigurationOfNodeLoadStandsFirst(t *testing.T) {
	block := lines(regexp.MustCompile("(?m)(?:^    .*\n)+").FindString(cluster.Read(t, root+"/docs/node-load.md")))
	at := slices.Index(block, "args:")
	if len(block) == 0 || block[0] != "profiles:" || at < 0 {
		t.Fatalf("the first block of the page is no configuration with arguments: %q", block)
	}
	if args := block[at+1:]; len(args) == 0 || len(args) > 6 {
		t.Errorf("%d lines of arguments, want 1 to 6: %q", len(args), args)
	}
}

func TestConfigurationsOnPagesAreThoseThatTestsRun(t *testing.T) {
	run := map[string][]string{}
	for _, pattern := range []string{"manifests/config/*.yaml", "manifests/examples/scenarios/*/scheduler.yaml", "test/integration/schedulers/*.go"} {
		for _, file := range glob(t, pattern) {
			// The verb stands where that test puts the name of a pool.
			run[file] = lines(strings.ReplaceAll(cluster.Read(t, file), "[%s]", "[ours]"))
		}
	}
	// A block is indented by four blanks, or fenced.
	blocks := regexp.MustCompile("(?m)(?:^```yaml\n(?s:.*?)^```$|(?:^    .*\n)+)")
	checked := 0
	for file, page := range pages(t) {
		for _, text := range blocks.FindAllString(page, -1) {
			text = strings.TrimSuffix(strings.TrimPrefix(text, "```yaml\n"), "```")
			block := lines(text)
			if !slices.Contains([]string{"profiles:", "pluginConfig:", "extenders:"}, block[0]) {
				continue
			}
			checked++
			found := false
			for _, content := range run {
				found = found || holds(content, block)
			}
			if !found {
				t.Errorf("%s shows a configuration that no test runs; next: bring it in line with a file of manifests/config:\n%s", file, text)
			}
		}
	}
	if checked < 10 {
		t.Errorf("%d configurations are on the pages, want at least 10: are blocks still found?", checked)
	}
}

// The pages that make claims about holes and faults name a test, a step or a patch for each: these must exist.
func TestClaimsAreThoseOfTests(t *testing.T) {
	var sources strings.Builder
	err := filepath.WalkDir(filepath.Join(root, "patches"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_test.go") {
			sources.WriteString(cluster.Read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"test/*/*_test.go", "test/*/*/*_test.go", "build/*/*_test.go", "build/*/*/*_test.go",
		"plugins/*/*_test.go", "plugins/*/*/*_test.go"} {
		for _, file := range glob(t, pattern) {
			sources.WriteString(cluster.Read(t, file))
		}
	}
	steps := cluster.Read(t, root+"/test/steps.mk")
	claims := 0
	for _, name := range []string{"on-call", "security"} {
		page := cluster.Read(t, root+"/docs/"+name+".md")
		for _, found := range regexp.MustCompile("`(Test[A-Z][A-Za-z]+)`").FindAllStringSubmatch(page, -1) {
			claims++
			if !strings.Contains(sources.String(), "func "+found[1]+"(t ") {
				t.Errorf("docs/%s.md names the test %s, which does not exist", name, found[1])
			}
		}
		for _, found := range regexp.MustCompile("make test TESTS=([a-z-]+)").FindAllStringSubmatch(page, -1) {
			if !regexp.MustCompile(`(?m)^` + found[1] + `:`).MatchString(steps) {
				t.Errorf("docs/%s.md names the step %s, which does not exist", name, found[1])
			}
		}
		for _, found := range regexp.MustCompile(`\b0[1-9][0-9]{2}\b`).FindAllString(page, -1) {
			if files, err := filepath.Glob(filepath.Join(root, "patches", found+"-*", "message")); err != nil || len(files) == 0 {
				t.Errorf("docs/%s.md names the patch %s, which does not exist (%v)", name, found, err)
			}
		}
	}
	if claims < 30 {
		t.Errorf("%d tests are named, want at least 30: are they still found?", claims)
	}
}

// The page of the simulator has the table in its code of who else acts.
func TestThePageOfTheSimulatorSaysWhoElseActs(t *testing.T) {
	code, err := parser.ParseFile(token.NewFileSet(), root+"/plugins/simulation/actors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	page, rows := cluster.Read(t, root+"/docs/simulate.md"), 0
	ast.Inspect(code, func(n ast.Node) bool {
		actor, ok := n.(*ast.CompositeLit)
		if !ok || actor.Type != nil {
			return true
		}
		row := "|"
		for _, cell := range actor.Elts {
			text, err := strconv.Unquote(cell.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			row += strings.TrimRight(" "+text, " ") + " |"
		}
		if rows++; !strings.Contains(page, "\n"+row+"\n") {
			t.Errorf("docs/simulate.md lacks the row %s", row)
		}
		return false
	})
	if rows < 10 {
		t.Errorf("actors.go has %d rows, want at least 10: are they still found?", rows)
	}
}
