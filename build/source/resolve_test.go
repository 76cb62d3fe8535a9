// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kube-scheduler-fork/build/nextstep"
)

// gangs are the files of a module with plugins, in which one text of a file may be replaced by another.
func gangs(change ...string) map[string]string {
	plugin := func(name, imported string, constructors ...string) string {
		text := "package " + strings.ToLower(name) + "\n\nimport (\n\t\"k8s.io/kubernetes/pkg/runtime\"\n" +
			"\t_ \"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme\"\n\t\"k8s.io/kubernetes/pkg/scheduler/framework\"\n" +
			"\t_ \"" + imported + "\"\n)\n\nconst Name = \"" + name + "\"\n\ntype plugin struct{}\n\n" +
			"func (plugin) Name() string { return Name }\n"
		for _, constructor := range constructors {
			text += "\nfunc " + constructor + "(_ runtime.Object, _ framework.Handle) (framework.Plugin, error) { return plugin{}, nil }\n"
		}
		return text
	}
	crd := "# A comment.\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n" +
		"  name: podgroups.example.org\nspec:\n  group: example.org\n  names: {plural: podgroups}\n" +
		"  versions:\n  - {name: v1alpha1, storage: false}\n  - {name: v1, storage: true}\n"
	files := map[string]string{
		"go.mod": "module example.org/gangs\n\ngo 1.16\n\nrequire (\n\texample.org/carried v0.9.0\n" +
			"\texample.org/dependency v1.1.0\n\texample.org/lacking v0.4.0\n\tk8s.io/kubernetes v1.23.4\n)\n\n" +
			"replace example.org/lacking => example.org/lacking v0.5.0\n",
		"LICENSE": "of the gangs\n",
		"cmd/scheduler/main.go": "package main\n\nimport (\n\t\"example.org/gangs/pkg/gang\"\n" +
			"\tnamed \"example.org/gangs/pkg/registered\"\n\t\"k8s.io/kubernetes/cmd/kube-scheduler/app\"\n)\n\n" +
			"func main() {\n\tapp.NewSchedulerCommand(app.WithPlugin(gang.Name, gang.New), app.WithPlugin(named.Name, named.NewSecond))\n}\n",
		"pkg/gang/gang.go":             plugin("Gang", "example.org/gangs/pkg/gang/groups", "New") + "\nvar PodGroups int\n",
		"pkg/gang/gang_test.go":        "package gang\n\nimport _ \"example.org/stray\"\n",
		"pkg/gang/groups/groups.go":    "package groups\n\nimport (\n\t_ \"example.org/carried/client\"\n\t_ \"example.org/lacking\"\n\t_ \"net/http\"\n)\n",
		"pkg/registered/registered.go": plugin("Registered", "net/http", "New", "NewSecond"),
		"pkg/other/other.go":           plugin("Other", "example.org/gangs/pkg/gang/groups", "New"),
		"pkg/twice/twice.go":           plugin("Twice", "net/http", "NewOne", "NewOther"),
		"pkg/bare/bare.go":             plugin("Bare", "net/http"),
		"pkg/imagelocality/image.go":   plugin("ImageLocality", "net/http", "New"),
		"pkg/nodeload/nodeload.go":     plugin("NodeLoad", "net/http", "New"),
		"pkg/absent/absent.go":         plugin("Absent", "example.org/lacking/absent", "New"),
		"pkg/later/later.go":           plugin("Later", "k8s.io/kubernetes/pkg/later", "New"),
		"pkg/stray/stray.go":           plugin("Stray", "example.org/stray", "New"),
		"pkg/plain/plain.go":           plugin("Plain", "example.org/dependency/used", "New"),
		"apis/apis.go":                 "package apis\n\nconst Kind = \"GangArgs\"\n",
		"apis/scheme/scheme.go": "package scheme\n\nimport (\n\t\"example.org/gangs/apis\"\n\t\"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme\"\n)\n\n" +
			"func init() { scheme.Kinds = append(scheme.Kinds, apis.Kind) }\n",
		"config/crd.yaml":            crd,
		"manifests/crd.yaml":         crd,
		"manifests/chart/gang.yaml":  "{{ .Values }}\n",
		"vendor/example.org/x/x.go":  "package x\n",
		"testdata/broken/broken.go":  "no Go\n",
		"hack/tools/.hidden/more.go": "no Go\n",
	}
	if len(change) > 0 {
		file, old := change[0], change[1]
		if !strings.Contains(files[file], old) {
			panic(file + " does not contain " + old)
		}
		files[file] = strings.Replace(files[file], old, change[2], 1)
	}
	return files
}

