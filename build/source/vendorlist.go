// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// Vendored is the entry of one module in vendor/modules.txt.
type Vendored struct {
	Module module.Version
	// Replacement is the module, or the directory without a version, that replaces this one; empty if none does.
	Replacement module.Version
	// Packages are the import paths of the packages in vendor/, sorted.
	Packages []string
	// head is the module's line and the go command's notes below it.
	head []string
}

// takes returns the module in vendor/: the module itself or its replacement.
func (v *Vendored) takes() module.Version {
	if v.Replacement.Path != "" {
		return v.Replacement
	}
	return v.Module
}

// inStaging reports whether the tree of Kubernetes contains the whole module.
func (v *Vendored) inStaging() bool { return strings.HasPrefix(v.Replacement.Path, "./staging/") }

// ParseVendorList reads vendor/modules.txt. The replacements at its end, which serve only the go command's check, have
// neither a version nor packages.
func ParseVendorList(content []byte) []*Vendored {
	var list []*Vendored
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "# "):
			// "# path version", "# path version => path version", "# path version => ./folder", "# path => …"
			original, replacement, _ := strings.Cut(line[2:], " => ")
			list = append(list, &Vendored{
				Module: versionOf(original), Replacement: versionOf(replacement), head: []string{line},
			})
		case line == "" || len(list) == 0:
		case strings.HasPrefix(line, "##"):
			list[len(list)-1].head = append(list[len(list)-1].head, line)
		default:
			list[len(list)-1].Packages = append(list[len(list)-1].Packages, line)
		}
	}
	return list
}

func versionOf(words string) module.Version {
	path, version, _ := strings.Cut(words, " ")
	return module.Version{Path: path, Version: version}
}

// formatVendorList writes vendor/modules.txt as `go mod vendor` does.
func formatVendorList(list []*Vendored) []byte {
	var lines []string
	for _, vendored := range list {
		lines = slices.Concat(lines, vendored.head, vendored.Packages)
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}
