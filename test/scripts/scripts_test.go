// SPDX-License-Identifier: Apache-2.0

// Package scripttest runs the project's scripts on a minimal upstream for the test: a git repository with a tag, a
// Makefile and a few files. Each file under testdata is one scenario.
package scripttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/mod/module"

	"kube-scheduler-fork/build/source"
	"kube-scheduler-fork/test/moduleproxy"
)

func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pin, err := source.ReadPin(filepath.Join(root, "upstream.version"))
	if err != nil {
		t.Fatal(err)
	}
	goEnvironment := goEnvironment(t)
	tools := buildTools(t, root)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"bring": bring,
			"page":  page,
			// project makes the directory project, a checkout with this project's scripts, whose series is the folders of
			// the test's patches and of project/plugins.
			"project": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(makeProject(root, ts.Getenv("WORK"), ts.Exec))
				ts.Setenv("SERIES_DIR", ts.MkAbs("project/patches"))
				ts.Setenv("PATCHES_DIR", "")
			},
			// publish FOLDER PATH VERSION publishes the files of a directory
			// as a module, on a module proxy in the directory proxy.
			"publish": func(ts *testscript.TestScript, _ bool, arguments []string) {
				version := module.Version{Path: arguments[1], Version: arguments[2]}
				moduleproxy.Publish(t, ts.MkAbs("proxy"), ts.MkAbs(arguments[0]), version, ts.Getenv("GOMODCACHE"))
			},
		},
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, goEnvironment...)
			env.Setenv("ROOT", root)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("OUTPUT", filepath.Join(env.WorkDir, "_output"))
			env.Setenv("TREE", filepath.Join(env.WorkDir, "_output", "kubernetes"))
			env.Setenv("PATCHES_DIR", filepath.Join(env.WorkDir, "patches"))
			env.Setenv("UPSTREAM_VERSION_FILE", filepath.Join(env.WorkDir, "upstream.version"))
			env.Setenv("MODULES_FILE", filepath.Join(env.WorkDir, "modules.yaml"))
			env.Setenv("KUBERNETES_GIT_URL", "file://"+filepath.Join(env.WorkDir, "upstream"))
			env.Setenv("SOURCE", "git")
			if err := writeFiles(filepath.Join(env.WorkDir, "patches"), patchFiles); err != nil {
				return err
			}
			if err := os.CopyFS(filepath.Join(env.WorkDir, "_output", "tools"), os.DirFS(tools)); err != nil {
				return err
			}
			// There are no vendored modules, unless a scenario adds some.
			if err := writeFiles(env.WorkDir, map[string]string{"modules.yaml": "modules: []\n"}); err != nil {
				return err
			}
			return makeUpstream(env.WorkDir, pin.GoVersion)
		},
	})
}

// buildTools builds the tools that nearly all scripts use, once for all scenarios.
func buildTools(t *testing.T, root string) string {
	t.Helper()
	output := t.TempDir()
	command := exec.Command("bash", "-c", "source scripts/environment.sh && use_pinned_go && build_tool kube-scheduler-build")
	command.Dir = root
	command.Env = append(os.Environ(), "OUTPUT="+output)
	if printed, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kube-scheduler-build: %v\n%s", err, printed)
	}
	return filepath.Join(output, "tools")
}

// goEnvironment has the variables that the go command needs to find
// its caches, because testscript hides the user's home.
func goEnvironment(t *testing.T) []string {
	t.Helper()
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB"}
	output, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var environment []string
	for i, value := range strings.Split(strings.TrimSuffix(string(output), "\n"), "\n") {
		environment = append(environment, names[i]+"="+value)
	}
	return environment
}