// gangsEntry is what modules.yaml has to say of two of its plugins.
func gangsEntry(t *testing.T) Module {
	return Module{
		Path: gangsPath, Version: "v1.0.0", Sum: sumOf(t, gangsPath, "v1.0.0"),
		Plugins: []Plugin{
			{Name: "Gang", Package: "pkg/gang", Constructor: "New", CRDs: []string{"config/crd.yaml"}},
			{Name: "Registered", Package: "pkg/registered", Constructor: "NewSecond"},
		},
		Arguments: "apis/scheme",
		Packages:  []string{"apis", "apis/scheme", "pkg/gang", "pkg/gang/groups", "pkg/registered"},
		Dependencies: []Module{
			// Upstream vendors other packages of it, so its version counts.
			{Path: carriedPath, Version: "v1.0.0", Sum: sumOf(t, carriedPath, "v1.0.0"), Packages: []string{"client"}},
			// The version with which the module replaces the one that it requires.
			{Path: lackingPath, Version: "v0.5.0", Sum: sumOf(t, lackingPath, "v0.5.0"), Packages: []string{".", "below"}},
		},
	}
}

func TestResolveFindsAllThatPluginsNeed(t *testing.T) {
	repository, commit, _ := upstream(t)
	got, err := Resolve(context.Background(), nil, gangsPath, "v1.0.0", []string{"Gang", "Registered"}, repository, commit)
	if err != nil {
		t.Fatal(err)
	}
	if want := gangsEntry(t); !reflect.DeepEqual(got, want) {
		t.Errorf("Resolve =\n%+v, want\n%+v", got, want)
	}
	// A plugin that no command of the module registers; and a version that the go command looks up.
	got, err = Resolve(context.Background(), nil, gangsPath, "v1.0", []string{"Other"}, repository, commit)
	if want := []Plugin{{Name: "Other", Package: "pkg/other", Constructor: "New"}}; err != nil ||
		!reflect.DeepEqual(got.Plugins, want) || got.Version != "v1.0.0" {
		t.Errorf("Resolve = %+v, %v", got, err)
	}
}

