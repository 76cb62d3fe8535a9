// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"

	gomodule "golang.org/x/mod/module"

	"kube-scheduler-fork/build/nextstep"
)

// Module is a Go module with code in a binary.
type Module struct {
	// Path and Version are the module's own; for a replaced module, those of the replacement.
	Path, Version string
	// Sum is its h1: sum, or empty for a module in upstream's tree.
	Sum string
	// Origin says where its source came from; it does not end with a full stop.
	Origin string
	// Folder is the directory of its source on this machine.
	Folder string
}

// Binary holds the facts of a Go binary.
type Binary struct {
	// GoVersion is the toolchain's name, "go1.27.4".
	GoVersion string
	// Modules are sorted by path. They do not include the command's own module.
	Modules []Module
	// SHA256 of the file, in hex.
	SHA256 string
}

// inspect reads the facts of a binary. It returns an error for a binary that would not run on a node of that
// architecture. The modules are those that the binary itself lists; a binary that was built in GOPATH mode lists none.
func inspect(name string, content []byte, options Options) (Binary, error) {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return Binary{}, nextstep.With(fmt.Errorf("%s: %w", name, err), "make image")
	}
	for key, want := range map[string]string{"GOOS": "linux", "GOARCH": options.Architecture, "CGO_ENABLED": "0"} {
		if got := setting(info, key); got != want {
			return Binary{}, nextstep.With(
				fmt.Errorf("%s was built with %s=%s, not %s=%s, and would not run on such a node",
					name, key, got, key, want),
				"make release ARCH=%s", options.Architecture)
		}
	}
	modules, err := listed(info.Deps, options.ModuleCache)
	return Binary{GoVersion: info.GoVersion, SHA256: fmt.Sprintf("%x", sha256.Sum256(content)), Modules: modules}, err
}

func setting(info *buildinfo.BuildInfo, key string) string {
	for _, setting := range info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}

// pluginsModule is the module of plugins/, which scheduler-extender is compiled from.
const pluginsModule = "k8s.io/kubernetes/pkg/scheduler/framework/plugins"

// listed returns the modules that a binary built in module mode lists.
func listed(dependencies []*debug.Module, moduleCache string) ([]Module, error) {
	var modules []Module
	for _, dependency := range dependencies {
		if dependency.Path == pluginsModule {
			// It is in this project.
			continue
		}
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		module := Module{Path: dependency.Path, Version: dependency.Version, Sum: dependency.Sum, Origin: "Go module"}
		folder, err := gomodule.EscapePath(module.Path)
		if err != nil {
			return nil, nextstep.With(err, "replace it with a published module in build/go.mod, then make release")
		}
		version, err := gomodule.EscapeVersion(module.Version)
		if err != nil {
			return nil, nextstep.With(fmt.Errorf("%s: %w", module.Path, err),
				"use a published version of it in build/go.mod, then make release")
		}
		module.Folder = filepath.Join(moduleCache, filepath.FromSlash(folder)+"@"+version)
		modules = append(modules, module)
	}
	slices.SortFunc(modules, byPath)
	return modules, nil
}
