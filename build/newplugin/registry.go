// SPDX-License-Identifier: Apache-2.0

package newplugin

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strconv"

	"kube-scheduler-fork/build/nextstep"
)

// pluginsPath begins the import paths of all plugins in the tree.
const pluginsPath = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/"

// Register adds a plugin to the source of the registry: an import, and an entry after the last one.
func Register(registry []byte, name string) ([]byte, error) {
	fileSet := token.NewFileSet()
	file, err := parser.ParseFile(fileSet, "registry.go", registry, parser.SkipObjectResolution)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the registry cannot be read: %w", err), "make tree")
	}
	imported := strconv.Quote(pluginsPath + Package(name))
	var imports *ast.GenDecl
	var entries *ast.CompositeLit
	for node := range ast.Preorder(file) {
		switch node := node.(type) {
		case *ast.ImportSpec:
			if node.Path.Value == imported {
				// scripts/new-plugin.sh has already refused the names of this project's own plugins.
				return nil, nextstep.With(fmt.Errorf("upstream already has a plugin %s", Package(name)),
					"choose another NAME")
			}
		case *ast.GenDecl:
			if node.Tok == token.IMPORT && node.Lparen.IsValid() && imports == nil {
				imports = node
			}
		case *ast.CompositeLit:
			kind, isSelector := node.Type.(*ast.SelectorExpr)
			if isSelector && kind.Sel.Name == "Registry" && len(node.Elts) > 0 {
				entries = node
			}
		}
	}
	if imports == nil || entries == nil {
		return nil, nextstep.With(errors.New("the registry has no list of imports or no runtime.Registry{…} with entries"),
			"add the plugin by hand: docs/patches.md, 'Edit'")
	}
	// Insert text and run gofmt: go/printer would move comments near nodes without a position.
	opened, last := fileSet.Position(imports.Lparen).Offset+1, fileSet.Position(entries.Elts[len(entries.Elts)-1].End()).Offset
	var source []byte
	source = append(source, registry[:opened]...)
	source = append(source, "\n\t"+imported...)
	source = append(source, registry[opened:last]...)
	source = fmt.Appendf(source, ",\n\t\t%[1]s.Name: %[1]s.New", Package(name))
	source = append(source, registry[last:]...)
	return format.Source(source)
}

// Unregister removes the lines that Register adds. It changes nothing if the plugin is not registered.
func Unregister(registry []byte, name string) ([]byte, error) {
	fileSet := token.NewFileSet()
	file, err := parser.ParseFile(fileSet, "registry.go", registry, parser.SkipObjectResolution)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the registry cannot be read: %w", err), "make tree")
	}
	imported := strconv.Quote(pluginsPath + Package(name))
	var lines []ast.Node
	for node := range ast.Preorder(file) {
		switch node := node.(type) {
		case *ast.ImportSpec:
			if node.Path.Value == imported {
				lines = append(lines, node)
			}
		case *ast.KeyValueExpr:
			if key, ok := node.Key.(*ast.SelectorExpr); ok && isIdent(key.X, Package(name)) {
				lines = append(lines, node)
			}
		}
	}
	var source []byte
	kept := 0
	for _, node := range lines {
		begin, end := fileSet.Position(node.Pos()).Offset, fileSet.Position(node.End()).Offset
		begin = bytes.LastIndexByte(registry[:begin], '\n') + 1
		end += bytes.IndexByte(registry[end:], '\n') + 1
		source = append(source, registry[kept:begin]...)
		kept = end
	}
	source, err = format.Source(append(source, registry[kept:]...))
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the registry without %s cannot be read: %w", name, err),
			"remove it by hand: docs/patches.md, 'Edit'")
	}
	return source, nil
}

func isIdent(expression ast.Expr, name string) bool {
	ident, ok := expression.(*ast.Ident)
	return ok && ident.Name == name
}
