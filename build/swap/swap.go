// SPDX-License-Identifier: Apache-2.0

// Package swap replaces the kube-scheduler of a kubeadm control-plane node and restores the original.
//
// The manifest in kubelet's static pod directory alone decides what runs: it names the image and the configuration
// directory, and the name of that directory changes with the content. One rename replaces the manifest. Everything that
// a rollback needs is written before that, outside the directory that kubelet watches. So a run that is killed, or a
// power cut, always leaves one complete manifest whose image and configuration exist.
//
// The commands are here: install, rollback and uninstall go through one change (change.go). What they need is in
// manifest, record and host, none of which imports this package.
package swap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

const (
	// manifestName is the file name of kubeadm's scheduler manifest.
	manifestName = "kube-scheduler.yaml"
	// DefaultKubeconfig is the path of kubeadm's administrator kubeconfig.
	DefaultKubeconfig = "/etc/kubernetes/admin.conf"
)

// Options sets paths, the timeout and the output.
type Options struct {
	// Manifest is the path of the scheduler's manifest; empty:
	// kube-scheduler.yaml in the directory that kubelet watches.
	Manifest string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// State is the directory for backups, configurations and the journal.
	State string
	// Timeout is the time in which the new scheduler must work, from the moment kubelet starts its pod.
	Timeout time.Duration
	// Output receives progress messages.
	Output io.Writer
}

// Tool manages the scheduler of this node.
type Tool struct {
	options  Options
	manifest string
	node     *host.Node
	state    record.Directory
	started  time.Time
	// wrote reports whether the manifest was written.
	wrote bool
}

// newTool returns a tool that prints progress, and knows nothing of the node yet.
func newTool(options Options) *Tool {
	t := &Tool{options: options, started: time.Now()}
	t.node = &host.Node{Say: t.say}
	t.state = record.Directory{Path: options.State, Started: t.started, Say: t.say}
	return t
}

// Open finds kubelet and connects to its container runtime and the API server. It changes nothing.
func Open(ctx context.Context, options Options) (*Tool, error) {
	t := newTool(options)
	if os.Geteuid() != 0 {
		return nil, nextstep.With(errors.New("this needs root: it reads kubelet's settings and writes its manifests"),
			"run the same command with sudo")
	}
	if options.Timeout <= 0 {
		return nil, nextstep.With(fmt.Errorf("--timeout %s leaves no time", options.Timeout), "give it more than 0s, or leave it out")
	}
	var err error
	if t.node.Kubelet, err = host.FindKubelet("/proc"); err != nil {
		return nil, err
	}
	if t.manifest = options.Manifest; t.manifest == "" {
		if t.node.Kubelet.Manifests == "" {
			return nil, nextstep.With(
				errors.New("kubelet runs no static pods here (no staticPodPath): this is not a kubeadm control-plane node"),
				"run this on one, or use the second scheduler (manifests/second-scheduler)")
		}
		t.manifest = filepath.Join(t.node.Kubelet.Manifests, manifestName)
	}
	for _, path := range []*string{&t.manifest, &t.state.Path} {
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	if t.state.Watched = filepath.Dir(t.manifest); record.Inside(t.state.Path, t.state.Watched) {
		return nil, nextstep.With(
			fmt.Errorf("the backups must not be in %s: kubelet would run them", t.state.Watched),
			"name another directory with --state")
	}
	if t.node.Cluster, err = host.ConnectCluster(options.Kubeconfig); err != nil {
		return nil, err
	}
	if t.node.Runtime, err = host.ConnectRuntime(ctx, t.node.Kubelet.Endpoint, t.node.Kubelet.Docker); err != nil {
		return nil, t.orInterrupted(ctx, err)
	}
	return t, nil
}

// Close closes the connection to the container runtime.
func (t *Tool) Close() { t.node.Runtime.Close() }

// say prints a line of progress, with the time since the start.
func (t *Tool) say(format string, arguments ...any) {
	fmt.Fprintf(t.options.Output, "%5.1fs  %s\n", time.Since(t.started).Seconds(), fmt.Sprintf(format, arguments...))
}

// readManifest reads and parses the scheduler's manifest.
func (t *Tool) readManifest() ([]byte, *manifest.Pod, error) {
	content, err := record.ReadRegular(t.manifest)
	if errors.Is(err, os.ErrNotExist) {
		if err := t.refuseLink(); err != nil {
			return nil, nil, err
		}
		return nil, nil, nextstep.With(
			fmt.Errorf("%s does not exist: the scheduler of this node is not a static pod of kubeadm", t.manifest),
			"run this on a control-plane node, give the file with --manifest, or create it again: kube-scheduler-swap rollback after a swap, otherwise "+byKubeadm)
	} else if err != nil {
		return nil, nil, nextstep.With(err, "run the same command with sudo")
	}
	pod, err := manifest.Describe(content)
	if err != nil {
		return content, nil, fmt.Errorf("%s: %w", t.manifest, err)
	}
	return content, &pod, nil
}

// refuseLink returns an error if the manifest is a symbolic link: the
// rename that replaces the manifest would replace the link itself.
func (t *Tool) refuseLink() error {
	target, err := os.Readlink(t.manifest)
	if err != nil {
		// It is not a link, or does not exist.
		return nil
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(t.manifest), target)
	}
	hidden := filepath.Join(filepath.Dir(t.manifest), "."+filepath.Base(t.manifest))
	return nextstep.With(
		fmt.Errorf("%s is a symbolic link to %s: this tool replaces a manifest by a rename, so that kubelet never reads "+
			"half of it, and that would replace the link by a file and leave %s without effect",
			t.manifest, target, target),
		"put the file itself there (cp %s %s && mv %s %s), then run this again; or edit %s by hand",
		target, hidden, hidden, t.manifest, target)
}

// The names of package manifest that users of the commands need, too.
const (
	ConfigFileName        = manifest.ConfigFileName
	ContainerConfigFolder = manifest.ContainerConfigFolder
	ContainerConfigPath   = manifest.ContainerConfigPath
	RestartedAtAnnotation = manifest.RestartedAtAnnotation
	NonRootUser           = manifest.NonRootUser
)

// Functions of package manifest.
var (
	Describe = manifest.Describe
	Restart  = manifest.Restart
	Diff     = manifest.Diff
)
