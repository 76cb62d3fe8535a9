// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/source"
)

func sourceCommand() *cobra.Command {
	command := &cobra.Command{Use: "source", Short: "Create and verify the Kubernetes source tree"}
	command.AddCommand(&cobra.Command{
		Use:   "modules VERSION DIR",
		Short: "Write the tree of a release into an empty directory, from Go modules, and print its facts as KEY=VALUE lines",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			facts, err := source.FromModules(command.Context(), arguments[0], arguments[1], command.ErrOrStderr())
			if err != nil {
				return err
			}
			printFacts(command, facts)
			return nil
		},
	})
	var checksumDatabase bool
	checkout := &cobra.Command{
		Use:   "checkout VERSION DIR",
		Short: "Print the facts of a git checkout of a release, with the module sum computed from its files",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			facts, err := source.FromCheckout(command.Context(), arguments[0], arguments[1])
			if err != nil {
				return err
			}
			if checksumDatabase {
				vouched, err := source.VouchedSum(command.Context(), arguments[0])
				if err != nil {
					return fmt.Errorf("cannot verify the checkout, because the checksum of the release is not available: %w", err)
				}
				if vouched != facts.Sum {
					return nextstep.With(
						fmt.Errorf("the checkout of %s has the sum %s, but the checksum database has %s",
							arguments[0], facts.Sum, vouched),
						"do not build it; check where it comes from (KUBERNETES_GIT_URL)")
				}
			}
			printFacts(command, facts)
			return nil
		},
	}
	checkout.Flags().BoolVar(&checksumDatabase, "checksum-database", false, "fail if the sum of the checkout differs from the one in the checksum database")
	command.AddCommand(checkout, &cobra.Command{
		Use:   "carry MODULES_FILE REPOSITORY COMMIT REF",
		Short: "Add the packages of modules.yaml to a Kubernetes tree, in a new commit on top of COMMIT, and point REF to it",
		Args:  cobra.ExactArgs(4),
		RunE: func(command *cobra.Command, arguments []string) error {
			modules, err := readWanted(arguments[0])
			if err != nil {
				return err
			}
			repository, commit, ref := arguments[1], arguments[2], arguments[3]
			return source.Carry(command.Context(), modules, repository, commit, ref, command.OutOrStdout())
		},
	})
	command.AddCommand(&cobra.Command{
		Use:   "crds MODULES_FILE DIR",
		Short: "Write the CustomResourceDefinitions that the plugins of MODULES_FILE need into a directory, one file each",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			modules, err := readWanted(arguments[0])
			if err != nil {
				return err
			}
			return source.WriteCRDs(command.Context(), modules, arguments[1])
		},
	})
	return command
}

// readWanted reads the modules of modules.yaml that the environment variable MODULES selects: all if it is empty, those
// without plugins if it is "none".
func readWanted(file string) ([]source.Module, error) {
	modules, err := source.ReadModules(file)
	if err != nil {
		return nil, err
	}
	switch value := os.Getenv("MODULES"); value {
	case "":
		return modules, nil
	case "none":
		return source.WithoutPlugins(modules), nil
	default:
		return nil, nextstep.With(fmt.Errorf("MODULES=%s is unknown: the only value is none", value),
			"make image MODULES=none")
	}
}

// printFacts prints facts in the form that scripts read with `while IFS='=' read -r key value`.
func printFacts(command *cobra.Command, facts source.Facts) {
	fmt.Fprintf(command.OutOrStdout(), "commit=%s\nsum=%s\ntime=%d\n", facts.Commit, facts.Sum, facts.Time.Unix())
}
