// SPDX-License-Identifier: Apache-2.0

package patches

import (
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kube-scheduler-fork/build/nextstep"
)

// pluginPrefix begins the names of the patches that are made from plugins/.
const pluginPrefix = "0200-plugin-"

// pluginsPath is the path of plugins/ in the tree.
const pluginsPath = "pkg/scheduler/framework/plugins/"

// readPlugins reads the directories of plugins/ as patches that add their files, byte for byte.
func readPlugins(plugins string) ([]Patch, error) {
	entries, err := os.ReadDir(plugins)
	if err != nil {
		return nil, nextstep.With(err, "git checkout -- plugins")
	}
	var series []Patch
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || LeftBehind(name) {
			continue
		}
		files, err := addedFiles(filepath.Join(plugins, name), pluginsPath+name+"/")
		if err != nil {
			return nil, err
		}
		about, hasGo := synopsis(pluginsPath+name, files)
		// Files without Go may remain of a plugin when another branch is checked out.
		if !hasGo {
			continue
		}
		if about == "" {
			return nil, nextstep.With(fmt.Errorf("no package in plugins/%s has a package comment", name),
				"begin one of its files with '// Package …'")
		}
		sections := map[string][]byte{}
		for file, content := range files {
			sections[file] = newFile(file, content)
		}
		patch, err := compose(pluginPrefix+name, fmt.Sprintf(pluginMessage, name, about), sections)
		if err != nil {
			return nil, fmt.Errorf("plugins/%s: %w", name, err)
		}
		series = append(series, patch)
	}
	return series, nil
}

const pluginMessage = `plugins: add %[1]s

%[2]s

Why: plugins/%[1]s is developed outside the tree, against pristine upstream;
 this patch puts it at its import path.
Upstream-Status: Inappropriate
Applies-To: v1.23.0 - v1.23.17
Drop-When: plugins/%[1]s is deleted
`

// synopsis returns the first sentence of the package comment of a directory, or those of all packages below it, and
// reports whether there are Go files.
func synopsis(dir string, files map[string][]byte) (about string, hasGo bool) {
	found := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		hasGo = true
		if strings.HasSuffix(name, "_test.go") || found[path.Dir(name)] != "" {
			continue
		}
		// What does not parse, the compiler reports.
		if file, err := parser.ParseFile(token.NewFileSet(), name, files[name], parser.PackageClauseOnly|parser.ParseComments); err == nil && file.Doc != nil {
			found[path.Dir(name)] = new(doc.Package).Synopsis(file.Doc.Text())
		}
	}
	if found[dir] != "" {
		return found[dir], hasGo
	}
	var all []string
	for _, below := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[below])
	}
	return strings.Join(all, "\n"), hasGo
}
