// SPDX-License-Identifier: Apache-2.0

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

	"kube-scheduler-fork/build/localcluster"
)

// versionDeadline bounds how long a program may take to say its version.
const versionDeadline = 30 * time.Second

// options are the command line's.
type options struct {
	apiServer, scheduler, etcd, kwok, config string
	extender                                 string
	extenderConfig, defaultExtenderConfig    string
	extenderProfile                          string
	nodes, pods                              int
	manifests                                []string
	timeout                                  time.Duration
	showLog                                  string
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
	profiles, err := localcluster.ReadProfiles(o.config)
	if err != nil {
		return err
	}
	extender, err := o.planExtender()
	if err != nil {
		return err
	}
	plan, err := newPlan(profiles, o.pods, o.manifests)
	if err != nil {
		return err
	}
	if err := o.printVersions(ctx); err != nil {
		return err
	}

	plane, err := localcluster.Start(ctx, localcluster.Options{
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
	nodes, err := plane.AddNodes(ctx, o.nodes)
	if err != nil {
		return err
	}
	if err := plane.CreateNodes(ctx, plan.nodes...); err != nil {
		return err
	}
	for _, node := range plan.nodes {
		nodes = append(nodes, node.Name)
	}
	fmt.Fprintf(o.out, "%d fake nodes are ready\n", len(nodes))
	scheduler, err := o.startScheduler(ctx, plane, extender)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "profiles in %s: %s\ncreating %d pods\n", o.config, strings.Join(profiles, ", "), len(plan.pods()))
	if plan.orphan {
		fmt.Fprintf(o.out, "note: pods that name no scheduler will stay Pending, "+
			"because the configuration has no profile default-scheduler;\n"+
			"  the cure: add to the profiles in %s:\n    - schedulerName: %s\n", o.config, corev1.DefaultSchedulerName)
	}
	results, late := o.place(ctx, plane, plan.waves)
	if results == nil && late != nil {
		return late
	}
	if err := o.show(ctx, plane, scheduler, nodes, results); err != nil {
		return err
	}
	verdict := errors.Join(judge(results), late)
	if o.keep {
		return o.stay(ctx, plane, verdict)
	}
	return verdict
}

// startScheduler starts the scheduler, and before it the extender that it asks, if there is one.
func (o *options) startScheduler(
	ctx context.Context, plane *localcluster.ControlPlane, planned extenderPlan,
) (*localcluster.Scheduler, error) {
	for _, note := range planned.notes {
		fmt.Fprintln(o.out, note)
	}
	if planned.config == "" {
		return plane.StartScheduler(ctx, o.scheduler, o.config)
	}
	extender, err := plane.StartExtender(ctx, o.extender, planned.config, planned.profile)
	if err != nil {
		return nil, err
	}
	for _, url := range planned.replaced {
		fmt.Fprintf(o.out, "extender %s is served by scheduler-extender with %s\n", url, planned.config)
	}
	return plane.StartScheduler(ctx, o.scheduler, o.config, localcluster.WithExtender(extender, planned.replaces))
}

// place places the waves one after the other; all of them together have the time of the flag --timeout. When it runs out, there
// are results for all pods nevertheless, beside the error, if there is one.
func (o *options) place(ctx context.Context, plane *localcluster.ControlPlane, waves [][]*corev1.Pod) ([]result, error) {
	deadline, cancel := context.WithTimeout(ctx, o.timeout)
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

// notCreated gives the results of waves whose turn never came.
func notCreated(waves [][]*corev1.Pod) []result {
	var results []result
	for _, pod := range slices.Concat(waves...) {
		results = append(results, result{pod, localcluster.NotCreated(pod)})
	}
	return results
}

// show prints what became of the pods. The nodes are named in the order in which they are shown.
func (o *options) show(
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
	if err := printTable(o.out, results, nodes); err != nil {
		return err
	}
	if err := printNodes(o.out, nodes, scheduler.Profiles(), results); err != nil {
		return err
	}
	if err := printEvents(o.out, results, events.Items); err != nil {
		return err
	}
	if o.showLog == "" {
		return nil
	}
	return printLog(o.out, scheduler.LogFile(), o.showLog)
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

// stay leaves everything running until a signal comes, which is then no error, or until a component ends.
func (o *options) stay(ctx context.Context, plane *localcluster.ControlPlane, verdict error) error {
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
