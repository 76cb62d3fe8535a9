// SPDX-License-Identifier: Apache-2.0

// Command kube-scheduler-build does the steps of this project's build that parse or assemble a format; the scripts
// under scripts/ call it, and `make help` lists what a person runs.
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

// exitNotAvailable tells a script that a module proxy does not offer something: an outcome of its own.
const exitNotAvailable = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "kube-scheduler-build",
		Short:         "The steps of the build that parse or assemble a format",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(sourceCommand(), patchesCommand(), versionCommand(), modulesCommand(), imageCommand(), pushCommand(), releaseCommand(), newPluginCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		nextstep.Print(os.Stderr, err, "fix what is said above, then run the same command again; finished steps are kept")
		if errors.Is(err, source.ErrNotAvailable) {
			os.Exit(exitNotAvailable)
		}
		os.Exit(1)
	}
}
