// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/record"
)

// IsNode reports whether Check can check this machine: this process is root, and kubelet or its manifests are here.
func IsNode(options Options) bool {
	_, kubelet := host.FindKubelet("/proc")
	_, manifests := os.Stat("/etc/kubernetes/manifests")
	return os.Geteuid() == 0 && (options.Manifest != "" || kubelet == nil || manifests == nil)
}

// CheckConfig runs the scheduler of an image archive with --validate-config, as this user and without a node. Its output
// is the scheduler's, and so is the exit code. Without an archive it takes the one next to this program, as in the bundle.
func CheckConfig(ctx context.Context, request Request, output, failures io.Writer) (int, error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	request.Archive = cmp.Or(request.Archive, filepath.Join(filepath.Dir(program), "kube-scheduler.tar"))
	if request.VerifyKey != "" {
		if err := verifySignature(request); err != nil {
			return 0, err
		}
	}
	archive, err := record.OpenArchive(request.Archive)
	if err != nil {
		return 0, err
	}
	folder, err := record.CreateScratch("")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	// It refuses a link out of the image, so the scheduler can be run in this machine's root.
	if err := unpackScheduler(archive, folder); err != nil {
		return 0, err
	}
	fmt.Fprintf(failures, "only the configuration is checked, by %s of %s; as root on a control-plane node, the node is checked, too\n",
		cmp.Or(archive.Version, unknownVersion), archive.Path)
	command := exec.CommandContext(ctx, filepath.Join(folder, record.SchedulerInImage), "--config="+request.Config, "--validate-config")
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, output, failures
	if err := command.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return 0, nextstep.With(err, "set TMPDIR to a directory that is not mounted with noexec")
	}
	return command.ProcessState.ExitCode(), nil
}
