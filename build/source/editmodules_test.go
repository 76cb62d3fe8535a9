// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const entriesWithComments = `# What the file is for.
modules:
# The client.
- module: example.org/client
  # Upstream's.
  version: v1.0.0
  sum: h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU=
  packages:
  - api # the API
# Gangs,
# and more.
- module: example.org/gangs
  version: v1.0.0
  sum: h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU=
  plugins:
  # The one that is enabled.
  - name: Gang
    package: pkg
    constructor: New
  packages:
  - pkg
# Quotas.
- module: example.org/quotas
  version: v1.0.0
  sum: h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU=
  plugins:
  - name: Quota
    package: pkg
    constructor: New
    crds:
    - crd.yaml
  arguments: pkg
  packages:
  - pkg
  dependencies:
  - module: example.org/lacking
    version: v0.5.0
    sum: h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU=
    packages:
    - .
`

func TestEditModules(t *testing.T) {
	gangsText := entriesWithComments[strings.Index(entriesWithComments, "# Gangs,"):strings.Index(entriesWithComments, "# Quotas.")]
	quotasText := entriesWithComments[strings.Index(entriesWithComments, "# Quotas."):]
	entry := func(path string) Module {
		modules, err := parseModules([]byte(entriesWithComments))
		if err != nil {
			t.Fatal(err)
		}
		return modules[slices.IndexFunc(modules, func(m Module) bool { return m.Path == path })]
	}
	renamed := func(path, name string) Module {
		m := entry(path)
		m.Plugins = slices.Clone(m.Plugins)
		m.Plugins[0].Name = name
		return m
	}
	add := func(m Module) func(string) error { return func(file string) error { return AddModule(file, m) } }
	remove := func(path string) func(string) error {
		return func(file string) error { return RemoveModule(file, path) }
	}
	for name, tt := range map[string]struct {
		before, after string
		edit          func(file string) error
		// wants are parts of the error, after which the file is unchanged.
		wants []string
	}{
		"added at the end": {
			before: strings.Replace(entriesWithComments, quotasText, "", 1), edit: add(entry("example.org/quotas")),
			after: strings.Replace(entriesWithComments, "# Quotas.\n", "", 1),
		},
		"added to nothing": {
			before: "modules: []\n", edit: add(entry("example.org/quotas")),
			after: "modules:\n" + strings.TrimPrefix(quotasText, "# Quotas.\n"),
		},
		"added in the place of the one that is there, with its comment": {
			before: entriesWithComments, edit: add(renamed("example.org/quotas", "Tenant")),
			after: strings.Replace(entriesWithComments, "name: Quota", "name: Tenant", 1),
		},
		"in the middle the same": {
			before: entriesWithComments, edit: add(renamed("example.org/gangs", "Group")),
			after: strings.Replace(strings.Replace(entriesWithComments, "name: Gang", "name: Group", 1), "  # The one that is enabled.\n", "", 1),
		},
		"removed with its comment, at the end": {
			before: entriesWithComments, edit: remove("example.org/quotas"), after: strings.Replace(entriesWithComments, quotasText, "", 1),
		},
		"removed with its comment, in the middle": {
			before: entriesWithComments, edit: remove("example.org/gangs"), after: strings.Replace(entriesWithComments, gangsText, "", 1),
		},
		"removed, and nothing is left": {
			before: "modules:\n" + quotasText, edit: remove("example.org/quotas"), after: "modules: []\n",
		},
		"copied with the wanted modules alone": {
			before: entriesWithComments, after: strings.Replace(entriesWithComments, gangsText, "", 1),
			edit: func(file string) error {
				return CopyModules(file, file, []Module{entry("example.org/client"), entry("example.org/quotas")})
			},
		},
		"a plugin that another module has": {
			before: entriesWithComments, edit: add(renamed("example.org/quotas", "Gang")),
			wants: []string{"would be invalid with this change", "example.org/quotas: the plugin Gang is listed twice", "next: make remove-module"},
		},
		"another version of what another module has": {
			before: entriesWithComments, edit: add(Module{Path: "example.org/lacking", Version: "v0.6.0", Sum: entry("example.org/quotas").Sum, Packages: []string{"."}}),
			wants: []string{"example.org/lacking is listed as v0.5.0", "and as v0.6.0", "next: make remove-module"},
		},
		"removed, and not there": {
			before: entriesWithComments, edit: remove("example.org/none"), wants: []string{"has no module example.org/none", "next: choose MODULE from"},
		},
		"removed, and this project's own": {
			before: entriesWithComments, edit: remove("example.org/client"),
			wants: []string{"has no plugins of example.org/client, because the project's own plugins import that module",
				"next: if they no longer import it, edit"},
		},
		"a file that is broken": {
			before: "modules: [", edit: add(entry("example.org/quotas")), wants: []string{"next: correct it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, "modules.yaml", tt.before)
			err := tt.edit(file)
			for _, want := range tt.wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
			want := tt.after
			if len(tt.wants) > 0 {
				want = tt.before
			} else if err != nil {
				t.Fatal(err)
			}
			if got := readFile(t, file); got != want {
				t.Errorf("the file is\n%s\nwant\n%s", got, want)
			}
			if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
				t.Errorf("beside the file are %v (%v)", entries, err)
			}
		})
	}
}

// This project's modules.yaml is in the form in which it is written: adding and removing a module leaves no diff.
func TestModulesAreAsBeforeWhenOneWasAddedAndRemoved(t *testing.T) {
	before := readFile(t, "../../modules.yaml")
	file := writeFile(t, "modules.yaml", before)
	added := Module{
		Path: "example.org/added", Version: "v1.0.0", Sum: "h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU=", Packages: []string{"."},
		Plugins: []Plugin{{Name: "Added", Package: ".", Constructor: "New"}},
	}
	if err := AddModule(file, added); err != nil {
		t.Fatal(err)
	}
	if with := readFile(t, file); !strings.HasPrefix(with, before) || !strings.Contains(with, "- module: example.org/added\n") {
		t.Errorf("with one more it is\n%s", with)
	}
	if err := RemoveModule(file, "example.org/added"); err != nil {
		t.Fatal(err)
	}
	if after := readFile(t, file); after != before {
		t.Errorf("afterwards it is\n%s", after)
	}
}
