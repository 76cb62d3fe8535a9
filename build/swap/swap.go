// SPDX-License-Identifier: Apache-2.0

// Package swap replaces the kube-scheduler of a kubeadm control-plane node, and takes it back.
//
// The manifest in kubelet's folder is the only thing that decides what runs: it names the image, and the folder of the
// configuration, whose name tells its content. It is replaced by one rename. What is needed to go back is on the disk
// before that, outside of the folder that kubelet watches; so a run that ends at any instant, or a power cut, leaves
// one whole manifest that finds its image and its configuration.
package swap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"kube-scheduler-fork/build/nextstep"
)

const (
	// manifestName is what kubeadm calls the scheduler's manifest.
	manifestName = "kube-scheduler.yaml"
	// DefaultKubeconfig is what kubeadm gives the administrator.
	DefaultKubeconfig = "/etc/kubernetes/admin.conf"
	// defaultScheduler is the profile of pods that name none.
	defaultScheduler = "default-scheduler"
)

// Options say where things are.
type Options struct {
	// Manifest is the scheduler's manifest; empty: kube-scheduler.yaml in the folder that kubelet watches.
	Manifest string
	// Kubeconfig is the administrator's.
	Kubeconfig string
	// State is the folder of backups, configurations and the journal.
	State string
	// Timeout is how long the new scheduler may take to work, from the change of the manifest.
	Timeout time.Duration
	// Output receives the progress.
	Output io.Writer
}

// Tool works on the scheduler of this node.
type Tool struct {
	options  Options
	state    state
	kubelet  *kubelet
	manifest string
	runtime  *runtime
	cluster  *cluster
	started  time.Time
	// wrote tells whether the manifest was written.
	wrote bool
}

// Open finds kubelet, its container runtime and the API server. Nothing is changed.
func Open(ctx context.Context, options Options) (*Tool, error) {
	t := &Tool{options: options, state: state{folder: options.State}, started: time.Now()}
	if os.Geteuid() != 0 {
		return nil, nextstep.With(errors.New("this needs root: it reads kubelet's settings and writes its manifests"),
			"the same command with sudo")
	}
	if options.Timeout <= 0 {
		return nil, nextstep.With(fmt.Errorf("--timeout %s leaves no time", options.Timeout), "give it more than 0s, or leave it out")
	}
	var err error
	if t.kubelet, err = findKubelet("/proc"); err != nil {
		return nil, err
	}
	if t.manifest = options.Manifest; t.manifest == "" {
		if t.kubelet.manifests == "" {
			return nil, nextstep.With(
				errors.New("kubelet runs no static pods here (no staticPodPath): this is not a kubeadm control-plane node"),
				"run this on one, or use the second scheduler (manifests/second-scheduler)")
		}
		t.manifest = filepath.Join(t.kubelet.manifests, manifestName)
	}
	for _, path := range []*string{&t.manifest, &t.state.folder} {
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	if inside(t.state.folder, filepath.Dir(t.manifest)) {
		return nil, nextstep.With(
			fmt.Errorf("the backups must not be in %s: kubelet would run them", filepath.Dir(t.manifest)),
			"name another directory with --state")
	}
	if t.cluster, err = connectCluster(options.Kubeconfig); err != nil {
		return nil, err
	}
	if t.runtime, err = connectRuntime(ctx, t.kubelet.endpoint, t.kubelet.docker); err != nil {
		return nil, t.orInterrupted(ctx, err)
	}
	return t, nil
}

// Close gives up the connection to the container runtime.
func (t *Tool) Close() { t.runtime.close() }

// inside tells whether a folder is another one or lies in it.
func inside(folder, other string) bool {
	relative, err := filepath.Rel(other, folder)
	return err == nil && (relative == "." || filepath.IsLocal(relative))
}

// say prints a line of progress, with the time since the start.
func (t *Tool) say(format string, arguments ...any) {
	fmt.Fprintf(t.options.Output, "%5.1fs  %s\n", time.Since(t.started).Seconds(), fmt.Sprintf(format, arguments...))
}

// readManifest reads the scheduler's manifest.
func (t *Tool) readManifest() ([]byte, *Pod, error) {
	content, err := readRegular(t.manifest)
	if errors.Is(err, os.ErrNotExist) {
		if err := t.refuseLink(); err != nil {
			return nil, nil, err
		}
		return nil, nil, nextstep.With(
			fmt.Errorf("%s is not there: the scheduler of this node is not a static pod of kubeadm", t.manifest),
			"run this on a control-plane node, name the file with --manifest, or make it again: kube-scheduler-swap rollback after a swap, else kubeadm init phase control-plane scheduler")
	} else if err != nil {
		return nil, nil, nextstep.With(err, "the same command with sudo")
	}
	pod, err := Describe(content)
	if err != nil {
		return content, nil, fmt.Errorf("%s: %w", t.manifest, err)
	}
	return content, &pod, nil
}

// refuseLink refuses a manifest that is a symbolic link: a rename, which is how it is replaced, would take the link
// away.
func (t *Tool) refuseLink() error {
	target, err := os.Readlink(t.manifest)
	if err != nil {
		// It is no link, or not there.
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

// podName is the name under which the API server knows a static pod.
func (t *Tool) podName(pod *Pod) string { return pod.Name + "-" + t.kubelet.nodeName }

func parseTag(text string) (name.Tag, error) { return name.NewTag(text, name.WeakValidation) }
