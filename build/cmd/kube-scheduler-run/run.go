package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/controlplane"
)

// versionDeadline bounds how long a program may take to say its version.
const versionDeadline = 30 * time.Second

// options are the command line's.
type options struct {
	apiServer, scheduler, etcd, kwok, config string
	nodes, pods                              int
	manifests                                []string
	timeout                                  time.Duration
	keep                                     bool

	out io.Writer
}

// run does everything, from the versions to the table, and leaves nothing behind.
func (o *options) run(ctx context.Context) (err error) {
	if o.nodes < 1 || o.pods < 0 {
		return fmt.Errorf("--nodes %d --pods %d: there must be at least one node, and no fewer than no pods; "+
			"next: give other numbers", o.nodes, o.pods)
	}
	// All that can be read is read before anything is started.
	profiles, err := controlplane.ReadProfiles(o.config)
	if err != nil {
		return err
	}
	pods := dealPods(o.pods, profiles)
	for _, manifest := range o.manifests {
		read, err := controlplane.ReadPods(manifest)
		if err != nil {
			return err
		}
		pods = append(pods, read...)
	}
	// A pod that names no scheduler shows what happens to the pods of everybody else on a cluster with this configuration.
	orphan := -1
	if !slices.Contains(profiles, corev1.DefaultSchedulerName) {
		orphan = len(pods)
		pods = append(pods, controlplane.NewPod("names-no-scheduler", ""))
	}
	if err := o.printVersions(ctx); err != nil {
		return err
	}

	plane, err := controlplane.Start(ctx, controlplane.Options{
		Etcd:          o.etcd,
		KubeAPIServer: o.apiServer,
		KWOK:          o.kwok,
		Progress:      o.out,
	})
	if err != nil {
		return err
	}
	defer func() {
		fmt.Fprintln(o.out, "ending everything that was started, and removing "+plane.Folder())
		err = errors.Join(err, plane.Stop())
	}()
	if _, err := plane.AddNodes(ctx, o.nodes); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%d fake nodes are ready\n", o.nodes)
	scheduler, err := plane.StartScheduler(ctx, o.scheduler, o.config)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "profiles in %s: %s\ncreating %d pods\n", o.config, strings.Join(profiles, ", "), len(pods))
	if orphan >= 0 {
		fmt.Fprintf(o.out, "note: pods that name no scheduler will stay Pending, "+
			"because the configuration has no profile default-scheduler;\n"+
			"  the cure: add to the profiles in %s:\n    - schedulerName: %s\n", o.config, corev1.DefaultSchedulerName)
	}
	deadline, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	placements, err := scheduler.Place(deadline, pods...)
	if err != nil {
		return err
	}
	nodes, err := plane.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := printTable(o.out, placements, diskTypes(nodes.Items)); err != nil {
		return err
	}
	verdict := judge(placements, orphan)
	if o.keep {
		return o.stay(ctx, plane, verdict)
	}
	return verdict
}

// dealPods makes pods that ask for the profiles in turn.
func dealPods(count int, profiles []string) []*corev1.Pod {
	width := len(fmt.Sprint(count))
	var pods []*corev1.Pod
	for i := range count {
		pods = append(pods, controlplane.NewPod(fmt.Sprintf("pod-%0*d", width, i+1), profiles[i%len(profiles)]))
	}
	return pods
}

// printVersions prints what each program says about its version.
func (o *options) printVersions(ctx context.Context) error {
	for _, program := range []struct{ name, file string }{
		{"kube-scheduler", o.scheduler},
		{"kube-apiserver", o.apiServer},
		{"etcd", o.etcd},
		{"kwok", o.kwok},
	} {
		limited, cancel := context.WithTimeout(ctx, versionDeadline)
		output, err := exec.CommandContext(limited, program.file, "--version").CombinedOutput()
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
		if err != nil {
			return fmt.Errorf("%s does not run (%s --version: %w); next: build it for this machine, and give the file with --%s",
				program.name, program.file, err, program.name)
		}
		fmt.Fprintf(o.out, "%-15s %s\n", program.name, line)
	}
	return nil
}

// judge gives what is wrong with the placements. The pod with the number orphan is the one that shows what happens
// without a profile: it is wrong only if it was bound after all.
func judge(placements []controlplane.Placement, orphan int) error {
	var failures []error
	for i, placement := range placements {
		if i == orphan && placement.Node == "" {
			continue
		}
		failures = append(failures, placement.Err())
	}
	return errors.Join(failures...)
}

// stay leaves everything running until a signal comes, which is then no error, or until a component ends.
func (o *options) stay(ctx context.Context, plane *controlplane.ControlPlane, verdict error) error {
	if verdict != nil {
		fmt.Fprintf(o.out, "%v\n", verdict)
	}
	fmt.Fprintf(o.out, "everything keeps running until Ctrl-C; logs are in %s; to look around:\n  export KUBECONFIG=%s\n",
		plane.Folder(), plane.Kubeconfig())
	select {
	case <-ctx.Done():
		return verdict
	case <-plane.Failed():
		return plane.Failure()
	}
}
