// SPDX-License-Identifier: Apache-2.0

// Command scheduler-extender serves this project's plugins to a scheduler that does not have them, as a scheduler
// extender.
//
// Exit codes: 0 ended by a signal, after the requests that had begun; 1 it could not start, or not go on.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"kube-scheduler-fork/build/extender"
)

const (
	// defaultRequestTimeout leaves a second of the 5 that a scheduler waits by default.
	defaultRequestTimeout = 4 * time.Second
	// defaultMaxBodyBytes is enough for some 2,000 whole nodes of 16 KiB, as nodes with 50 images are. Of 5,000 nodes a
	// scheduler looks at, and sends, 500 at a time by default.
	defaultMaxBodyBytes = 32 << 20
)

// version is set by the release build to the version of the scheduler with the same plugins.
var version = "unreleased"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "scheduler-extender: %v\n", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o extender.Options
	command := &cobra.Command{
		Use:   "scheduler-extender",
		Short: "Serve this project's plugins to a stock kube-scheduler",
		Long: "Serve the Filter and Score plugins of a scheduler's configuration to a scheduler that does not have them, as an " +
			"extender: filter, prioritize, preempt and bind.",
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			o.Out = command.OutOrStdout()
			return extender.Run(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Config, "config", "", "the KubeSchedulerConfiguration `FILE` whose plugins are served")
	flags.StringVar(&o.Profile, "profile", "", "the schedulerName of the profile to serve; not needed if there is only one")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "",
		"the kubeconfig `FILE`; the default is clientConnection.kubeconfig, then the service account of the pod")
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:8888", "the `HOST:PORT` to listen on")
	flags.StringVar(&o.CertificateFile, "tls-cert-file", "",
		"the PEM `FILE` with the certificate to serve with; read again when it changes")
	flags.StringVar(&o.KeyFile, "tls-private-key-file", "", "the PEM `FILE` with its key")
	flags.StringVar(&o.ClientCAFile, "client-ca-file", "",
		"the PEM `FILE` with the authorities that sign client certificates; "+
			"a client may bind pods, so do not use the cluster's authority")
	flags.BoolVar(&o.Bind, "bind", false, "also bind pods, for a scheduler whose configuration has bindVerb")
	flags.DurationVar(&o.RequestTimeout, "request-timeout", defaultRequestTimeout,
		"the time limit of a request; less than the scheduler's httpTimeout")
	flags.Int64Var(&o.MaxBodyBytes, "max-body-bytes", defaultMaxBodyBytes, "the size limit of a request")
	logging := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(logging)
	flags.AddGoFlag(logging.Lookup("v"))
	if err := command.MarkFlagRequired("config"); err != nil {
		panic(err) // a flag that was not defined above
	}
	return command
}
