// SPDX-License-Identifier: Apache-2.0

package newplugin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		points []string
		want   string
	}{
		{"lowercase", []string{"score"}, "is not a valid plugin name"},
		{"With-Dash", []string{"score"}, "is not a valid plugin name"},
		{"", []string{"score"}, "is not a valid plugin name"},
		{"Runtime", []string{"score"}, "is reserved"},
		{"Shared", []string{"score"}, "is reserved"},
		{"Func", []string{"score"}, "is reserved"},
		{"Taken", []string{"score"}, "already exists"},
		{"MyPlugin", []string{"queue"}, "is not one of prefilter,filter"},
		{"MyPlugin", nil, "POINTS is not given"},
	} {
		err := Write(dir, tt.name, tt.points)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "next: ") {
			t.Errorf("Write(%q, %q) = %v, want an error that says %q and what is next", tt.name, tt.points, err, tt.want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("a refused plugin left something behind: %v", entries)
	}
}

// TestWrite compiles the generated plugins in a module with the dependencies of plugins/, against pristine upstream,
// and runs their tests, which fail until the plugin is implemented.
func TestWrite(t *testing.T) {
	plugins := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join("../../plugins", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(plugins, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written := map[string][]string{"TryAllPoints": Points, "TryOnlyPermit": {"permit"}, "TryOnlyScore": {"score"}}
	for name, points := range written {
		if err := Write(plugins, name, points); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := goCommand(plugins, "vet", "./...").CombinedOutput(); err != nil {
		t.Fatalf("the written plugins do not compile: %v\n%s", err, output)
	}
	output, err := goCommand(plugins, "test", "-vet=off", "./...").CombinedOutput()
	for name := range written {
		if err == nil || !strings.Contains(string(output), "--- FAIL: Test"+name) {
			t.Errorf("the test of %s passes before an author has filled it in: %v\n%s", name, err, output)
		}
	}
	filled := []string{"test", "-vet=off"}
	for _, name := range []string{"TryAllPoints", "TryOnlyScore"} {
		fillIn(t, filepath.Join(plugins, Package(name), "plugin.go"))
		filled = append(filled, "./"+Package(name))
	}
	if output, err := goCommand(plugins, filled...).CombinedOutput(); err != nil {
		t.Errorf("the tests of the plugins that are filled in: %v\n%s", err, output)
	}
}

// fillIn implements a plugin as a developer would: it requires and prefers nodes with the label of the generated test.
func fillIn(t *testing.T, file string) {
	t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer(
		"\treturn true\n", "\treturn node.Labels[\"key\"] == \"value\"\n",
		"\treturn framework.MinNodeScore\n", "\treturn 10 * int64(len(node.Labels[\"key\"]))\n",
	).Replace(string(code))
	if err := os.WriteFile(file, []byte(filled), 0o644); err != nil {
		t.Fatal(err)
	}
}

// goCommand compiles with the flags of scripts/environment.sh, so that the scheduler's packages come from the build
// cache.
func goCommand(dir string, arguments ...string) *exec.Cmd {
	command := exec.Command("go", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	return command
}

const registry = `package plugins

// Imports come in the order of their paths.
import (
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/chaos"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func NewInTreeRegistry() runtime.Registry {
	other := map[string]string{
		"a": "b",
	}
	return runtime.Registry{
		queuesort.Name: queuesort.New, // the first

		chaos.Name: chaos.New, // the last
	}
}
`

func TestRegister(t *testing.T) {
	got, err := Register([]byte(registry), "MyPlugin")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"plugins/chaos\"\n", "plugins/chaos\"\n\t\"k8s.io/kubernetes/pkg/scheduler/framework/plugins/myplugin\"\n",
		"chaos.Name: chaos.New, // the last", "chaos.Name:    chaos.New,\n\t\tmyplugin.Name: myplugin.New, // the last",
	).Replace(registry)
	if string(got) != want {
		t.Errorf("the registry is\n%s\nwant\n%s", got, want)
	}
	removed, err := Unregister(got, "MyPlugin")
	if err != nil || string(removed) != strings.Replace(registry, ", // the last", ",", 1) {
		t.Errorf("and removed: %v\n%s", err, removed)
	}
	if same, err := Unregister(removed, "MyPlugin"); err != nil || string(same) != string(removed) {
		t.Errorf("removed twice: %v\n%s", err, same)
	}
	again, err := Register(got, "Another")
	if err != nil || !strings.Contains(string(again), "\t\tanother.Name:  another.New,") {
		t.Errorf("a second one: %v\n%s", err, again)
	}
}

func TestRegisterRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ registry, plugin, want string }{
		"registered": {
			registry, "Chaos", "upstream already has a plugin chaos; next: choose another NAME",
		},
		"no Go": {"package", "MyPlugin", "cannot be read"},
		"no registry": {
			strings.ReplaceAll(registry, "runtime.Registry{", "runtime.Other{"), "MyPlugin", "no list of imports or no",
		},
		"no imports": {
			strings.NewReplacer("import (", "/*", "runtime\"\n)", "*/").Replace(registry), "MyPlugin", "no list of imports or no",
		},
		"nothing entered": {
			"package a\n\nimport (\n\t\"b\"\n)\n\nvar c = runtime.Registry{}\n", "MyPlugin", "with entries",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Register([]byte(tt.registry), tt.plugin)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "next: ") {
				t.Errorf("got %v, want %q and what is next", err, tt.want)
			}
		})
	}
}
