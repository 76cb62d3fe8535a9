// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/newplugin"
)

func newPluginCommand() *cobra.Command {
	command := &cobra.Command{Use: "new-plugin", Short: "Begin a plugin: register it, and write its folder"}
	command.AddCommand(&cobra.Command{
		Use:   "register REGISTRY_FILE NAME POINTS",
		Short: "Add a plugin to the source of the registry; a name or points that cannot be are refused first",
		Args:  cobra.ExactArgs(3),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := newplugin.Check(arguments[1], points(arguments[2])); err != nil {
				return err
			}
			registry, err := os.ReadFile(arguments[0])
			if err != nil {
				return err
			}
			if registry, err = newplugin.Register(registry, arguments[1]); err != nil {
				return err
			}
			return os.WriteFile(arguments[0], registry, 0o644)
		},
	}, &cobra.Command{
		Use:   "write PLUGINS_DIR NAME POINTS",
		Short: "Write the folder of a plugin at some extension points, with a test to fill in",
		Args:  cobra.ExactArgs(3),
		RunE: func(command *cobra.Command, arguments []string) error {
			return newplugin.Write(arguments[0], arguments[1], points(arguments[2]))
		},
	})
	return command
}

func points(list string) []string {
	return strings.FieldsFunc(strings.ToLower(list), func(r rune) bool { return r == ',' || r == ' ' })
}
