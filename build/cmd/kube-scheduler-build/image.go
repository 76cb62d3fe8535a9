// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/image"
	"kube-scheduler-fork/build/release"
)

func imageCommand() *cobra.Command {
	var (
		options           image.Options
		facts             release.Options
		binaries, output  string
		registry          string
		created           int64
		architectures     []string
		layoutOutput, oci = "oci", false
	)
	command := &cobra.Command{
		Use:   "image",
		Short: "Assemble image archives, and one OCI layout with all of them, without a container engine",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, arguments []string) error {
			folder, err := os.MkdirTemp("", "image-*")
			if err != nil {
				return err
			}
			defer os.RemoveAll(folder)
			if err := complete(&facts, folder); err != nil {
				return err
			}
			facts.Created = time.Unix(created, 0).UTC()
			options.Version, options.Commit, options.Created = facts.Version, facts.Commit, facts.Created
			var images []v1.Image
			for _, architecture := range architectures {
				options.Architecture, facts.Architecture = architecture, architecture
				options.Binary = filepath.Join(binaries, architecture, options.Program)
				options.LogRunner = filepath.Join(binaries, architecture, "kube-log-runner")
				if options.SBOM, err = release.DescribeImage(facts, options.Program, options.Binary, options.LogRunner); err != nil {
					return err
				}
				made, err := image.New(options)
				if err != nil {
					return err
				}
				names, err := image.Names(options.Program, options.Version, architecture, registry)
				if err != nil {
					return err
				}
				archive := filepath.Join(output, architecture, options.Program+".tar")
				if err := image.WriteArchive(archive, made, names); err != nil {
					return err
				}
				fmt.Fprintf(command.OutOrStdout(), "image: %s\n", archive)
				for _, tag := range names {
					fmt.Fprintf(command.OutOrStdout(), "image:   %s\n", tag)
				}
				images = append(images, made)
			}
			if !oci {
				return nil
			}
			layoutPath := filepath.Join(output, layoutOutput)
			if err := image.WriteLayout(layoutPath, options.Version, images); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "image: %s (OCI layout, %v)\n", layoutPath, architectures)
			return nil
		},
	}
	contentFlags(command, &facts)
	flags := command.Flags()
	flags.StringVar(&options.Program, "program", image.Scheduler, "kube-scheduler or scheduler-extender")
	flags.StringVar(&binaries, "binaries", "", "directory with a subdirectory of binaries for each architecture")
	flags.StringVar(&output, "output", "", "output directory")
	flags.StringVar(&options.Zoneinfo, "zoneinfo", "", "Go's lib/time/zoneinfo.zip")
	flags.StringVar(&registry, "registry", "", "add image names with this registry")
	flags.Int64Var(&created, "created", 0, "creation time of the image, in seconds since 1970")
	flags.StringSliceVar(&architectures, "architectures", nil, "amd64, arm64")
	flags.BoolVar(&oci, "oci", false, "write an OCI layout too")
	require(command, "binaries", "output", "zoneinfo", "created", "architectures")
	return command
}

func compareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare VERSION ARCHITECTURE ARCHIVE ARCHIVE",
		Short: "Compare the images of two archives, and name the first file that differs, and why",
		Args:  cobra.ExactArgs(4),
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := image.Names(image.Scheduler, arguments[0], arguments[1], "")
			if err != nil {
				return err
			}
			same, err := image.Compare(names[0], arguments[2], arguments[3])
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "rebuild-check: %s\n", same)
			return nil
		},
	}
}

func pushCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "push LAYOUT REGISTRY",
		Short: "Push the images of an OCI layout to a registry, with the credentials of docker login",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			index, tag, err := image.ReadLayout(arguments[0])
			if err != nil {
				return err
			}
			reference, err := image.Push(command.Context(), arguments[1], tag, index)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), reference)
			return nil
		},
	}
}
