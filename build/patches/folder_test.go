// SPDX-License-Identifier: Apache-2.0

package patches

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const message = "scheduler: change a number\n\nIt was too small.\n\nWhy: it was.\nUpstream-Status: Inappropriate\n" +
	"Applies-To: v1.23.0 - v1.23.17\nDrop-When: never\n"

const change = `diff --git a/pkg/a.go b/pkg/a.go
index 8f85ffb58a4b22a6c3e6eea4213173189d433e79..e716044dd0de860d766818a33096aad6926156bc 100644
--- a/pkg/a.go
+++ b/pkg/a.go
@@ -1,3 +1,3 @@
 package pkg
 
-const a = 1
+const a = 2
`

// write writes files below a directory.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// git runs a git command without the user's settings.
func git(t *testing.T, dir string, arguments ...string) []byte {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "user.name=me", "-c", "user.email=me@localhost", "-C", dir}, arguments...)...)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	var messages bytes.Buffer
	command.Stderr = &messages
	output, err := command.Output()
	if err != nil {
		t.Fatalf("git %q: %v: %s", arguments, err, &messages)
	}
	return output
}

// A commit that is exported and read again has the bytes that git writes, whatever it does to files.
func TestExportedCommitIsReadAsGitWritesIt(t *testing.T) {
	repository, steps, plugins := t.TempDir(), t.TempDir(), t.TempDir()
	git(t, repository, "init", "-q")
	write(t, repository, map[string]string{"pkg/a.go": "package pkg\n\nconst a = 1\n", "pkg/gone.go": "package pkg\n- \n", "z.sh": "true\n"})
	git(t, repository, "add", "-A")
	git(t, repository, "commit", "-q", "-m", "before")
	added := map[string]string{
		"pkg/b/long.go": "package b\n\nconst b = 1\n", "pkg/b/one.go": "package b\n", "pkg/b/unfinished": "first\nlast",
		"pkg/b/word": "word", "pkg/b/empty": "", "pkg/b.go": "package pkg\n", "pkg/b/a-patch": change, "list.md": "- \n",
	}
	write(t, repository, added)
	write(t, repository, map[string]string{"pkg/a.go": "package pkg\n\nconst a = 2\n", "binary": "a\x00b", "run.sh": "true\n", "pkg/.import-restrictions": "rules: []\n"})
	if err := errors.Join(os.Remove(filepath.Join(repository, "pkg/gone.go")), os.Chmod(filepath.Join(repository, "run.sh"), 0o755),
		os.Chmod(filepath.Join(repository, "z.sh"), 0o755), os.Symlink("a.go", filepath.Join(repository, "pkg/link"))); err != nil {
		t.Fatal(err)
	}
	git(t, repository, "add", "-A")
	git(t, repository, "commit", "-q", "-m", message)
	mailed := git(t, repository, "format-patch", "-1", "--stdout", "--full-index", "--no-renames")
	write(t, steps, map[string]string{"0100-a/pkg/stale.go": "package pkg\n", "0100-a/pkg/.stale.go.swp": "a user's", "0100-a/.notes/a": "a user's",
		".0100-a.old/message": "left by an interrupted run", ".0100-a.new/message": "left by an interrupted run"})
	if err := Export(steps, "0100-a", mailed); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".notes/a", "pkg/.stale.go.swp"} {
		if content, err := os.ReadFile(filepath.Join(steps, "0100-a", name)); string(content) != "a user's" {
			t.Errorf("%s has %q (%v) after the export", name, content, err)
		}
	}

	files, err := addedFiles(filepath.Join(steps, "0100-a"), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range added {
		if string(files[name]) != want {
			t.Errorf("the folder has %q in %s, want %q", files[name], name, want)
		}
	}
	if want := slices.Sorted(maps.Keys(added)); len(files) != len(want)+2 {
		t.Errorf("the folder has %q, want %q, %s and %s", slices.Sorted(maps.Keys(files)), want, messageName, changeName)
	}
	if got := string(files[messageName]); got != message {
		t.Errorf("the message is %q, want %q", got, message)
	}
	series, err := ReadFolders(steps, plugins)
	if err != nil {
		t.Fatal(err)
	}
	want := git(t, repository, "diff", "--full-index", "--binary", "--no-renames", "HEAD^")
	if len(series) != 1 || !bytes.Equal(series[0].Diff, want) {
		t.Errorf("the diff is\n%s\nand git writes\n%s", series[0].Diff, want)
	}

	// git am makes the same tree from it, with the whole message.
	made := t.TempDir()
	if _, err := Make(made, series); err != nil {
		t.Fatal(err)
	}
	want = git(t, repository, "log", "-1", "--format=%T%n%B")
	git(t, repository, "reset", "-q", "--hard", "HEAD^")
	git(t, repository, "am", "-q", filepath.Join(made, "0100-a.patch"))
	if got := git(t, repository, "log", "-1", "--format=%T%n%B"); !bytes.Equal(got, want) {
		t.Errorf("git am makes %q, want %q", got, want)
	}
}

