package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/newplugin"
)

func newPluginCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new-plugin PLUGINS_DIR NAME POINTS",
		Short: "Begin a plugin at some extension points, with a test to fill in; prints its package",
		Args:  cobra.ExactArgs(3),
		RunE: func(command *cobra.Command, arguments []string) error {
			points := strings.FieldsFunc(strings.ToLower(arguments[2]), func(r rune) bool { return r == ',' || r == ' ' })
			if err := newplugin.Write(arguments[0], arguments[1], points); err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), newplugin.Package(arguments[1]))
			return nil
		},
	}
}
