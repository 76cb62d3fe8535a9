// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/patches"
	"kube-scheduler-fork/build/release"
	"kube-scheduler-fork/build/source"
)

func releaseCommand() *cobra.Command {
	var (
		options release.Options
		output  string
		created int64
	)
	command := &cobra.Command{
		Use:   "release",
		Short: "Make the release bundle of one architecture, with its SBOMs",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, arguments []string) error {
			options.Created = time.Unix(created, 0).UTC()
			folder, err := os.MkdirTemp("", "release-*")
			if err != nil {
				return err
			}
			defer os.RemoveAll(folder)
			if err := complete(&options, folder); err != nil {
				return err
			}
			if options.Pin, err = source.ReadPin(options.UpstreamVersion); err != nil {
				return err
			}
			options.CRDs = filepath.Join(folder, "crds")
			if err := source.WriteCRDs(command.Context(), options.Carried, options.CRDs); err != nil {
				return err
			}
			written, err := release.Write(output, options)
			if err != nil {
				return err
			}
			for _, path := range written {
				fmt.Fprintf(command.OutOrStdout(), "release: %s\n", path)
			}
			if options.SignKey == "" {
				fmt.Fprintln(command.OutOrStdout(), "release: not signed; make release SIGN_KEY=~/.ssh/id_ed25519 signs it with that key")
			}
			return nil
		},
	}
	flags := command.Flags()
	contentFlags(command, &options)
	flags.StringVar(&output, "output", "", "output directory")
	flags.StringVar(&options.Architecture, "architecture", "", "amd64 or arm64")
	flags.Int64Var(&created, "created", 0, "modification time of the files in the bundle, in seconds since 1970")
	flags.StringVar(&options.Image, "image", "", "the image archive")
	flags.StringVar(&options.Extender, "extender-image", "", "the image archive of scheduler-extender")
	flags.StringVar(&options.Swap, "swap", "", "the binary of kube-scheduler-swap")
	flags.StringVar(&options.Kubectl, "kubectl", "", "the binary of kubectl-scheduling")
	flags.StringVar(&options.Simulate, "simulate", "", "the binary of kube-scheduler-simulate")
	flags.StringVar(&options.GoRoot, "go-root", "", "the GOROOT of the Go that compiled the binaries (go env GOROOT)")
	flags.StringVar(&options.Project, "project", "", "the directory with manifests/, docs/ and README.md")
	flags.StringVar(&options.UpstreamVersion, "upstream-version", "", "the upstream.version file")
	flags.StringVar(&options.ProjectCommit, "project-commit", "", "the commit of --project, if its files are as committed")
	flags.StringVar(&options.SignKey, "sign-key", "", "the SSH key that signs the release")
	flags.StringVar(&options.ModulesPatch, "modules-patch", "", "the patch with what --modules adds to the tree")
	require(command, "output", "architecture", "created", "image", "extender-image", "swap", "kubectl", "simulate", "go-root", "project", "upstream-version")
	return command
}

// contentFlags adds the flags for the facts in an SBOM.
func contentFlags(command *cobra.Command, options *release.Options) {
	flags := command.Flags()
	flags.StringVar(&options.Version, "version", "", "version that kube-scheduler --version prints")
	flags.StringVar(&options.Kubernetes, "kubernetes", "", "upstream's tag")
	flags.StringVar(&options.Sum, "sum", "", "the h1: sum of the module k8s.io/kubernetes")
	flags.StringVar(&options.Commit, "commit", "", "upstream's commit")
	flags.StringVar(&options.Tree, "tree", "", "the tree of Kubernetes that the image was made from")
	flags.StringVar(&options.ModuleCache, "module-cache", "", "the module cache (go env GOMODCACHE)")
	flags.StringVar(&options.Patches, "patches", "", "the directory of the patch series")
	flags.StringVar(&options.Modules, "modules", "", "the modules.yaml file")
	require(command, "version", "kubernetes", "sum", "tree", "module-cache", "patches", "modules")
}

// complete reads the facts of a release that several of its parts need. If MODULES excludes modules, it puts a copy of
// modules.yaml without them into a temporary directory.
func complete(options *release.Options, folder string) error {
	series, modules, err := readSeries(options.Patches, options.Modules)
	if err != nil {
		return err
	}
	options.Carried, options.Series = modules, patches.Carried(series, modules)
	if os.Getenv("MODULES") != "" {
		wanted := filepath.Join(folder, filepath.Base(options.Modules))
		if err := source.CopyModules(options.Modules, wanted, modules); err != nil {
			return err
		}
		options.Modules = wanted
	}
	options.Roots, err = release.RootsModule()
	return err
}

func require(command *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err)
		}
	}
}