func TestResolveRefuses(t *testing.T) {
	repository, commit, _ := upstream(t)
	for name, tt := range map[string]struct {
		module, version, plugins string
		// wants are in the error.
		wants []string
	}{
		"a module that needs more than upstream vendors": {gangsPath, "v1.1.0", "Plain", []string{
			"example.org/gangs@v1.1.0 needs example.org/dependency@v1.2.0, but upstream vendors v1.1.0",
			"next: use an older version of the module (go list -m -versions example.org/gangs)",
		}},
		"a module for another minor": {gangsPath, "v1.2.0", "Gang", []string{
			"example.org/gangs@v1.2.0 is made for Kubernetes v1.24.0, and this is 1.23", "next: use the module's version for",
		}},
		"a module without plugins": {lackingPath, "v0.5.0", "Gang", []string{
			"does not require k8s.io/kubernetes", "next: check MODULE=path@version",
		}},
		"a module whose go.mod cannot be read": {gangsPath, "v1.3.0", "Gang", []string{
			"example.org/gangs@v1.3.0/go.mod:", "next: use another version of example.org/gangs",
		}},
		"two packages for the arguments": {gangsPath, "v1.4.0", "Gang", []string{
			"several packages of example.org/gangs add to the scheduler's scheme: apis/scheme, pkg/other", "next: write the entry",
		}},
		"a name that upstream has": {gangsPath, "v1.0.0", "Gang,ImageLocality", []string{
			"kube-scheduler already has its own plugin ImageLocality", "next: leave it out of PLUGINS",
		}},
		"a name that this project has": {gangsPath, "v1.0.0", "NodeLoad", []string{
			"kube-scheduler already has its own plugin NodeLoad", "next: leave it out of PLUGINS",
		}},
		"a plugin without a constructor": {gangsPath, "v1.0.0", "Bare", []string{
			`example.org/gangs has no plugin "Bare" with a constructor`, "Absent, Gang, ImageLocality, Later, NodeLoad, Other, Plain, Registered, Stray",
		}},
		"a plugin that there is not": {gangsPath, "v1.0.0", "Gnag", []string{
			`no plugin "Gnag"`,
			"next: choose PLUGINS from those that were found: Absent, Gang,",
		}},
		"a plugin with two constructors": {gangsPath, "v1.0.0", "Twice", []string{
			"several constructors for Twice: pkg/twice.NewOne, pkg/twice.NewOther",
			"next: write the entry",
		}},
		"a plugin that is named twice": {gangsPath, "v1.0.0", "Gang,Gang", []string{
			"PLUGINS has Gang twice",
			"next: leave out",
		}},
		"an import that is not there": {gangsPath, "v1.0.0", "Absent", []string{
			"example.org/gangs@v1.0.0 imports example.org/lacking/absent, which example.org/lacking@v0.5.0 does not have",
			"next: ",
		}},
		"an import that Kubernetes lacks": {gangsPath, "v1.0.0", "Later", []string{
			"imports k8s.io/kubernetes/pkg/later, which this Kubernetes does not have",
			"next: ",
		}},
		"an import of no module": {gangsPath, "v1.0.0", "Stray", []string{
			"imports example.org/stray, which is in none of the modules that it requires",
			"next: ",
		}},
		"a version that there is not": {gangsPath, "v9.0.0", "Gang", []string{
			"example.org/gangs@v9.0.0",
			"next: check",
		}},
		"a module that there is not": {"example.org/none", "v1.0.0", "Gang", []string{
			"example.org/none@v1.0.0",
			"next: check",
		}},
		"a module whose path is no path": {"gangs", "v1.0.0", "Gang", []string{"gangs@v1.0.0", "next: check"}},
		"a version that is none": {gangsPath, "1.0.0", "Gang", []string{
			"example.org/gangs@1.0.0",
			"next: check",
		}},
		"a module with a text that is odd": {"example.org/gangs -x", "v1.0.0", "Gang", []string{
			"-x@v1.0.0",
			"next: check",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Resolve(context.Background(), nil, tt.module, tt.version, strings.Split(tt.plugins, ","), repository, commit)
			for _, want := range tt.wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Resolve = %v, want an error that contains %q", err, want)
				}
			}
		})
	}
	t.Run("a zip that was changed in the module cache", func(t *testing.T) {
		cached := filepath.Join(os.Getenv("GOMODCACHE"), "cache/download", gangsPath, "@v")
		other, err := os.ReadFile(filepath.Join(cached, "v1.4.0.zip"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cached, "v1.0.0.zip"), other, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = Resolve(context.Background(), nil, gangsPath, "v1.0.0", []string{"Gang"}, repository, commit)
		if err == nil || !strings.Contains(err.Error(), "the zip in the module cache has the sum "+sumOf(t, gangsPath, "v1.4.0")) {
			t.Errorf("Resolve = %v", err)
		}
	})
	without := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(without.Close)
	for name, tt := range map[string]struct{ proxy, next string }{
		"a proxy that does not answer":   {"http://127.0.0.1:1", "check that the module proxy (go env GOPROXY)"},
		"a proxy that does not offer it": {without.URL, "check MODULE=path@version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOPROXY", tt.proxy)
			t.Setenv("GOMODCACHE", t.TempDir())
			_, err := Resolve(context.Background(), nil, gangsPath, "v1.0.0", []string{"Gang"}, repository, commit)
			if err == nil {
				t.Fatal("it is accepted")
			}
			if what, next := nextstep.Split(err, ""); !strings.HasPrefix(next, tt.next) {
				t.Errorf("Resolve = %s; the next step is %q, want %q", what, next, tt.next)
			}
		})
	}
	t.Run("a folder that is no tree", func(t *testing.T) {
		_, err := Resolve(context.Background(), nil, gangsPath, "v1.0.0", []string{"Gang"}, t.TempDir(), commit)
		if err == nil || !strings.Contains(err.Error(), "is not a Kubernetes tree") || !strings.Contains(err.Error(), "next: make tree") {
			t.Errorf("Resolve = %v", err)
		}
	})
}

