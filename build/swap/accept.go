// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"kube-scheduler-fork/build/logtail"
	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

// acceptTime is how long a scheduler may take to check a configuration. It takes a tenth of a second, and up to two
// minutes for each plugin with sources of its own, such as Prometheus, that do not answer.
const acceptTime = 10 * time.Minute

// scheduler is a kube-scheduler that can be asked what it accepts.
type scheduler struct {
	// binary is its path, as run sees it; folder is where that lies on this host.
	binary, folder string
	// run runs a command, so that it sees what the pod's container would see.
	run func(*exec.Cmd) error
}

// accepts has a scheduler itself check the command line and the environment of a pod, with --validate-config: it reads
// the configuration and makes every profile with its plugins. It listens nowhere and needs no API server. config is the
// content of the configuration that the command line names; nil without one. The answer is what it says, and the
// scheduler's warnings and notes.
func (s scheduler) accepts(ctx context.Context, pod *Pod, config []byte) (*schedulerpod.Config, []string, error) {
	arguments := append(slices.Clone(pod.Line.Arguments()), "--validate-config")
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	command := exec.CommandContext(ctx, s.binary, arguments...)
	var output, failures bytes.Buffer
	command.Stdout, command.Stderr = &output, &failures
	command.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, variable := range pod.Container().Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	var ended *exec.ExitError
	switch err := s.run(command); {
	case err == nil:
	case errors.Is(err, os.ErrPermission):
		return nil, nil, nextstep.With(fmt.Errorf("it cannot be run from %s: %w", s.folder, err), "mount | grep noexec")
	case ctx.Err() != nil:
		return nil, nil, nextstep.With(fmt.Errorf("it did not finish its check: %w", ctx.Err()), "run this again")
	case !errors.As(err, &ended):
		return nil, nil, err
	case strings.Contains(failures.String(), "unknown flag: --validate-config"):
		return nil, nil, nextstep.With(
			errors.New("it has no flag --validate-config, so it cannot check its configuration: "+
				"it is a stock scheduler, or was built without this project's patch 0430"),
			"take the kube-scheduler.tar of the release bundle, or for the stock one kube-scheduler-swap rollback")
	default:
		if found := linesWith("error: ", failures.String()); len(found) > 0 {
			return nil, nil, errors.New(strings.Join(found, "\n    "))
		}
		return nil, nil, fmt.Errorf("its check ended with %w: %s", err,
			strings.ReplaceAll(logtail.Last(failures.String(), 6), "\n", "\n    "))
	}
	says := linesWith("warning: ", output.String())
	var missing []string
	for _, note := range linesWith("note: ", output.String()) {
		switch {
		case slices.ContainsFunc(knownNotes, func(beginning string) bool { return strings.HasPrefix(note, beginning) }):
		case strings.Contains(note, missingNote):
			// It may be another machine that the configuration is for, so this is no error of the scheduler's check.
			missing = append(missing, strings.Replace(note, missingNote, "is not visible in its pod", 1))
		default:
			says = append(says, note)
		}
	}
	if len(missing) > 0 {
		return nil, nil, nextstep.With(errors.New(strings.Join(missing, "\n    ")),
			"put it into a directory that the manifest mounts, or mount its directory")
	}
	if pod.ConfigFile() == "" {
		accepted := &schedulerpod.Config{}
		accepted.ClientConnection.Kubeconfig, _ = pod.Flag("kubeconfig")
		return accepted, says, nil
	}
	accepted, err := schedulerpod.ReadConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("its configuration: %w", err)
	}
	return accepted, says, nil
}

// missingNote is what the scheduler's check says of a file that it does not see.
const missingNote = "is not to be found on this machine"

// knownNotes are the beginnings of notes that say nothing new here: of the flag --kubeconfig, which kubeadm's manifest
// has beside every configuration, and of what this tool's own check finds.
var knownNotes = []string{
	"with --config, the flag --kubeconfig is ignored",
	"no profile is named " + defaultScheduler + ":",
	"clientConnection.kubeconfig ",
}

// linesWith gives the lines of a text that begin so, without the beginning.
func linesWith(beginning, text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, beginning); is {
			found = append(found, strings.TrimSpace(rest))
		}
	}
	return found
}

// configOf reads the configuration that a pod's command line names, where it lies on this host; nil if it names none.
func configOf(pod *Pod) (*schedulerpod.Config, error) {
	content, err := configContent(pod)
	if content == nil || err != nil {
		return nil, err
	}
	config, err := schedulerpod.ReadConfig(content)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the scheduler's configuration: %w", err),
			"correct it, and kube-scheduler-swap install --config FILE")
	}
	return config, nil
}

// configContent is the text of the configuration that a pod's command line names; nil if it names none.
func configContent(pod *Pod) ([]byte, error) {
	inside := pod.ConfigFile()
	if inside == "" {
		return nil, nil
	}
	path, mounted := pod.HostPath(inside)
	if !mounted {
		return nil, nextstep.With(
			fmt.Errorf("the manifest names --config=%s, and does not mount the directory that holds it", inside),
			"kube-scheduler-swap rollback")
	}
	content, err := readRegular(path)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the scheduler's configuration: %w", err),
			"kube-scheduler-swap install --config FILE")
	}
	return content, nil
}
