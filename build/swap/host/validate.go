// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/logtail"
	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/manifest"
)

// acceptTime is the timeout for a scheduler's check of its configuration. The check takes about 0.1 seconds, plus up to
// two minutes for each plugin whose own data source, such as Prometheus, does not answer.
const acceptTime = 10 * time.Minute

// Scheduler is a kube-scheduler binary that can check its own configuration.
type Scheduler struct {
	// Binary is the path of the binary as run sees it; folder is a directory on this host that contains it.
	Binary, Folder string
	// Run runs a command with the files that the pod's container would see.
	Run func(*exec.Cmd) error
	// Control reports whether it is a stock scheduler that `make control` built.
	Control bool
	// Said receives the output of the check, too, unless it is nil.
	Said io.Writer
}

// IsControl reports whether a version is that of an image of `make control`.
func IsControl(version string) bool { return strings.Contains(version, "+control.") }

// unknownPlugin is the error of a scheduler whose registry lacks a plugin of the configuration.
var unknownPlugin = regexp.MustCompile(`Plugin \\?"([^"\\]+)\\?" does not exist`)

// Validate makes a scheduler check the command line and the environment of a pod: it reads the configuration, creates
// every profile with its plugins, and exits. It does not listen on a port and needs no API server. config is the content
// of the configuration file on the command line; nil without one. Validate returns the parsed configuration and the
// scheduler's warnings and notes.
func (s Scheduler) Validate(ctx context.Context, pod *manifest.Pod, config []byte) (*schedulerpod.Config, []string, error) {
	arguments := append(slices.Clone(pod.Line.Arguments()), "--validate-config")
	if s.Control {
		// A stock scheduler creates its profiles and exits when it writes its configuration; it sends no request before.
		// Without a port, it does not need the one of the running scheduler.
		arguments = append(slices.Clone(pod.Line.Arguments()), "--secure-port=0", "--write-config-to=/dev/null")
	}
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	command := exec.CommandContext(ctx, s.Binary, arguments...)
	var output, failures bytes.Buffer
	command.Stdout, command.Stderr = &output, &failures
	command.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, variable := range pod.Container().Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	var ended *exec.ExitError
	err := s.Run(command)
	if s.Said != nil {
		fmt.Fprint(s.Said, output.String(), failures.String())
	}
	switch {
	case err == nil:
	case errors.Is(err, os.ErrPermission):
		return nil, nil, nextstep.With(fmt.Errorf("it cannot be run from %s: %w", s.Folder, err), "mount | grep noexec")
	case ctx.Err() != nil:
		return nil, nil, nextstep.With(fmt.Errorf("it did not finish its check: %w", ctx.Err()), "run this again")
	case !errors.As(err, &ended):
		return nil, nil, err
	case strings.Contains(failures.String(), "unknown flag: --validate-config"):
		return nil, nil, nextstep.With(
			errors.New("it has no flag --validate-config, so it cannot check its configuration: "+
				"it is a stock scheduler, or was built without this project's patch 0430"),
			"use the kube-scheduler.tar of the release bundle; to restore the stock scheduler: kube-scheduler-swap rollback")
	case s.Control && unknownPlugin.MatchString(failures.String()):
		return nil, nil, nextstep.With(
			fmt.Errorf("it is stock Kubernetes, and has no plugin %s, which the configuration enables", unknownPlugin.FindStringSubmatch(failures.String())[1]),
			"remove this project's plugins from the configuration, and install that with --config")
	default:
		if found := linesWith("error: ", failures.String()); len(found) > 0 {
			return nil, nil, errors.New(strings.Join(found, "\n    "))
		}
		return nil, nil, fmt.Errorf("its check failed with %w: %s", err,
			strings.ReplaceAll(logtail.Last(failures.String(), 6), "\n", "\n    "))
	}
	warnings := linesWith("warning: ", output.String())
	var missing []string
	for _, note := range linesWith("note: ", output.String()) {
		switch {
		case slices.ContainsFunc(knownNotes, func(beginning string) bool { return strings.HasPrefix(note, beginning) }):
		case strings.Contains(note, missingNote):
			// For the scheduler's check this is not an error: the configuration may be for another machine.
			missing = append(missing, strings.Replace(note, missingNote, "is not visible in its pod", 1))
		default:
			warnings = append(warnings, note)
		}
	}
	if len(missing) > 0 {
		return nil, nil, nextstep.With(errors.New(strings.Join(missing, "\n    ")),
			"put it into a directory that the manifest mounts, or add --mount with its directory")
	}
	if pod.ConfigFile() == "" {
		accepted := &schedulerpod.Config{}
		accepted.ClientConnection.Kubeconfig, _ = pod.Flag("kubeconfig")
		qps, _ := pod.Flag("kube-api-qps")
		accepted.ClientConnection.QPS, _ = strconv.ParseFloat(qps, 64) // otherwise 0, the default
		return accepted, warnings, nil
	}
	accepted, err := schedulerpod.ReadConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("its configuration: %w", err)
	}
	return accepted, warnings, nil
}

// HasFlag reports whether the scheduler has a flag.
func (s Scheduler) HasFlag(ctx context.Context, name string) bool {
	command := exec.CommandContext(ctx, s.Binary, "--help")
	var output bytes.Buffer
	command.Stdout, command.Env = &output, []string{}
	return s.Run(command) == nil && strings.Contains(output.String(), " --"+name+" ")
}

// missingNote is the text of the scheduler's note about a file that it cannot see.
const missingNote = "is not to be found on this machine"

// knownNotes are the prefixes of notes to leave out: about the flag --kubeconfig, which kubeadm's manifest has with
// every configuration, and about problems that this tool's own check reports.
var knownNotes = []string{
	"with --config, the flag --kubeconfig is ignored",
	"no profile is named " + corev1.DefaultSchedulerName + ":",
	"clientConnection.kubeconfig ",
	"clientConnection.qps ",
}

// linesWith returns the lines of text that begin with beginning, without that prefix.
func linesWith(beginning, text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, beginning); is {
			found = append(found, strings.TrimSpace(rest))
		}
	}
	return found
}
