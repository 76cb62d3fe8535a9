package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/patches"
)

func versionCommand() *cobra.Command {
	var kubernetes, suffix, sum, goVersion string
	command := &cobra.Command{
		Use:   "version PATCHES_DIR",
		Short: "Print the version of a build: upstream's, a suffix, and a hash of what is in it",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, err := patches.Read(arguments[0])
			if err != nil {
				return err
			}
			version, err := patches.Version(kubernetes, suffix, sum, goVersion, series)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), version)
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&kubernetes, "kubernetes", "", "upstream's tag")
	flags.StringVar(&suffix, "suffix", "fork", "what stands between + and the hash; letters and digits")
	flags.StringVar(&sum, "sum", "", "the h1: sum of the module k8s.io/kubernetes")
	flags.StringVar(&goVersion, "go", "", "the Go version")
	for _, flag := range []string{"kubernetes", "sum", "go"} {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err)
		}
	}
	return command
}
