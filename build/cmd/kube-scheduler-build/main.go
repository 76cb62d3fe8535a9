// SPDX-License-Identifier: Apache-2.0

// Command kube-scheduler-build does the steps of this project's build that parse or assemble a format; the scripts
// under scripts/ call it, and `make help` lists what a person runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/source"
)

// exitNotAvailable tells a script that a module proxy does not offer something: an outcome of its own.
const exitNotAvailable = 3

// message takes an error apart into what went wrong and the next command, which most errors of this project end with; one
// of the system's, a full disk for one, does not.
func message(err error) (what, next string) {
	for _, separator := range []string{"; next: ", "\nnext: "} {
		if what, next, found := strings.Cut(err.Error(), separator); found {
			return what, next
		}
	}
	return err.Error(), "fix what is said above, then run the same command again; finished steps are kept"
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "kube-scheduler-build",
		Short:         "The steps of the build that parse or assemble a format",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(sourceCommand(), patchesCommand(), versionCommand(), imageCommand(), pushCommand(), releaseCommand(), newPluginCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		what, next := message(err)
		fmt.Fprintf(os.Stderr, "error: %s\nnext:  %s\n", what, next)
		if errors.Is(err, source.ErrNotAvailable) {
			os.Exit(exitNotAvailable)
		}
		os.Exit(1)
	}
}
