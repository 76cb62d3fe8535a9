// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/patches"
	"kube-scheduler-fork/build/source"
)

func patchesCommand() *cobra.Command {
	command := &cobra.Command{Use: "patches", Short: "Make, check and describe the patch series"}
	var kubernetes, modulesFile string
	making := &cobra.Command{
		Use:   "make PATCHES PLUGINS DIRECTORY",
		Short: "Write the series as *.patch files into a directory, and remove the patches there that are no longer made",
		Args:  cobra.ExactArgs(3),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, err := patches.ReadFolders(arguments[0], arguments[1])
			if err != nil {
				return err
			}
			modules, err := readWanted(modulesFile)
			if err != nil {
				return err
			}
			series = patches.For(kubernetes, patches.Carried(series, modules))
			changed, err := patches.Make(arguments[2], series)
			if err != nil {
				return err
			}
			if len(changed) == 0 {
				fmt.Fprintf(command.OutOrStdout(), "patches: the %d patches are up to date: skipped\n", len(series))
				return nil
			}
			fmt.Fprintf(command.OutOrStdout(), "patches: %d of %d patches written or removed in %s\n", len(changed), len(series), arguments[2])
			return nil
		},
	}
	making.Flags().StringVar(&kubernetes, "kubernetes", "", "upstream's tag; patches that are left out before a later one are not written")
	making.Flags().StringVar(&modulesFile, "modules", "", "modules.yaml; patches for modules that it does not have are not written")
	require(making, "kubernetes", "modules")
	command.AddCommand(making, &cobra.Command{
		Use:   "export PATCHES STEP",
		Short: "Write a patch in the form of git format-patch, from standard input, as the folder of a step",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			content, err := io.ReadAll(command.InOrStdin())
			if err != nil {
				return err
			}
			return patches.Export(arguments[0], arguments[1], content)
		},
	}, &cobra.Command{
		Use:   "lint PATCHES PLUGINS",
		Short: "Check the names, subjects, trailers and files of the patches",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, err := patches.ReadFolders(arguments[0], arguments[1])
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
		Use:   "readme PATCHES PLUGINS MODULES_FILE",
		Short: "Print patches/README.md, which describes the series and the modules that are added before it",
		Args:  cobra.ExactArgs(3),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, err := patches.ReadFolders(arguments[0], arguments[1])
			if err != nil {
				return err
			}
			modules, err := source.ReadModules(arguments[2])
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
		Use:   "report PATCHES PLUGINS COMMIT NAME OBJECTS...",
		Short: "Print how each patch applies to a commit of Kubernetes; OBJECTS are the object directories of git repositories",
		Args:  cobra.MinimumNArgs(5),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, err := patches.ReadFolders(arguments[0], arguments[1])
			if err != nil {
				return err
			}
			report, err := patches.Report(command.Context(), series, arguments[4:], arguments[2], arguments[3])
			fmt.Fprint(command.OutOrStdout(), report)
			return err
		},
	})
	command.AddCommand(&cobra.Command{
		Use:   "list PATCHES_DIR MODULES_FILE KUBERNETES",
		Short: "Print the patches of a directory in order, without those that are not for MODULES_FILE or the release KUBERNETES",
		Args:  cobra.ExactArgs(3),
		RunE: func(command *cobra.Command, arguments []string) error {
			series, modules, err := readSeries(arguments[0], arguments[1])
			if err != nil {
				return err
			}
			series = patches.For(arguments[2], patches.Carried(series, modules))
			if len(series) == 0 {
				return nextstep.With(fmt.Errorf("no patch in %s is for %s and these modules", arguments[0], arguments[2]), "make patches")
			}
			for _, patch := range series {
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
	require(command, "kubernetes", "sum", "go")
	return command
}
