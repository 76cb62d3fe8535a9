// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/source"
)

func modulesCommand() *cobra.Command {
	command := &cobra.Command{Use: "modules", Short: "Add and remove modules with plugins of other projects"}
	command.AddCommand(&cobra.Command{
		Use:   "add MODULES_FILE REPOSITORY COMMIT MODULE@VERSION PLUGIN,…",
		Short: "Find what plugins of a module need in addition to a Kubernetes tree, print it, and add it to modules.yaml",
		Args:  cobra.ExactArgs(5),
		RunE: func(command *cobra.Command, arguments []string) error {
			file, repository, commit := arguments[0], arguments[1], arguments[2]
			name, version, _ := strings.Cut(arguments[3], "@")
			plugins := strings.FieldsFunc(arguments[4], func(r rune) bool { return r == ',' || r == ' ' })
			modules, err := source.ReadModules(file)
			if err != nil {
				return err
			}
			entry, err := source.Resolve(command.Context(), modules, name, version, plugins, repository, commit)
			if err != nil {
				return err
			}
			describe(command.OutOrStdout(), entry)
			if off, err := source.ChecksumDatabaseOff(command.Context()); err != nil {
				return err
			} else if off {
				fmt.Fprintf(command.OutOrStdout(), "warning: with GOSUMDB=off, no checksum database has confirmed the sums; "+
					"next: compare them where it can be reached: go mod download -json %s\n", arguments[3])
			}
			return source.AddModule(file, entry)
		},
	}, &cobra.Command{
		Use:   "remove MODULES_FILE MODULE",
		Short: "Remove a module from modules.yaml",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, arguments []string) error {
			return source.RemoveModule(arguments[0], arguments[1])
		},
	})
	return command
}

// describe prints the modules and plugins of an entry of modules.yaml.
func describe(out io.Writer, entry source.Module) {
	for _, m := range source.All([]source.Module{entry}) {
		fmt.Fprintf(out, "%s %s: %s\n", m.Path, m.Version, strings.Join(m.Packages, ", "))
	}
	for _, plugin := range entry.Plugins {
		fmt.Fprintf(out, "plugin %s: %s.%s", plugin.Name, plugin.Package, plugin.Constructor)
		if len(plugin.CRDs) > 0 {
			fmt.Fprintf(out, ", needs %s", strings.Join(plugin.CRDs, ", "))
		}
		fmt.Fprintln(out)
	}
	if entry.Arguments != "" {
		fmt.Fprintf(out, "arguments: %s\n", entry.Arguments)
	}
}
