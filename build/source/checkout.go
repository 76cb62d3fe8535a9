// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"kube-scheduler-fork/build/logtail"
)

// FromCheckout returns the facts of a git checkout of a Kubernetes release. The sum is computed from the commit's files
// exactly as the go command builds and hashes a module zip, so a git tree and a module tree can be compared with the
// same pinned sum.
func FromCheckout(ctx context.Context, version, dir string) (Facts, error) {
	shown, err := git(ctx, dir, nil, "show", "-s", "--format=%H %ct", "HEAD")
	if err != nil {
		return Facts{}, err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(string(shown)), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Facts{}, fmt.Errorf("git show: %w", err)
	}
	file, err := os.CreateTemp("", "kubernetes-*.zip")
	if err != nil {
		return Facts{}, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := zip.CreateFromVCS(file, module.Version{Path: kubernetesModule, Version: version}, dir, commit, ""); err != nil {
		return Facts{}, fmt.Errorf("cannot make the module zip of commit %s: %w", commit, err)
	}
	if err := file.Close(); err != nil {
		return Facts{}, err
	}
	sum, err := dirhash.HashZip(file.Name(), dirhash.Hash1)
	if err != nil {
		return Facts{}, err
	}
	return Facts{Version: version, Commit: commit, Sum: sum, Time: time.Unix(unix, 0).UTC()}, nil
}

// VouchedSum returns the sum of k8s.io/kubernetes at version from the Go checksum database.
func VouchedSum(ctx context.Context, version string) (string, error) {
	if err := needChecksumDatabase(ctx); err != nil {
		return "", err
	}
	downloads, err := downloadModules(ctx, []string{kubernetesModule + "@" + version})
	if err != nil {
		return "", err
	}
	if downloads[0].Error != "" {
		return "", downloadError(downloads[0])
	}
	return downloads[0].Sum, nil
}

// git runs git in a directory and returns its output.
func git(ctx context.Context, dir string, input io.Reader, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, arguments...)...)
	command.Stdin = input
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, logtail.Last(stderr.String(), 5))
	}
	return output, nil
}
