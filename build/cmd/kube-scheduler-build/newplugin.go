// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/newplugin"
)

func newPluginCommand() *cobra.Command {
	command := &cobra.Command{Use: "new-plugin", Short: "Create a plugin, add it to the registry, or remove it from there"}
	command.AddCommand(&cobra.Command{
		Use:   "check NAME POINTS",
		Short: "Check the name and the extension points of a new plugin",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			return newplugin.Check(arguments[0], points(arguments[1]))
		},
	}, &cobra.Command{
		Use:   "register REGISTRY_FILE NAME",
		Short: "Add a plugin to the source of the registry",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			return edit(arguments[0], arguments[1], newplugin.Register)
		},
	}, &cobra.Command{
		Use:   "unregister REGISTRY_FILE NAME",
		Short: "Remove a plugin from the source of the registry, if it is there",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			return edit(arguments[0], arguments[1], newplugin.Unregister)
		},
	}, &cobra.Command{
		Use:   "write PLUGINS_DIR NAME POINTS",
		Short: "Write the directory of a plugin for the given extension points, with a test to complete",
		Args:  cobra.ExactArgs(3),
		RunE: func(command *cobra.Command, arguments []string) error {
			return newplugin.Write(arguments[0], arguments[1], points(arguments[2]))
		},
	})
	return command
}

// edit applies change to the registry's source file.
func edit(file, plugin string, change func(registry []byte, plugin string) ([]byte, error)) error {
	registry, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if registry, err = change(registry, plugin); err != nil {
		return err
	}
	return os.WriteFile(file, registry, 0o644)
}

func points(list string) []string {
	return strings.FieldsFunc(strings.ToLower(list), func(r rune) bool { return r == ',' || r == ' ' })
}
