// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openvex/go-vex/pkg/vex"
	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/vulncheck"
)

// vulncheckCommand returns the command behind `make vulncheck`.
func vulncheckCommand() *cobra.Command {
	var govulncheck, database, tree, project, version, statements string
	var write, report bool
	command := &cobra.Command{
		Use:   "vulncheck",
		Short: "Look for known vulnerabilities in the programs of a release",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			inTree := []string{"-mod=vendor", "-tags=selinux,notest"}
			programs := []vulncheck.Program{
				{Name: "kube-scheduler", Directory: tree, Package: "./cmd/kube-scheduler", Flags: inTree},
				{Name: "kube-scheduler-simulate", Directory: tree, Package: "./cmd/kube-scheduler-simulate", Flags: inTree},
				{Name: "kube-log-runner", Directory: tree, Package: "./vendor/k8s.io/component-base/logs/kube-log-runner/kube-log-runner.go", Flags: inTree},
				{Name: "kube-scheduler-swap", Directory: filepath.Join(project, "build"), Package: "./cmd/kube-scheduler-swap"},
				{Name: "kubectl-scheduling", Directory: filepath.Join(project, "build"), Package: "./cmd/kubectl-scheduling"},
				{Name: "scheduler-extender", Directory: filepath.Join(project, "build/extender"), Package: "./cmd/scheduler-extender"},
			}
			output := command.OutOrStdout()
			var explained, left []vulncheck.Found
			for _, program := range programs {
				found, err := vulncheck.Scan(command.Context(), govulncheck, database, program)
				if err != nil {
					return err
				}
				fine, open, err := vulncheck.Explain(command.Context(), program, version, found)
				if err != nil {
					return err
				}
				called := 0
				for _, f := range open {
					if f.Function != "" {
						called++
					}
				}
				fmt.Fprintf(output, "vulncheck: %s: by symbol %d, by package %d, in modules without their code %d\n",
					program.Name, called, len(open)-called, len(fine))
				explained, left = append(explained, fine...), append(left, open...)
			}
			for _, f := range left {
				fmt.Fprintln(output, f)
			}
			if report {
				for _, f := range explained {
					fmt.Fprintln(output, f)
				}
				return nil
			}
			if len(left) > 0 {
				return nextstep.With(fmt.Errorf("%d known vulnerabilities are in the programs, listed above", len(left)),
					"raise the module in modules.yaml, build/go.mod or build/extender/go.mod, or cut its import with a patch: docs/modules.md")
			}
			if write {
				document, err := vulncheck.Document(explained, time.Now().UTC().Truncate(time.Second))
				if err != nil {
					return err
				}
				var text bytes.Buffer
				if err := document.ToJSON(&text); err != nil {
					return err
				}
				return os.WriteFile(statements, text.Bytes(), 0o644)
			}
			document, err := vex.Load(statements)
			if err != nil {
				return nextstep.With(fmt.Errorf("cannot read the statements: %w", err), "make vulncheck WRITE=yes")
			}
			added, gone := vulncheck.Compare(document, explained)
			for _, f := range added {
				fmt.Fprintln(output, f)
			}
			if len(gone) > 0 {
				return nextstep.With(fmt.Errorf("%s has statements for what was not found: %s", statements, strings.Join(gone, ", ")),
					"check that the database is complete; if a module has changed: make vulncheck WRITE=yes")
			}
			if len(added) > 0 {
				return nextstep.With(fmt.Errorf("%d known vulnerabilities of modules, listed above, have no statement in %s", len(added), statements),
					"make vulncheck WRITE=yes, and read what it changed")
			}
			fmt.Fprintf(output, "vulncheck: by symbol 0, by package 0; %d statements in %s\n", len(document.Statements), statements)
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&govulncheck, "govulncheck", "", "path of govulncheck")
	flags.StringVar(&database, "database", "", "URL of the database; the Go project's if empty")
	flags.StringVar(&tree, "tree", "", "the patched tree")
	flags.StringVar(&project, "project", "", "this project's directory")
	flags.StringVar(&version, "kubernetes", "", "upstream's tag")
	flags.StringVar(&statements, "statements", "", "the OpenVEX document with the statements")
	flags.BoolVar(&report, "report", false, "only print what is found")
	flags.BoolVar(&write, "write", false, "write the statements instead of comparing them")
	return command
}
