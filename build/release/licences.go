// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"kube-scheduler-fork/build/nextstep"
)

// licenceForm matches the names of files with licences.
var licenceForm = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

// licences returns the licences of Go, of Kubernetes, and of each module, including those of code that a module has
// copied. They are at licenses/<module>@<version>/.
func licences(options Options, modules []Module) ([]file, error) {
	texts := map[string][]byte{}
	upstream := kubernetes + "@" + options.Kubernetes
	if err := addLicences(texts, "go", options.GoRoot, false); err != nil {
		return nil, err
	}
	if err := addLicences(texts, upstream, options.Tree, false); err != nil {
		return nil, err
	}
	thirdParty := filepath.Join(options.Tree, "third_party")
	if err := addLicences(texts, upstream+"/third_party", thirdParty, true); err != nil {
		return nil, err
	}
	for _, module := range modules {
		if err := addLicences(texts, module.Path+"@"+module.Version, module.Folder, true); err != nil {
			return nil, err
		}
	}
	var files []file
	for name, content := range texts {
		files = append(files, file{"licenses/" + name, 0o644, content})
	}
	return files, nil
}

// addLicences adds the licences in a directory, and with below those in its subdirectories. There must be at least one.
func addLicences(texts map[string][]byte, name, folder string, below bool) error {
	// Staging modules in vendor/ are links.
	top, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nextstep.With(fmt.Errorf("cannot read the licence of %s: %w", name, err), "make tree, go -C build mod download, make release")
	}
	found := false
	err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != top && (!below || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !licenceForm.MatchString(entry.Name()) || filepath.Ext(path) == ".go":
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		place, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		texts[name+"/"+filepath.ToSlash(place)], found = content, true
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%s contains no LICENSE, COPYING or NOTICE", folder)
	}
	if err != nil {
		return nextstep.With(fmt.Errorf("cannot read the licence of %s: %w", name, err), "make clean, "+
			"go -C build mod download, make release; if a distribution's Go has no licence, use the Go from go.dev; "+
			"if the module never had one, remove the module")
	}
	return nil
}

// licenceText matches the names of files with the text of a licence, not of those with a notice or a grant of patents.
var licenceText = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([-._].*)?$`)

// licenceOf returns the licences in a module's directory as an SPDX expression; unknown if none is recognized.
func licenceOf(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		// addLicences reports that.
		return unknown
	}
	found := map[string]bool{}
	for _, entry := range entries {
		if entry.IsDir() || !licenceText.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return unknown
		}
		for _, match := range licensecheck.Scan(content).Match {
			// A link may lead to the licence of something else.
			if !match.IsURL {
				found[match.ID] = true
			}
		}
	}
	if len(found) == 0 {
		return unknown
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " AND ")
}