func TestWriteCRDs(t *testing.T) {
	upstream(t)
	folder := filepath.Join(t.TempDir(), "crds")
	// The second file defines the same; a module whose plugins need nothing is not even downloaded.
	entry := gangsEntry(t)
	entry.Plugins[1].CRDs = []string{"manifests/crd.yaml"}
	modules := []Module{entry, {Path: "example.org/none", Version: "v1.0.0", Plugins: []Plugin{{Name: "Other"}}}}
	if err := WriteCRDs(context.Background(), modules, folder); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("there are %v (%v), want one file", entries, err)
	}
	text := readFile(t, filepath.Join(folder, "podgroups.example.org.yaml"))
	if !strings.HasPrefix(text, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n") ||
		!strings.HasSuffix(text, "storage: true}\n") {
		t.Errorf("the file is\n%s", text)
	}
	entry.Plugins[0].CRDs = []string{"go.mod"}
	err = WriteCRDs(context.Background(), []Module{entry}, folder)
	if err == nil || !strings.Contains(err.Error(), "go.mod, which Gang needs") {
		t.Errorf("WriteCRDs of what is no definition = %v", err)
	}
}

func TestAllNamesEachModuleOnce(t *testing.T) {
	plugins := []Plugin{{Name: "Gang", Package: "x", Constructor: "New"}}
	modules := []Module{
		{Path: "a", Version: "v1", Packages: []string{"x"}, Plugins: plugins, Dependencies: []Module{
			{Path: "b", Version: "v1", Packages: []string{"y", "z"}}, {Path: "c", Version: "v1", Packages: []string{"x"}},
		}},
		{Path: "b", Version: "v1", Packages: []string{"x", "y"}, Plugins: plugins, Arguments: "x", Dependencies: []Module{
			{Path: "d", Version: "v1", Packages: []string{"x"}},
		}},
		{Path: "e", Version: "v1", Packages: []string{"x"}},
	}
	got := map[string]string{}
	for _, m := range All(modules) {
		if len(m.Dependencies) > 0 {
			t.Errorf("%s has dependencies", m.Path)
		}
		got[m.Path] = m.String()
	}
	want := map[string]string{
		"a": "a@v1 : x; Gang from x.New",
		"b": "b@v1 : x, y, z; Gang from x.New; arguments from x",
		"c": "c@v1 : x",
		"d": "d@v1 : x",
		"e": "e@v1 : x",
	}
	if !maps.Equal(got, want) {
		t.Errorf("All = %q, want %q", got, want)
	}
	if len(modules[0].Dependencies) != 2 || !slices.Equal(modules[1].Packages, []string{"x", "y"}) {
		t.Errorf("All changed what it was given: %+v", modules)
	}
	if ours := WithoutPlugins(modules); len(ours) != 1 || ours[0].Path != "e" || len(modules) != 3 {
		t.Errorf("WithoutPlugins = %v of %v", ours, modules)
	}
	withCRDs := Module{Path: "a", Version: "v1", Sum: "h1:s", Packages: []string{"x"}, Plugins: []Plugin{
		{Name: "Gang", Package: "x", Constructor: "New", CRDs: []string{"one.yaml", "two.yaml"}},
	}}
	if got, want := withCRDs.String(), "a@v1 h1:s: x; Gang from x.New with one.yaml and two.yaml"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}
