// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/source"
)

// kubernetes is the module of the tree.
const kubernetes = "k8s.io/kubernetes"

// tree is the tree of Kubernetes that the image's binaries were compiled from.
type tree struct {
	folder, version, architecture string
	// sums are the h1: sums of the modules in its vendor directory, by path and version.
	sums map[string]string
}

func readTree(options Options) (*tree, error) {
	content, err := os.ReadFile(filepath.Join(options.Tree, "go.sum"))
	if err != nil {
		return nil, nextstep.With(err, "make tree")
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			sums[fields[0]+" "+fields[1]] = fields[2]
		}
	}
	return &tree{options.Tree, options.Kubernetes, options.Architecture, sums}, nil
}

// goPackage is a package as `go list -json` prints it.
type goPackage struct {
	ImportPath string
	Standard   bool
	Module     *struct {
		debug.Module
		Main bool
	}
}

// modules returns the modules of all packages that a command is compiled from, sorted by path. The linker omits
// functions that are never called, so a binary may contain no code of some of them.
func (t *tree) modules(command string) ([]Module, error) {
	overlay, remove, err := t.overlay()
	if err != nil {
		return nil, err
	}
	defer remove()
	list := exec.Command("go", "list", "-mod=vendor", "-overlay="+overlay, "-deps", "-tags=selinux,notest",
		"-json=ImportPath,Standard,Module", command)
	list.Dir = t.folder
	list.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GO111MODULE=on", "CGO_ENABLED=0", "GOOS=linux",
		"GOARCH="+t.architecture)
	var output, complaint bytes.Buffer
	list.Stdout, list.Stderr = &output, &complaint
	if err := list.Run(); err != nil {
		err = fmt.Errorf("cannot list the packages of %s in %s: %w: %s", command, t.folder, err, bytes.TrimSpace(complaint.Bytes()))
		return nil, nextstep.With(err, "make tree")
	}
	found := map[Module]bool{}
	for decoder := json.NewDecoder(&output); decoder.More(); {
		var imported goPackage
		if err := decoder.Decode(&imported); err != nil {
			return nil, fmt.Errorf("the output of go list: %w", err)
		}
		if imported.Standard || imported.Module != nil && imported.Module.Main {
			continue
		}
		module, err := t.moduleOf(imported)
		if err != nil {
			return nil, err
		}
		found[module] = true
	}
	return slices.SortedFunc(maps.Keys(found), byPath), nil
}

// overlay writes a file for go list -overlay, with a go.mod that requires all vendored modules. The patches import
// packages of some that upstream's go.mod does not name, and only that of the pinned release has been completed. Without
// the line of a later Go, go list does not compare the file with vendor/modules.txt.
func (t *tree) overlay() (file string, remove func(), err error) {
	path := filepath.Join(t.folder, "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		return "", nil, nextstep.With(err, "make tree")
	}
	parsed, err := modfile.ParseLax(path, content, nil)
	if err != nil {
		return "", nil, nextstep.With(err, "make tree")
	}
	required := map[string]bool{}
	for _, require := range parsed.Require {
		required[require.Mod.Path] = true
	}
	vendored, err := os.ReadFile(filepath.Join(t.folder, "vendor/modules.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, nextstep.With(err, "make tree")
	}
	completed := regexp.MustCompile(`(?m)^go [0-9.]+$`).ReplaceAllString(string(content), "go 1.13")
	for line := range strings.Lines(string(vendored)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "#" && fields[2] != "=>" && !required[fields[1]] {
			required[fields[1]] = true
			completed += "\nrequire " + fields[1] + " " + fields[2]
		}
	}
	folder, err := os.MkdirTemp("", "release-*")
	if err != nil {
		return "", nil, err
	}
	replacement := filepath.Join(folder, "go.mod")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {path: replacement}})
	file = filepath.Join(folder, "overlay.json")
	err = errors.Join(err, os.WriteFile(replacement, []byte(completed+"\n"), 0o644), os.WriteFile(file, replaced, 0o644))
	return file, func() { os.RemoveAll(folder) }, err
}

func (t *tree) moduleOf(imported goPackage) (Module, error) {
	listed := imported.Module
	if listed == nil || listed.Replace != nil && listed.Replace.Version == "" {
		return t.stagingOf(imported.ImportPath)
	}
	module := Module{
		Path: listed.Path, Version: listed.Version, Folder: filepath.Join(t.folder, "vendor", listed.Path),
		Origin: "Go module in vendor/",
	}
	if listed.Replace != nil {
		module.Path, module.Version = listed.Replace.Path, listed.Replace.Version
	}
	module.Sum = t.sums[module.Path+" "+module.Version]
	return module, nil
}

// stagingOf returns the staging module of a package. It is in the tree itself, and its version is that of the published
// module: v0.23.17 in v1.23.17. The go command reports no module for a package that nothing in the tree imports, such
// as the command kube-log-runner.
func (t *tree) stagingOf(imported string) (Module, error) {
	for name := imported; name != "."; name = path.Dir(name) {
		if _, err := os.Stat(filepath.Join(t.folder, "staging/src", name, "go.mod")); err == nil {
			return Module{
				Path: name, Version: source.StagingVersion(t.version), Folder: filepath.Join(t.folder, "vendor", name),
				Origin: "staging/src/" + name + " of Kubernetes " + t.version,
			}, nil
		}
	}
	return Module{}, nextstep.With(fmt.Errorf("%s in %s belongs to no module", imported, t.folder), "rm -r %s; make tree", t.folder)
}

func byPath(a, b Module) int { return strings.Compare(a.Path+"@"+a.Version, b.Path+"@"+b.Version) }