func TestReadFolders(t *testing.T) {
	steps, plugins := t.TempDir(), t.TempDir()
	write(t, steps, map[string]string{
		"README.md": "# The series\n", "0300-last/message": message, "0300-last/pkg/added.go": "package pkg\n", "0300-last/pkg/.added.go.swp": "x",
		"0100-first/message": message, "0100-first/change.patch": change, "0100-first/pkg/A.go": "package pkg\n", "0100-first/a.go~": "x",
	})
	write(t, plugins, map[string]string{
		"go.mod": "module x\n", "mine/plugin.go": "// Package mine is ours. It has more.\npackage mine\n", "mine/testdata/a.txt": "a\n",
		"two/one/one.go": "// Package one is one.\npackage one\n", "two/both/both.go": "// Package both is both.\npackage both\n", "left/notes.txt": "x",
	})
	if err := os.Mkdir(filepath.Join(steps, "0400-of-another-branch"), 0o755); err != nil {
		t.Fatal(err)
	}
	series, err := ReadFolders(steps, plugins)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, patch := range series {
		got = append(got, patch.Name+": "+patch.Body+": "+strings.Join(patch.Files, " "))
	}
	want := []string{
		"0100-first.patch: It was too small.: pkg/A.go pkg/a.go",
		"0200-plugin-mine.patch: Package mine is ours.: pkg/scheduler/framework/plugins/mine/plugin.go pkg/scheduler/framework/plugins/mine/testdata/a.txt",
		"0200-plugin-two.patch: Package both is both.\nPackage one is one.: pkg/scheduler/framework/plugins/two/both/both.go pkg/scheduler/framework/plugins/two/one/one.go",
		"0300-last.patch: It was too small.: pkg/added.go",
	}
	if !slices.Equal(got, want) {
		t.Errorf("ReadFolders = %q, want %q", got, want)
	}
	if faults := Lint(series); len(faults) > 0 {
		t.Errorf("Lint = %q", faults)
	}
}

func TestReadFoldersRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no step":                     {map[string]string{"README.md": "x"}, "no steps"},
		"a patch as it was before":    {map[string]string{"0100-a.patch": sample}, "0100-a.patch is not the folder of a step"},
		"no message":                  {map[string]string{"0100-a/change.patch": change}, "no file message"},
		"a message alone":             {map[string]string{"0100-a/message": message}, "neither a new file nor a change.patch"},
		"words in place of a diff":    {map[string]string{"0100-a/message": message, "0100-a/change.patch": "words\n", "0100-a/b.go": "package b\n"}, "it begins with \"words\\n\""},
		"a diff without prefixes":     {map[string]string{"0100-a/message": message, "0100-a/change.patch": strings.NewReplacer("a/pkg", "pkg", "b/pkg", "pkg").Replace(change)}, "is not supported"},
		"two sections for a file":     {map[string]string{"0100-a/message": message, "0100-a/change.patch": change + change}, "changes pkg/a.go in two sections"},
		"no end of the last line":     {map[string]string{"0100-a/message": message, "0100-a/change.patch": strings.TrimSuffix(change, "\n"), "0100-a/b.go": "package b\n"}, "it is cut off"},
		"a path that git quotes":      {map[string]string{"0100-a/message": message, "0100-a/pkg/ä.go": "package b\n"}, "a letter outside ASCII"},
		"the modules' name":           {map[string]string{"0000-modules/message": message, "0000-modules/a.go": "package a\n"}, "has the name of the patch"},
		"no line after the subject":   {map[string]string{"0100-a/message": strings.Replace(message, "\n\n", "\n", 1), "0100-a/a.go": "package a\n"}, "no blank line after"},
		"a diff that is cut off":      {map[string]string{"0100-a/message": message, "0100-a/change.patch": change[:len(change)-13]}, "0100-a: "},
		"a new file in the diff":      {map[string]string{"0100-a/message": message, "0100-a/change.patch": string(newFile("pkg/b.go", []byte("package b\n")))}, "change.patch adds pkg/b.go"},
		"a new file that is edited":   {map[string]string{"0100-a/message": message, "0100-a/change.patch": change, "0100-a/pkg/a.go": "package pkg\n"}, "change.patch changes pkg/a.go, which is a new file"},
		"a binary file":               {map[string]string{"0100-a/message": message, "0100-a/pkg/b": "a\x00"}, "pkg/b is not a text file"},
		"line ends of Windows":        {map[string]string{"0100-a/message": message, "0100-a/pkg/b": "a\r\nb\n"}, "pkg/b has lines that end with CR LF"},
		"what an export left":         {map[string]string{".0100-a.old/message": message, "0200-b/message": message, "0200-b/a.go": "package a\n"}, "interrupted make export-patch"},
		"a plugin without a sentence": {map[string]string{"0100-a/message": message, "0100-a/a.go": "package a\n", "../plugins/mine/a.go": "package mine\n"}, "no package in plugins/mine"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			steps, plugins := filepath.Join(dir, "steps"), filepath.Join(dir, "plugins")
			if err := errors.Join(os.Mkdir(steps, 0o755), os.Mkdir(plugins, 0o755)); err != nil {
				t.Fatal(err)
			}
			write(t, steps, tt.files)
			if series, err := ReadFolders(steps, plugins); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ReadFolders = %d patches, %v; want an error with %q", len(series), err, tt.want)
			}
		})
	}
}

func TestMakeLeavesWhatIsMade(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{ModulesPatch: "modules", "0100-gone.patch": sample, "notes.txt": "a user's"})
	all := series(t, map[string]string{"0100-a.patch": sample, "0200-b.patch": sample})
	for _, want := range [][]string{{"0100-a.patch", "0200-b.patch", "0100-gone.patch"}, nil} {
		if changed, err := Make(dir, all); err != nil || !slices.Equal(changed, want) {
			t.Errorf("Make = %q, %v; want %q", changed, err, want)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 4 {
		t.Errorf("the directory has %v (%v), want two patches, %s and notes.txt", files, err, ModulesPatch)
	}
	if made, err := Read(dir); err != nil || len(made) != 2 {
		t.Errorf("Read = %d patches, %v; want the two without %s", len(made), err, ModulesPatch)
	}
}
