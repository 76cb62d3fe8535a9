// SPDX-License-Identifier: Apache-2.0

// Command kube-scheduler-run demonstrates a kube-scheduler (`make run`): it starts a control plane on loopback with
// fake nodes, creates pods, and prints the node and the profile of each.
//
// Exit codes: 0 if exactly the expected pods are bound, each by the profile that it requests; 1 if not, or after an
// error; 128 plus the signal's number after a signal, so 130 for Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/build/localcluster/run"
)

// interrupted is the cancellation cause after a signal.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string { return "ended by signal: " + i.signal.String() }

func main() {
	ctx := untilSignal()
	err := newCommand().ExecuteContext(ctx)
	var by interrupted
	switch {
	case err == nil:
	case errors.As(err, &by):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(128 + int(by.signal))
	default:
		fmt.Fprintf(os.Stderr, "kube-scheduler-run: %v\n", err)
		os.Exit(1)
	}
}

// untilSignal returns a context that the first Ctrl-C, SIGTERM or SIGHUP cancels. A second signal ends the program at
// once. The kernel then ends its children, and the next run removes its directory.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	watched := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // it is ignored under nohup
		watched = append(watched, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, watched...)
	go func() {
		received := <-signals
		signal.Reset(watched...)
		cancel(interrupted{received.(syscall.Signal)})
	}()
	return ctx
}

func newCommand() *cobra.Command {
	var o run.Options
	command := &cobra.Command{
		Use:   "kube-scheduler-run [flags] [-- COMMAND...]",
		Short: "Start a local control plane with fake nodes and show where a scheduler places pods",
		Long: "Start etcd, kube-apiserver, fake nodes and a kube-scheduler on loopback, create pods, " +
			"and print where each of them went and which profile bound it. Everything is removed at the end. " +
			"COMMAND builds the kube-scheduler while the rest starts.",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, build []string) error {
			o.Build = build
			o.Out = command.OutOrStdout()
			return o.Run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.KubeAPIServer, "kube-apiserver", "", "the kube-apiserver `FILE` to run")
	flags.StringVar(&o.KubeScheduler, "kube-scheduler", "", "the kube-scheduler `FILE` to run")
	flags.StringVar(&o.Etcd, "etcd", "", "the etcd `FILE` to run")
	flags.StringVar(&o.KWOK, "kwok", "", "the kwok `FILE` to run")
	flags.StringVar(&o.Config, "config", "", "the scheduler's configuration `FILE` (KubeSchedulerConfiguration); it is not changed")
	flags.StringVar(&o.Extender, "scheduler-extender", "", "the scheduler-extender `FILE` to run, if an extender is started")
	flags.StringVar(&o.ExtenderConfig, "extender-config", "", "start an extender with the plugins of this configuration `FILE`, "+
		"for all extenders on loopback in --config; none: start none, not even with --default-extender-config")
	flags.StringVar(&o.DefaultExtenderConfig, "default-extender-config", "", "without --extender-config, start an extender with the "+
		"plugins of this configuration `FILE` for those in --config at "+localcluster.DocumentedExtender+", if there are any")
	flags.StringVar(&o.ExtenderProfile, "extender-profile", "", "the `NAME` of the profile that the extender serves, "+
		"if its configuration has several")
	flags.StringVar(&o.Prometheus, "prometheus", "", "the prometheus `FILE` to run, if NodeLoad in --config has an endpoint on "+
		"loopback at which nothing listens")
	flags.IntVar(&o.Nodes, "nodes", 5, "the number of fake nodes")
	flags.IntVar(&o.Pods, "pods", 10, "the number of pods; they ask for the profiles in turn")
	flags.StringArrayVar(&o.Manifests, "manifest", nil, "also create the pods, nodes and custom objects of this `FILE`, the pods once "+
		"those of the previous file run; may be given more than once")
	flags.StringArrayVar(&o.Objects, "objects", nil, "create the objects of this `FILE`, or of the files in this directory, before the "+
		"scheduler starts: CustomResourceDefinitions, RBAC; may be given more than once")
	flags.DurationVar(&o.Timeout, "timeout", time.Minute, "how long to wait for the pods to be placed")
	flags.StringVar(&o.ShowLog, "show-log", "", "print the lines of the scheduler's log that contain this `TEXT`, after the table")
	flags.BoolVar(&o.Keep, "keep", false, "keep everything running after the table, until Ctrl-C")
	for _, name := range []string{"kube-apiserver", "kube-scheduler", "etcd", "kwok", "config"} {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is not defined above
		}
	}
	return command
}
