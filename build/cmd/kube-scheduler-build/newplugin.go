// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/newplugin"
)

func newPluginCommand() *cobra.Command {
	var check bool
	command := &cobra.Command{
		Use:   "new-plugin PLUGINS_DIR NAME POINTS",
		Short: "Begin a plugin at some extension points, with a test to fill in; prints its package",
		Args:  cobra.ExactArgs(3),
		RunE: func(command *cobra.Command, arguments []string) error {
			points := strings.FieldsFunc(strings.ToLower(arguments[2]), func(r rune) bool { return r == ',' || r == ' ' })
			if check {
				return newplugin.Check(arguments[1], points)
			}
			if err := newplugin.Write(arguments[0], arguments[1], points); err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), newplugin.Package(arguments[1]))
			return nil
		},
	}
	command.Flags().BoolVar(&check, "check", false, "only check the name and the points")
	return command
}
