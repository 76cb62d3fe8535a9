// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/patches"
	"kube-scheduler-fork/build/source"
)

func patchesCommand() *cobra.Command {
	command := &cobra.Command{Use: "patches", Short: "Check and describe the patch series"}
	command.AddCommand(&cobra.Command{
		Use:   "lint PATCHES_DIR",
		Short: "Check the names, subjects, trailers and files of the patches",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, err := patches.Read(arguments[0])
			if err != nil {
				return err
			}
			if faults := patches.Lint(series); len(faults) > 0 {
				return nextstep.With(fmt.Errorf("%s", strings.Join(faults, "\n")),
					"fix the messages; see 'Edit' in docs/patches.md")
			}
			fmt.Fprintf(command.OutOrStdout(), "patches: %d patches are valid\n", len(series))
			return nil
		},
	}, &cobra.Command{
		Use:   "readme PATCHES_DIR MODULES_FILE",
		Short: "Print patches/README.md, which describes the series and the modules that are added before it",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, err := patches.Read(arguments[0])
			if err != nil {
				return err
			}
			modules, err := source.ReadModules(arguments[1])
			if err != nil {
				return err
			}
			page, err := patches.Readme(series, modules)
			if err != nil {
				return err
			}
			_, err = command.OutOrStdout().Write(page)
			return err
		},
	})
	command.AddCommand(&cobra.Command{
		Use:   "report PATCHES_DIR COMMIT NAME OBJECTS...",
		Short: "Print how each patch applies to a commit of Kubernetes; OBJECTS are the object directories of git repositories",
		Args:  cobra.MinimumNArgs(4),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, err := patches.Read(arguments[0])
			if err != nil {
				return err
			}
			report, err := patches.Report(command.Context(), arguments[0], series, arguments[3:], arguments[1], arguments[2])
			fmt.Fprint(command.OutOrStdout(), report)
			return err
		},
	})
	command.AddCommand(&cobra.Command{
		Use:   "list PATCHES_DIR MODULES_FILE",
		Short: "Print the patches of the series in order, without those for modules that are not in MODULES_FILE",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, modules, err := readSeries(arguments[0], arguments[1])
			if err != nil {
				return err
			}
			for _, patch := range patches.Carried(series, modules) {
				fmt.Fprintln(command.OutOrStdout(), filepath.Join(arguments[0], patch.Name))
			}
			return nil
		},
	})
	return command
}

// readSeries reads the inputs of a build: the patches, and the modules that MODULES selects.
func readSeries(patchesDir, modulesFile string) ([]patches.Patch, []source.Module, error) {
	series, err := patches.Read(patchesDir)
	if err != nil {
		return nil, nil, err
	}
	modules, err := readWanted(modulesFile)
	return series, modules, err
}

func versionCommand() *cobra.Command {
	var kubernetes, suffix, sum, goVersion string
	command := &cobra.Command{
		Use:   "version PATCHES_DIR MODULES_FILE",
		Short: "Print the version of a build: upstream's tag, a suffix, and a hash of the inputs",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, modules, err := readSeries(arguments[0], arguments[1])
			if err != nil {
				return err
			}
			version, err := patches.Version(kubernetes, suffix, sum, goVersion, modules, series)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), version)
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&kubernetes, "kubernetes", "", "upstream's tag")
	flags.StringVar(&suffix, "suffix", "fork", "text between + and the hash: letters and digits")
	flags.StringVar(&sum, "sum", "", "the h1: sum of the module k8s.io/kubernetes")
	flags.StringVar(&goVersion, "go", "", "the Go version")
	for _, flag := range []string{"kubernetes", "sum", "go"} {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err)
		}
	}
	return command
}
