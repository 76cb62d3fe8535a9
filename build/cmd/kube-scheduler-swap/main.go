// SPDX-License-Identifier: Apache-2.0

// Command kube-scheduler-swap replaces the kube-scheduler of a kubeadm control-plane node and restores the original. It
// is one static binary; on the node it needs only the command-line tool of the container runtime.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap"
	"kube-scheduler-fork/build/swap/record"
)

// version is set by the release build to the version of the matching scheduler.
var version = "unreleased"

// errProblems makes check and status exit with 1 after they have printed the findings.
var errProblems = errors.New("problems were found")

func main() {
	// A lost connection (SIGHUP) is handled like Ctrl-C. A closed output (SIGPIPE) must not end a run half-way.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		<-ctx.Done()
		// The first signal undoes the change; the second one kills the process.
		stop()
	}()
	// The scheduler may run as a user other than root, and must be able to read its image when it is unpacked for the
	// check. Files with secrets set their own mode.
	syscall.Umask(0o022)
	options := swap.Options{Output: os.Stderr}
	root := &cobra.Command{
		Use:   "kube-scheduler-swap",
		Short: "Replace the kube-scheduler of this kubeadm control-plane node, or restore it",
		Long: `Replaces the kube-scheduler of this kubeadm control-plane node, or restores it.

  kube-scheduler-swap check   --archive kube-scheduler.tar --config config.yaml
  kube-scheduler-swap install --archive kube-scheduler.tar --config config.yaml
  kube-scheduler-swap status
  kube-scheduler-swap rollback
  kube-scheduler-swap uninstall

install waits until the new scheduler works, and restores the old one if it does not. With several control-plane nodes,
install on one after the other, and last on the node that holds the lease.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&options.Manifest, "manifest", "", "the scheduler's manifest (default: kube-scheduler.yaml in the directory that kubelet watches)")
	flags.StringVar(&options.Kubeconfig, "kubeconfig", swap.DefaultKubeconfig, "the administrator's credentials")
	flags.StringVar(&options.State, "state", record.StateDirectory, "directory for backups and configurations, outside the one that kubelet watches")
	flags.DurationVar(&options.Timeout, "timeout", time.Minute, "how long the new scheduler may take to work after kubelet has started its pod")
	root.AddCommand(checkCommand(&options), installCommand(&options), rollbackCommand(&options), uninstallCommand(&options), statusCommand(&options), diffCommand(&options), patchCommand(&options))
	err := root.ExecuteContext(ctx)
	if errors.Is(err, errProblems) {
		os.Exit(1)
	}
	if err != nil {
		nextstep.Print(os.Stderr, err, "fix the problem above, then run the same command again")
		os.Exit(1)
	}
}

// work is what a command does with the opened tool.
type work func(ctx context.Context, command *cobra.Command, tool *swap.Tool) error

// run returns a function that opens the tool and runs a command without arguments.
func run(options *swap.Options, do work) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		tool, err := swap.Open(command.Context(), *options)
		if err != nil {
			return err
		}
		defer tool.Close()
		return do(command.Context(), command, tool)
	}
}

// look is like run, for a read-only command. A signal ends it, even while it waits for a file.
func look(options *swap.Options, do work) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, arguments []string) error {
		return unlessEnded(command.Context(), 3*time.Second, func() error { return run(options, do)(command, arguments) })
	}
}

// unlessEnded runs work. Once ctx ends, it waits for work's cleanup for the time while, and then abandons work.
func unlessEnded(ctx context.Context, while time.Duration, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(while):
		return nextstep.With(errors.New("interrupted; nothing was changed"), "run the same command again")
	}
}

// requestFlags adds the flags of check, install and diff.
func requestFlags(command *cobra.Command, request *swap.Request) {
	flags := command.Flags()
	flags.StringVar(&request.Archive, "archive", "", "image archive to load: kube-scheduler.tar")
	flags.StringVar(&request.VerifyKey, "verify-key", "", "SSH public key: refuse an archive that is not listed in a SHA256SUMS that this key has signed")
	flags.StringVar(&request.Image, "image", "", "name of an image that is already loaded (default: the image of the current swap)")
	flags.StringVar(&request.Config, "config", "", "KubeSchedulerConfiguration (default: that of the current swap; without one, the scheduler's own defaults)")
	flags.StringSliceVar(&request.Mounts, "mount", nil,
		"directories with files that the configuration names, which the scheduler gets at the same paths; "+
			"none: no directory (default: those of the current swap)")
	flags.BoolVar(&request.Hardened, "hardened", false, "take all capabilities, privilege escalation and writes to the image from the scheduler, and root if its files "+
		"can be read without (default: as now)")
	flags.BoolVar(&request.AdoptFlags, "adopt-flags", false, "copy flags of the manifest that a configuration overrides into the configuration")
	flags.StringSliceVar(&request.Accept, "accept", nil, "problems that check reports and that you accept: "+strings.Join(swap.Acceptable, ", "))
}

// newCommand returns a command without arguments.
func newCommand(use, short string, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: run}
}

func checkCommand(options *swap.Options) *cobra.Command {
	var request swap.Request
	whole := look(options, func(ctx context.Context, command *cobra.Command, tool *swap.Tool) error {
		var said strings.Builder
		request.Said = &said
		findings, err := tool.Check(ctx, request)
		if err != nil {
			return err
		}
		findings.Write(command.OutOrStdout())
		if request.Config != "" && said.Len() > 0 {
			fmt.Fprintf(command.OutOrStdout(), "kube-scheduler --validate-config:\n%s", said.String())
		}
		if findings.Problems() > 0 {
			return errProblems
		}
		return nil
	})
	command := newCommand("check", "Report every problem that would make the swap fail, with its next step; changes nothing. "+
		"With --config, it prints what the scheduler's --validate-config does; without root or a node, only that",
		func(command *cobra.Command, arguments []string) error {
			if request.Config == "" || swap.IsNode(*options) {
				return whole(command, arguments)
			}
			code, err := swap.CheckConfig(command.Context(), request, command.OutOrStdout(), command.ErrOrStderr())
			if err == nil && code != 0 {
				os.Exit(code)
			}
			return err
		})
	requestFlags(command, &request)
	return command
}

func installCommand(options *swap.Options) *cobra.Command {
	var request swap.Request
	command := newCommand("install", "Swap the scheduler, wait until it works, and restore the old one if it does not",
		run(options, func(ctx context.Context, command *cobra.Command, tool *swap.Tool) error {
			return tool.Install(ctx, request)
		}))
	requestFlags(command, &request)
	command.Flags().StringSliceVar(&request.Probe, "probe", nil,
		"profiles that must bind a probe pod before the swap is complete; none: no probe (default: "+
			"default-scheduler)")
	return command
}

func rollbackCommand(options *swap.Options) *cobra.Command {
	to := swap.ToStock
	command := newCommand("rollback", "Restore an earlier manifest, and wait until its scheduler works",
		run(options, func(ctx context.Context, command *cobra.Command, tool *swap.Tool) error {
			return tool.Rollback(ctx, to)
		}))
	command.Flags().StringVar(&to, "to", to, "stock: before the first swap; previous: before the last install")
	return command
}

func uninstallCommand(options *swap.Options) *cobra.Command {
	return newCommand("uninstall", "Restore kubeadm's scheduler, and remove what this tool has put on the node",
		run(options, func(ctx context.Context, command *cobra.Command, tool *swap.Tool) error {
			return tool.Uninstall(ctx)
		}))
}

func statusCommand(options *swap.Options) *cobra.Command {
	var output string
	command := newCommand("status", "Show the running scheduler, and whether the files match; changes nothing; exits with 1 if it does not work",
		look(options, func(ctx context.Context, command *cobra.Command, tool *swap.Tool) error {
			status, err := tool.Status(ctx)
			if err != nil {
				return err
			}
			switch output {
			case "json":
				err = status.WriteJSON(command.OutOrStdout())
			case "":
				err = status.Write(command.OutOrStdout())
			default:
				return nextstep.With(fmt.Errorf("--output %s is unknown", output),
					"kube-scheduler-swap status --output json")
			}
			if err == nil && !status.Working {
				err = errProblems
			}
			return err
		}))
	command.Flags().StringVarP(&output, "output", "o", "", "json: print JSON for programs")
	return command
}

func diffCommand(options *swap.Options) *cobra.Command {
	var request swap.Request
	command := newCommand("diff", "Show the exact change that install would make to the manifest; changes nothing",
		look(options, func(ctx context.Context, command *cobra.Command, tool *swap.Tool) error {
			change, err := tool.Diff(ctx, request)
			if err != nil {
				return err
			}
			_, err = command.OutOrStdout().Write(change)
			return err
		}))
	requestFlags(command, &request)
	return command
}

func patchCommand(options *swap.Options) *cobra.Command {
	folder := record.DefaultPatches
	command := newCommand("kubeadm-patch", "Make kubeadm upgrade and kubeadm join keep the swap",
		run(options, func(ctx context.Context, command *cobra.Command, tool *swap.Tool) error {
			lines, err := tool.KubeadmPatch(ctx, folder)
			if err != nil {
				return err
			}
			if lines == "" {
				fmt.Fprintf(os.Stderr, "wrote the patch into %s; from now on: kubeadm upgrade apply VERSION --patches %s\n"+
					"the swap has no configuration; run this again once it has one\n", folder, folder)
				return nil
			}
			fmt.Fprint(command.OutOrStdout(), lines)
			fmt.Fprintf(os.Stderr, "wrote the patch into %s; put the lines above into kubeadm's ClusterConfiguration (kubectl -n kube-system edit configmap kubeadm-config),\n"+
				"where extraArgs is a list if its apiVersion is newer than v1beta3 (- {name: config, value: ...}),\n"+
				"and from now on: kubeadm upgrade apply VERSION --patches %s\n", folder, folder)
			return nil
		}))
	command.Flags().StringVar(&folder, "folder", folder, "directory of kubeadm's patches")
	return command
}
