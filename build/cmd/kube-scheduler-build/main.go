// SPDX-License-Identifier: Apache-2.0

// Command kube-scheduler-build implements the build steps that parse or assemble a format. The scripts under scripts/
// call it; `make help` lists the commands for people.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/source"
)

// exitNotAvailable is the exit code if a module proxy does not offer a module, so that scripts can distinguish this
// case.
const exitNotAvailable = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "kube-scheduler-build",
		Short:         "Run the build steps that parse or assemble file formats",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(sourceCommand(), patchesCommand(), versionCommand(), modulesCommand(), imageCommand(), compareCommand(), pushCommand(), releaseCommand(), newPluginCommand(), vulncheckCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		nextstep.Print(os.Stderr, err, "fix the error above, then run the same command again; finished steps are kept")
		if errors.Is(err, source.ErrNotAvailable) {
			os.Exit(exitNotAvailable)
		}
		os.Exit(1)
	}
}
