// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/format"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"text/template"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// registrationFiles are the files of the tree that register the modules' plugins with kube-scheduler, and with
// kube-scheduler-simulate. They call code of this project that comes with the patches. Their name does not begin with
// zz_generated: upstream's build in Docker hides such files from the container, and generates them there.
var registrationFiles = []string{"cmd/kube-scheduler/modules.go", "cmd/kube-scheduler-simulate/modules.go"}

var registration = template.Must(template.New("modules.go").Parse(`// Code generated from modules.yaml. DO NOT EDIT.

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/carried"
{{- range .Arguments}}
	_ {{printf "%q" .}}
{{- end}}
{{- range $i, $path := .Packages}}
	plugin{{$i}} {{printf "%q" $path}}
{{- end}}
)

func init() {
{{- range .Plugins}}
	carried.Register(carried.Plugin{
		Name: {{printf "%q" .Name}},
		New: plugin{{.Package}}.{{.Constructor}},
		{{- if .CRDs}}
		CRDs: []carried.CRD{
			{{- range .CRDs}}
			{Name: {{printf "%q" .Metadata.Name}}, Group: {{printf "%q" .Spec.Group}}, Version: {{printf "%q" .Version}}, Resource: {{printf "%q" .Spec.Names.Plural}}},
			{{- end}}
		},
		{{- end}}
	})
{{- end}}
}
`))

// register returns the file that registers the modules' plugins with a command; nil if there are none. crds are
// the definitions by the files that the plugins name.
func register(modules []Module, crds map[string][]CRD) []byte {
	type plugin struct {
		Name, Constructor string
		// Package is the index of the package's import path.
		Package int
		CRDs    []CRD
	}
	var data struct {
		Arguments, Packages []string
		Plugins             []plugin
	}
	for _, m := range modules {
		if m.Arguments != "" {
			data.Arguments = append(data.Arguments, path.Join(m.Path, m.Arguments))
		}
		for _, p := range m.Plugins {
			imported := path.Join(m.Path, p.Package)
			at := slices.Index(data.Packages, imported)
			if at < 0 {
				at = len(data.Packages)
				data.Packages = append(data.Packages, imported)
			}
			entry := plugin{Name: p.Name, Constructor: p.Constructor, Package: at}
			for _, file := range p.CRDs {
				entry.CRDs = append(entry.CRDs, crds[path.Join(m.Path, file)]...)
			}
			data.Plugins = append(data.Plugins, entry)
		}
	}
	if len(data.Plugins) == 0 {
		return nil
	}
	var written bytes.Buffer
	if err := registration.Execute(&written, data); err != nil {
		panic(err) // The template is part of the program.
	}
	formatted, err := format.Source(written.Bytes())
	if err != nil {
		panic(err) // Names and constructors were checked.
	}
	return formatted
}

// Registration returns that file without the CRDs, which the modules' sums already determine.
func Registration(modules []Module) []byte { return register(modules, nil) }

// CRD is a CustomResourceDefinition from a module: the fields that are used, and its text.
type CRD struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name    string `json:"name"`
			Storage bool   `json:"storage"`
		} `json:"versions"`
	} `json:"spec"`
	Text []byte `json:"-"`
}

// Version returns the storage version.
func (c CRD) Version() string {
	for _, version := range c.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// readCRDs reads the definitions that the modules' plugins name, keyed by the module's path joined with the file's
// path. folders maps module paths to their directories.
func readCRDs(modules []Module, folders map[string]string) (map[string][]CRD, error) {
	crds := map[string][]CRD{}
	for _, m := range modules {
		for _, plugin := range m.Plugins {
			for _, file := range plugin.CRDs {
				content, err := os.ReadFile(filepath.Join(folders[m.Path], filepath.FromSlash(file)))
				if err == nil {
					crds[path.Join(m.Path, file)], err = parseCRDs(content)
				}
				if err != nil {
					return nil, nextstep.With(fmt.Errorf("%s@%s: %s, which %s needs: %w", m.Path, m.Version, file, plugin.Name, err),
						"correct the crds of %s in modules.yaml", plugin.Name)
				}
			}
		}
	}
	return crds, nil
}

func parseCRDs(content []byte) ([]CRD, error) {
	var crds []CRD
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		crd := CRD{Text: document}
		if err := yaml.Unmarshal(document, &crd); err != nil {
			return nil, err
		}
		if crd.Kind != "CustomResourceDefinition" {
			continue
		}
		if crd.Metadata.Name == "" || crd.Version() == "" {
			return nil, errors.New("a CustomResourceDefinition without a name, or without a version that is stored")
		}
		crds = append(crds, crd)
	}
	if len(crds) == 0 {
		return nil, errors.New("it contains no CustomResourceDefinition")
	}
	return crds, nil
}

// WriteCRDs writes the CustomResourceDefinitions that the modules' plugins need into a directory, one file each, for
// kubectl apply -f.
func WriteCRDs(ctx context.Context, modules []Module, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	modules = slices.DeleteFunc(slices.Clone(modules), func(m Module) bool {
		return !slices.ContainsFunc(m.Plugins, func(p Plugin) bool { return len(p.CRDs) > 0 })
	})
	return unpacked(ctx, modules, func(folders map[string]string, _ []download) error {
		crds, err := readCRDs(modules, folders)
		if err != nil {
			return err
		}
		for _, found := range crds {
			for _, crd := range found {
				text := append(bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(crd.Text), []byte("---"))), '\n')
				if err := os.WriteFile(filepath.Join(folder, crd.Metadata.Name+".yaml"), text, 0o644); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
