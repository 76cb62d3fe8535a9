// SPDX-License-Identifier: Apache-2.0

// Command kubectl-scheduling shows why a pod is pending, or why it was placed on its node. kubectl runs it from PATH as
// the plugin kubectl scheduling.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	// OIDC is the only authentication method in client-go that no external program replaces.
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/scheduling"
)

// version is set by the release build to the version of the matching scheduler.
var version = "unreleased"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends operations that do not watch the context, such as reading a file.
	context.AfterFunc(ctx, stop)
	streams := genericclioptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := scheduling.NewCommand(version, streams).ExecuteContext(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		os.Exit(130)
	default:
		nextstep.Print(scheduling.Escaped{Writer: os.Stderr}, err, "fix the error above, then run the same command again")
		os.Exit(1)
	}
}
