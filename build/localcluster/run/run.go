// SPDX-License-Identifier: Apache-2.0

// Package run implements `make run`: a scheduler places pods on a local control plane, and the node of each is printed.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-scheduler-fork/build/localcluster"
)

// versionDeadline limits the time a program takes to print its version.
const versionDeadline = 30 * time.Second

// Options are the flags of kube-scheduler-run, whose --help explains them.
type Options struct {
	KubeAPIServer, KubeScheduler, Etcd, KWOK, Config string
	Extender                                         string
	ExtenderConfig, DefaultExtenderConfig            string
	ExtenderProfile                                  string
	// Prometheus is the program to run where the configuration has an endpoint on loopback at which nothing listens.
	Prometheus  string
	Nodes, Pods int
	Manifests   []string
	// Objects are files, or directories of files, with objects to create first: CustomResourceDefinitions and RBAC.
	Objects []string
	Timeout time.Duration
	ShowLog string
	Keep    bool
	// Build is the command that builds KubeScheduler, if there is one; it runs while the control plane starts.
	Build []string

	Out io.Writer
}

// prepared holds the inputs that are read before anything is started.
type prepared struct {
	profiles []string
	extender extenderPlan
	// endpoint is where Prometheus is started; empty if it is not.
	endpoint string
	plan     *plan
	objects  []*unstructured.Unstructured
}

func (o *Options) prepare() (p prepared, err error) {
	if o.Nodes < 1 || o.Pods < 0 {
		return p, fmt.Errorf("NODES=%d PODS=%d: NODES must be at least 1 and PODS at least 0; "+
			"next: make run NODES=5 PODS=10", o.Nodes, o.Pods)
	}
	if p.profiles, err = localcluster.ReadProfiles(o.Config); err != nil {
		return p, err
	}
	if p.extender, err = o.planExtender(); err != nil {
		return p, err
	}
	if o.Prometheus != "" {
		if p.endpoint, err = localcluster.UnusedEndpoint(o.Config); err != nil {
			return p, err
		}
	}
	if p.plan, err = newPlan(p.profiles, o.Pods, o.Manifests); err != nil {
		return p, err
	}
	for _, path := range o.Objects {
		objects, err := localcluster.ReadObjects(path)
		if err != nil {
			return p, err
		}
		p.objects = append(p.objects, objects...)
	}
	p.objects = append(p.objects, p.plan.objects...)
	return p, nil
}

// Run starts everything, prints versions and tables, and removes everything.
func (o *Options) Run(ctx context.Context) (err error) {
	prepared, err := o.prepare()
	if err != nil {
		return err
	}
	var plane *localcluster.ControlPlane
	defer func() {
		if plane != nil {
			fmt.Fprintln(o.Out, "stopping everything and removing "+plane.Folder())
			err = errors.Join(err, plane.Stop())
		}
	}()
	var nodes []string
	group, starting := errgroup.WithContext(ctx)
	group.Go(func() error { return o.build(starting) })
	group.Go(func() (err error) {
		plane, err = localcluster.Start(starting, localcluster.Options{
			Etcd:          o.Etcd,
			KubeAPIServer: o.KubeAPIServer,
			KWOK:          o.KWOK,
			Progress:      o.Out,
		})
		if err != nil {
			return err
		}
		nodes, err = o.furnish(starting, plane, prepared)
		return err
	})
	if err := group.Wait(); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		return err
	}
	if err := o.printVersions(ctx); err != nil {
		return err
	}
	return o.schedule(ctx, plane, prepared, nodes)
}

// build runs the command that builds the scheduler.
func (o *Options) build(ctx context.Context) error {
	if len(o.Build) == 0 {
		return nil
	}
	command := exec.CommandContext(ctx, o.Build[0], o.Build[1:]...)
	command.Stdout, command.Stderr = o.Out, os.Stderr
	// On SIGTERM make ends its children, on SIGKILL it could not.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if err := command.Run(); err != nil {
		return fmt.Errorf("the scheduler was not built (%s: %w); next: fix the errors above, then run the same command again",
			strings.Join(o.Build, " "), err)
	}
	return nil
}

// On does the same on a running control plane without nodes, and keeps the nodes and pods on it.
func (o *Options) On(ctx context.Context, plane *localcluster.ControlPlane) error {
	prepared, err := o.prepare()
	if err != nil {
		return err
	}
	nodes, err := o.furnish(ctx, plane, prepared)
	if err != nil {
		return err
	}
	return o.schedule(ctx, plane, prepared, nodes)
}

// furnish creates the fake nodes and the objects, and returns the names of the nodes.
func (o *Options) furnish(ctx context.Context, plane *localcluster.ControlPlane, prepared prepared) ([]string, error) {
	nodes, err := plane.AddNodes(ctx, o.Nodes)
	if err != nil {
		return nil, err
	}
	if err := plane.CreateNodes(ctx, prepared.plan.nodes...); err != nil {
		return nil, err
	}
	if err := plane.CreateObjects(ctx, prepared.objects...); err != nil {
		return nil, err
	}
	for _, node := range prepared.plan.nodes {
		nodes = append(nodes, node.Name)
	}
	fmt.Fprintf(o.Out, "%d fake nodes are ready\n", len(nodes))
	return nodes, nil
}

