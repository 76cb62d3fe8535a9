// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// AddModule appends an entry to modules.yaml, or replaces the module's existing entry. Comments are kept.
func AddModule(file string, entry Module) error {
	text, err := sigsyaml.Marshal(entry)
	if err != nil {
		return err
	}
	added, err := yaml.Parse(string(text))
	if err != nil {
		return err
	}
	inOrder(added)
	return editModules(file, file, func(modules *yaml.Node) error {
		at := find(modules, entry.Path)
		if at < 0 {
			modules.Content = append(modules.Content, added.YNode())
			return nil
		}
		added.YNode().HeadComment = modules.Content[at].HeadComment
		modules.Content[at] = added.YNode()
		return nil
	})
}

// RemoveModule removes the entry of a module with plugins, and the comment above it, from modules.yaml.
func RemoveModule(file, path string) error {
	return editModules(file, file, func(modules *yaml.Node) error {
		at := find(modules, path)
		if at < 0 {
			return nextstep.With(fmt.Errorf("%s has no module %s", file, path),
				"choose MODULE from: grep '^- module: ' %s", file)
		}
		if yaml.NewRNode(modules.Content[at]).Field("plugins") == nil {
			return nextstep.With(
				fmt.Errorf("%s has no plugins of %s, because the project's own plugins import that module", file, path),
				"if they no longer import it, edit %s", file)
		}
		modules.Content = slices.Delete(modules.Content, at, at+1)
		return nil
	})
}

// CopyModules writes a copy of modules.yaml that has only the wanted modules.
func CopyModules(file, to string, wanted []Module) error {
	return editModules(file, to, func(modules *yaml.Node) error {
		modules.Content = slices.DeleteFunc(modules.Content, func(entry *yaml.Node) bool {
			return !slices.ContainsFunc(wanted, func(m Module) bool { return m.Path == pathOf(entry) })
		})
		return nil
	})
}

// find returns the index of a module's entry, or -1.
func find(modules *yaml.Node, path string) int {
	return slices.IndexFunc(modules.Content, func(entry *yaml.Node) bool { return pathOf(entry) == path })
}

func pathOf(entry *yaml.Node) string { return yaml.NewRNode(entry).Field("module").Value.YNode().Value }

// editModules edits the list in modules.yaml, checks the result, and replaces another or the same file atomically.
func editModules(file, to string, edit func(modules *yaml.Node) error) error {
	if _, err := ReadModules(file); err != nil {
		return err
	}
	document, err := yaml.ReadFile(file)
	if err != nil {
		return err
	}
	modules, err := document.Pipe(yaml.LookupCreate(yaml.SequenceNode, "modules"))
	if err != nil {
		return err
	}
	// An empty list has flow style, which its first entry would inherit.
	modules.YNode().Style = 0
	if err := edit(modules.YNode()); err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoderWithOptions(&text, &yaml.EncoderOptions{SeqIndent: yaml.CompactSequenceStyle})
	if err := errors.Join(encoder.Encode(document.Document()), encoder.Close()); err != nil {
		return err
	}
	if _, err := parseModules(text.Bytes()); err != nil {
		return nextstep.With(fmt.Errorf("%s would be invalid with this change, and is unchanged: %w", file, err),
			"make remove-module for the module in conflict, or choose other PLUGINS")
	}
	edited := to + ".new"
	defer os.Remove(edited)
	if err := os.WriteFile(edited, text.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(edited, to)
}

// keys are the keys of entries, in reading order.
var keys = []string{
	"module", "version", "sum", "plugins", "arguments", "packages", "dependencies",
	"name", "package", "constructor", "crds",
}

// inOrder sorts the keys of an entry.
func inOrder(node *yaml.RNode) {
	content := node.YNode().Content
	if node.YNode().Kind == yaml.MappingNode {
		var sorted []*yaml.Node
		for _, key := range keys {
			for i := 0; i < len(content); i += 2 {
				if content[i].Value == key {
					sorted = append(sorted, content[i], content[i+1])
				}
			}
		}
		node.YNode().Content = sorted
	}
	for _, child := range content {
		inOrder(yaml.NewRNode(child))
	}
}