// makeProject makes the directory project in work.
func makeProject(root, work string, run func(string, ...string) error) error {
	project := filepath.Join(work, "project")
	if err := os.MkdirAll(filepath.Join(project, "plugins"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"scripts", "build", "test", "Makefile"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(project, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{".gitignore", "plugins/go.mod", "plugins/go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(project, name), content, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return run("bash", "-c", `mkdir project/patches
for patch in patches/*.patch; do
  $OUTPUT/tools/kube-scheduler-build patches export project/patches "$(basename "$patch" .patch)" < "$patch" || exit
done`)
}

// upstreamFiles are all files of the minimal upstream. To a script, its make behaves like the real one.
var upstreamFiles = map[string]string{
	"go.mod": "module k8s.io/kubernetes\n\ngo 1.19\n\nrequire github.com/prometheus/client_golang v1.11.0\n\n" +
		"replace github.com/prometheus/client_golang => github.com/prometheus/client_golang v1.11.0\n",
	"go.sum":     "",
	".gitignore": "/_output\n/pkg/generated.go\n",
	"vendor/modules.txt": "# github.com/prometheus/client_golang v1.11.0 => " +
		"github.com/prometheus/client_golang v1.11.0\n## explicit; go 1.13\n" +
		"github.com/prometheus/client_golang/prometheus\n" +
		"# github.com/prometheus/client_golang => github.com/prometheus/client_golang v1.11.0\n",
	"build/root/Makefile": "all: generated_files\n\thack/build.sh $(WHAT)\n.PHONY: generated_files\n" +
		"generated_files:\n\thack/generate.sh\n",
	"hack/generate.sh": `#!/usr/bin/env bash
# Makes a file from the types of the plugins' arguments, after a moment in which a test can interrupt it.
set -o errexit
shopt -s nullglob
echo generating
: > pkg/generated.go
if [ -p _output/generators-gate ]; then echo reached > _output/generators-gate; sleep 600; fi
for types in pkg/scheduler/framework/plugins/apis/config/*.go; do cat "$types"; done > pkg/generated.go
`,
	"hack/build.sh": `#!/usr/bin/env bash
# Copies the source, as a compiler would, after a moment in which a test can interrupt it.
set -o errexit
source "$KUBE_GIT_VERSION_FILE"
out=_output/local/bin/$KUBE_BUILD_PLATFORMS
mkdir -p "$out"
for target in "$@"; do
  { echo "$KUBE_GIT_VERSION $SOURCE_DATE_EPOCH $GOFLAGS"; find pkg -name '*.go' | sort | xargs cat; } > "$out/${target##*/}"
done
# As the go command: it ends after Ctrl-C by itself, with a status. It waits for the sleep in the background, because a
# signal that comes while a command is started can be lost.
trap 'kill $! || true; exit 1' INT
if [ -p _output/gate ]; then
  echo reached > _output/gate
  sleep 600 < /dev/null > /dev/null 2>&1 &
  wait $!
fi
`,
	"pkg/scheduler/framework/plugins/names/names.go": "package names\n\nconst QueueSort = \"QueueSort\"\n",
	"pkg/scheduler.go": "package pkg\n\nconst one = 1\n\nconst two = 2\n\nconst three = 3\n",
}

// patchFiles is the series: one patch that edits a file of the minimal upstream, and one that adds a file.
var patchFiles = map[string]string{
	"0100-change-one.patch": patchHeader("scheduler: change one") + `diff --git a/pkg/scheduler.go b/pkg/scheduler.go
--- a/pkg/scheduler.go
+++ b/pkg/scheduler.go
@@ -1,5 +1,5 @@
 package pkg
 
-const one = 1
+const one = 11
 
 const two = 2
`,
	"0200-add.patch": patchHeader("scheduler: add a file") + `diff --git a/pkg/added.go b/pkg/added.go
new file mode 100644
--- /dev/null
+++ b/pkg/added.go
@@ -0,0 +1 @@
+package pkg
`,
}

func patchHeader(subject string) string {
	return "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n" +
		"From: A Person <person@localhost>\nDate: Sun, 9 Sep 2001 01:46:40 +0000\nSubject: [PATCH] " + subject + "\n\n" +
		"Body.\n\nWhy: the test.\nUpstream-Status: Inappropriate\nApplies-To: v1.23.0 - v1.23.17\nDrop-When: never\n\n"
}

func writeFiles(dir string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			return err
		}
	}
	return nil
}

// makeUpstream writes the repository "upstream" and the pin "upstream.version" into dir.
func makeUpstream(dir, goVersion string) error {
	repository := filepath.Join(dir, "upstream")
	if err := writeFiles(repository, upstreamFiles); err != nil {
		return err
	}
	if err := os.Symlink("build/root/Makefile", filepath.Join(repository, "Makefile")); err != nil {
		return err
	}
	for _, arguments := range [][]string{
		{"init", "-q"},
		{"add", "-A"},
		{"-c", "user.name=upstream", "-c", "user.email=upstream@localhost", "commit", "-q", "-m", "Release v1.23.17"},
		{"tag", "v1.23.17"},
	} {
		command := exec.Command("git", append([]string{"-C", repository}, arguments...)...)
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_DATE=1677072390 +0000", "GIT_COMMITTER_DATE=1677072390 +0000")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", arguments, err, output)
		}
	}
	facts, err := source.FromCheckout(context.Background(), "v1.23.17", repository)
	if err != nil {
		return err
	}
	pin := fmt.Sprintf("KUBERNETES_VERSION=v1.23.17\nKUBERNETES_COMMIT=%s\nKUBERNETES_SUM=%s\nGO_VERSION=%s\n", facts.Commit, facts.Sum, goVersion)
	return os.WriteFile(filepath.Join(dir, "upstream.version"), []byte(pin), 0o644)
}