// schedule starts the scheduler, creates the pods, and prints the tables.
func (o *Options) schedule(
	ctx context.Context, plane *localcluster.ControlPlane, prepared prepared, nodes []string,
) (err error) {
	plan := prepared.plan
	if prepared.endpoint != "" {
		prometheus, failed := plane.StartPrometheus(ctx, o.Prometheus, prepared.endpoint)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, prometheus.Stop()) }()
		fmt.Fprintf(o.Out, "NodeLoad: Prometheus at %s has the loads in the nodes' annotations %scpu and memory\n",
			prepared.endpoint, localcluster.LoadAnnotation)
	}
	scheduler, stop, err := o.startScheduler(ctx, plane, prepared.extender)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	profiles := strings.Join(prepared.profiles, ", ")
	fmt.Fprintf(o.Out, "profiles in %s: %s\ncreating %d pods\n", o.Config, profiles, len(plan.pods()))
	if plan.orphan {
		fmt.Fprintf(o.Out, "note: pods that name no scheduler will stay Pending, "+
			"because the configuration has no profile default-scheduler;\n"+
			"  to fix this, add to the profiles in %s:\n    - schedulerName: %s\n", o.Config, corev1.DefaultSchedulerName)
	}
	results, late := o.place(ctx, plane, plan.waves)
	if results == nil && late != nil {
		return late
	}
	if err := o.show(ctx, plane, scheduler, nodes, results); err != nil {
		return err
	}
	verdict := errors.Join(judge(results), late)
	if o.Keep {
		return o.stay(ctx, plane, verdict)
	}
	return verdict
}

// startScheduler starts the extender, if there is one, and the scheduler. The returned function stops both.
func (o *Options) startScheduler(
	ctx context.Context, plane *localcluster.ControlPlane, planned extenderPlan,
) (scheduler *localcluster.Scheduler, stop func() error, err error) {
	for _, note := range planned.notes {
		fmt.Fprintln(o.Out, note)
	}
	stop = func() error { return nil }
	options := localcluster.SchedulerOptions{Replaces: planned.replaces}
	if planned.config != "" {
		extender, err := plane.StartExtender(ctx, o.Extender, planned.config, planned.profile)
		if err != nil {
			return nil, stop, err
		}
		stop = extender.Stop
		for _, url := range planned.replaced {
			fmt.Fprintf(o.Out, "extender %s is served by scheduler-extender with %s\n", url, planned.config)
		}
		options.Extender = extender
	}
	if scheduler, err = plane.StartScheduler(ctx, o.KubeScheduler, o.Config, options); err != nil {
		return nil, stop, err
	}
	stopExtender := stop
	return scheduler, func() error { return errors.Join(scheduler.Stop(), stopExtender()) }, nil
}

// place creates one wave after the other, and waits for its placements, within --timeout for all. After a timeout it
// also returns results for all pods.
func (o *Options) place(ctx context.Context, plane *localcluster.ControlPlane, waves [][]*corev1.Pod) ([]result, error) {
	deadline, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var results []result
	for number, pods := range waves {
		if deadline.Err() != nil && ctx.Err() == nil {
			return append(results, notCreated(waves[number:])...), nil
		}
		placements, err := plane.Place(deadline, pods...)
		if errors.Is(err, context.DeadlineExceeded) {
			return append(results, notCreated(waves[number:])...), err
		} else if err != nil {
			return nil, err
		}
		for i, pod := range pods {
			results = append(results, result{pod, placements[i]})
		}
		if number == len(waves)-1 {
			break
		}
		if err := plane.AwaitRunning(deadline, placements); errors.Is(err, context.DeadlineExceeded) {
			return append(results, notCreated(waves[number+1:])...), err
		} else if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// notCreated returns the results of waves that were never created.
func notCreated(waves [][]*corev1.Pod) []result {
	var results []result
	for _, pod := range slices.Concat(waves...) {
		results = append(results, result{pod, localcluster.NotCreated(pod)})
	}
	return results
}

// show prints the tables, with the nodes in the order of names.
func (o *Options) show(
	ctx context.Context, plane *localcluster.ControlPlane, scheduler *localcluster.Scheduler, names []string, results []result,
) error {
	client := plane.Client().CoreV1()
	list, err := client.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	nodes := list.Items
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return slices.Index(names, a.Name) - slices.Index(names, b.Name) })
	events, err := client.Events(corev1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := printTable(o.Out, results, nodes); err != nil {
		return err
	}
	measured, err := measuredLoads(ctx, scheduler)
	if err != nil {
		return err
	}
	if err := printNodes(o.Out, nodes, scheduler.Profiles(), results, measured); err != nil {
		return err
	}
	if err := printEvents(o.Out, results, events.Items); err != nil {
		return err
	}
	if o.ShowLog == "" {
		return nil
	}
	return printLog(o.Out, scheduler.LogFile(), o.ShowLog)
}

// printVersions prints the version of each program.
func (o *Options) printVersions(ctx context.Context) error {
	for _, program := range []struct{ name, file string }{
		{"kube-scheduler", o.KubeScheduler},
		{"kube-apiserver", o.KubeAPIServer},
		{"etcd", o.Etcd},
		{"kwok", o.KWOK},
	} {
		limited, cancel := context.WithTimeout(ctx, versionDeadline)
		output, err := exec.CommandContext(limited, program.file, "--version").CombinedOutput()
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
		if err != nil {
			return fmt.Errorf("%s does not run (%s --version: %w); next: rm %[2]s, then make run again, "+
				"which builds it for this machine", program.name, program.file, err)
		}
		fmt.Fprintf(o.Out, "%-15s %s\n", program.name, line)
	}
	return nil
}

// stay keeps everything running until a signal, which is not an error, or until a component ends.
func (o *Options) stay(ctx context.Context, plane *localcluster.ControlPlane, verdict error) error {
	if verdict != nil {
		fmt.Fprintf(o.Out, "%v\n", verdict)
	}
	fmt.Fprintf(o.Out, "everything keeps running until Ctrl-C; logs are in %s; to inspect it:\n  export KUBECONFIG=%s\n",
		plane.Folder(), plane.Kubeconfig())
	select {
	case <-ctx.Done():
		return verdict
	case <-plane.Failed():
		return plane.Failure()
	}
}
