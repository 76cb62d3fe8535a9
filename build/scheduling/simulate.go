// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/nextstep"
)

// simulator is the program behind `kubectl scheduling simulate`. It is built in the scheduler's tree, for Linux.
const simulator = "kube-scheduler-simulate"

func (o *options) simulateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "simulate",
		Short: "Schedule a snapshot or a trace in virtual time, with one or several configurations (" + simulator + ")",
		// The program has flags of its own, --help among them, and completes them.
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, arguments []string) error {
			return simulate(arguments)
		},
		ValidArgsFunction: func(_ *cobra.Command, arguments []string, last string) ([]string, cobra.ShellCompDirective) {
			_ = simulate(slices.Concat([]string{cobra.ShellCompRequestCmd}, arguments, []string{last}))
			return nil, cobra.ShellCompDirectiveError
		},
	}
}

// simulate replaces this process with the simulator. It only returns if it cannot.
func simulate(arguments []string) error {
	own, err := os.Executable()
	if err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	if err != nil {
		return err
	}
	program, err := exec.LookPath(filepath.Join(filepath.Dir(own), simulator))
	if err != nil {
		program, err = exec.LookPath(simulator)
	}
	if err == nil {
		err = syscall.Exec(program, append([]string{program}, arguments...), os.Environ())
	} else {
		err = fmt.Errorf("it is neither in %s nor in PATH", filepath.Dir(own))
	}
	return nextstep.With(fmt.Errorf("%s cannot be run: %w", simulator, err),
		"on Linux, copy it there from the release bundle that kubectl-scheduling is from, or compile it: make simulate")
}
