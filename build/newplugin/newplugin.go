// SPDX-License-Identifier: Apache-2.0

// Package newplugin generates a new scheduler plugin: Go code that compiles and does nothing yet, and a table test that
// fails until the plugin is implemented.
package newplugin

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/format"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"kube-scheduler-fork/build/nextstep"
)

// Points are the extension points that can be generated, in the order in which the scheduler calls them.
var Points = []string{"prefilter", "filter", "postfilter", "prescore", "score", "reserve", "permit", "prebind", "bind", "postbind"}

//go:embed plugin.go.tmpl
var pluginTemplate string

//go:embed plugin_test.go.tmpl
var testTemplate string

var nameForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{2,36}$`)

// reserved are package names that the registry, Go or upstream's directory uses otherwise; scripts/new-plugin.sh also
// refuses the names of upstream's directories.
var reserved = map[string]bool{"apis": true, "configcheck": true, "examples": true, "feature": true, "features": true,
	"fts": true, "internal": true, "main": true, "plfeature": true, "plugins": true, "runtime": true, "shared": true,
	"simulation": true, "testdata": true, "vendor": true}

// Package returns the name of a plugin's package and directory: the plugin's name in lower case.
func Package(name string) string {
	return strings.ToLower(name)
}

// Check returns an error for a name or extension points that a plugin cannot have.
func Check(name string, points []string) error {
	if !nameForm.MatchString(name) {
		return nextstep.With(
			fmt.Errorf("NAME=%q is not a valid plugin name: it needs 3 to 37 letters and digits, the first a capital",
				name),
			"make new-plugin NAME=MyPlugin POINTS=filter,score")
	}
	if reserved[Package(name)] || token.IsKeyword(Package(name)) {
		return nextstep.With(fmt.Errorf("NAME=%s would use the directory %s, which is reserved", name, Package(name)),
			"make new-plugin NAME=My%s POINTS=filter,score", name)
	}
	if len(points) == 0 {
		return nextstep.With(errors.New("POINTS is not given"), "make new-plugin NAME=%s POINTS=filter,score", name)
	}
	for _, point := range points {
		if !slices.Contains(Points, point) {
			return nextstep.With(fmt.Errorf("POINTS: %q is not one of %s", point, strings.Join(Points, ",")),
				"make new-plugin NAME=%s POINTS=filter,score", name)
		}
	}
	return nil
}

// Write creates the plugin's directory below plugins, with its code and its test. It returns the errors of Check, and
// an error if the directory exists.
func Write(plugins, name string, points []string) error {
	if err := Check(name, points); err != nil {
		return err
	}
	chosen := map[string]bool{}
	for _, point := range points {
		chosen[point] = true
	}
	folder := filepath.Join(plugins, Package(name))
	if _, err := os.Stat(folder); err == nil {
		return nextstep.With(fmt.Errorf("%s already exists", folder),
			"choose another NAME, or make remove-plugin NAME=%s", name)
	}
	data := map[string]any{"Name": name, "Package": Package(name), "On": chosen}
	temporary := filepath.Join(plugins, "."+Package(name)+".new")
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return err
	}
	for file, text := range map[string]string{"plugin.go": pluginTemplate, "plugin_test.go": testTemplate} {
		var code bytes.Buffer
		if err := template.Must(template.New(file).Parse(text)).Execute(&code, data); err != nil {
			return err
		}
		formatted, err := format.Source(code.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(temporary, file), formatted, 0o644); err != nil {
			return err
		}
	}
	return os.Rename(temporary, folder)
}
