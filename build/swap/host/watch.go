// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/manifest"
)

const (
	// PollInterval is the time between queries to the container runtime
	// during a replacement. The runtime answers in milliseconds.
	PollInterval = 100 * time.Millisecond
	// LookTime is the timeout for one look at the container runtime, the scheduler and its lease.
	LookTime = 5 * time.Second
	// cleanUpTime is the assumed time to clean up the old pod after its
	// container has ended, if there are no control groups to watch.
	cleanUpTime = 2 * time.Second
	// kubeletTime is the time in which kubelet must start on the new pod. kubelet waits for the old pod first: two
	// minutes if its volumes cannot be mounted, plus its termination grace period.
	kubeletTime = 6 * time.Minute
	// exitsAllowed is how often the new container may exit. A
	// single start may fail because the API server is unavailable.
	exitsAllowed = 1
)

// Wanted is the expected state after a replacement.
type Wanted struct {
	// ImageID is the image that the container must run; empty: the image in the manifest.
	ImageID string
	// Health is the URL of the scheduler's health check.
	Health string
	// Lease is the lease that this scheduler, or one on another
	// control-plane node, must renew; nil without leader election.
	Lease *schedulerpod.Lease
}

// Failure is the reason why a scheduler is not accepted as working.
type Failure struct {
	Reason string
	// Detail is the exit status of its container and the end of its log.
	Detail string
	// Leader is the lease holder if the failing scheduler is another node's: it did not bind the probe pod.
	Leader string
	// noCondition reports whether no scheduler set a condition on the probe pod.
	noCondition bool
	// inconclusive reports whether a probe says nothing about the scheduler, as if no node takes the pod (noNode).
	inconclusive, noNode bool
}

func (f *Failure) Error() string {
	if f.Detail == "" {
		return f.Reason
	}
	return f.Reason + ": " + f.Detail
}

// LeaderOf returns the scheduler of another node that caused the failure; empty: none.
func LeaderOf(reason error) string {
	var failed *Failure
	if errors.As(reason, &failed) {
		return failed.Leader
	}
	return ""
}

// Watch observes how kubelet replaces the scheduler's pod after a change of its manifest.
type Watch struct {
	node *Node
	// pod is the pod in the manifest; its names are the same before and after.
	pod  *manifest.Pod
	want Wanted
	// cgroups are the control groups of the pods that ran before.
	cgroups []string
	// holder is the lease holder before the replacement.
	holder resourcelock.LeaderElectionRecord

	// first is the time of the first version of the manifest; version is the restart time of the current one.
	first   time.Time
	version string
	// oldSeen reports whether an old container was seen running; oldGone is when the last of them had ended; cleaned is
	// when kubelet had cleaned up.
	oldSeen          bool
	oldGone, cleaned time.Time
	// leaseFree is true once the old scheduler's lease needs no further work.
	leaseFree bool
	// begun is when kubelet was first seen to work on the current
	// version; words is kubelet's status for it, as of asked.
	begun, asked time.Time
	words        string
	// printed are the progress messages so far; nil: print none.
	printed map[string]bool
	// LastProblem is why the scheduler does not work yet.
	LastProblem string
	// Leads reports whether the new scheduler holds the lease, or needs none.
	Leads bool
}

// WatchReplacement begins before the manifest is written. Errors here make the change slower, but not wrong.
func (n *Node) WatchReplacement(ctx context.Context, pod *manifest.Pod, want Wanted) *Watch {
	w := &Watch{node: n, pod: pod, want: want, printed: map[string]bool{}}
	pods := map[string]bool{}
	if sandboxes, containers, err := w.observe(ctx); err == nil {
		for _, sandbox := range sandboxes {
			pods[sandbox.Labels[podUIDLabel]] = true
		}
		for _, container := range containers {
			w.oldSeen = w.oldSeen || Runs(container)
		}
	}
	w.cgroups = podCgroups(cgroupRoot, pods)
	if want.Lease != nil {
		w.holder, _ = n.Cluster.Holder(ctx, *want.Lease)
	}
	return w
}

// Works returns what is wrong with the running scheduler; nil if it
// matches want. leads reports whether it holds the lease, or needs none.
func (n *Node) Works(ctx context.Context, pod *manifest.Pod, want Wanted) (leads bool, err error) {
	w := &Watch{node: n, pod: pod, want: want, version: pod.Object.Annotations[manifest.RestartedAtAnnotation], leaseFree: true}
	if want.Lease != nil {
		if w.holder, err = n.Cluster.Holder(ctx, *want.Lease); err != nil {
			return false, err
		}
		// The current holder may be this scheduler itself: it only has to renew the lease.
		w.holder.HolderIdentity = ""
	}
	ctx, stop := context.WithTimeout(ctx, worksTime)
	defer stop()
	err = wait.PollImmediateUntilWithContext(ctx, PollInterval, func(ctx context.Context) (bool, error) {
		_, done, err := w.Look(ctx)
		return done, err
	})
	if errors.Is(err, wait.ErrWaitTimeout) {
		return false, errors.New(w.LastProblem)
	}
	return w.Leads, err
}

// Wrote sets the version that kubelet must start now. Nothing is known about it yet.
func (w *Watch) Wrote(version string, at time.Time) {
	w.version, w.begun, w.asked, w.words = version, time.Time{}, time.Time{}, ""
	if w.first.IsZero() {
		w.first = at
	}
}

// Late reports the timeout that has passed; empty: none. The
// scheduler's own timeout starts when kubelet starts on its pod.
func (w *Watch) Late(timeout time.Duration) string {
	switch {
	case w.begun.IsZero() && time.Since(w.first) > max(kubeletTime, timeout):
		return fmt.Sprintf("kubelet has not started it within %s", max(kubeletTime, timeout))
	case !w.begun.IsZero() && time.Since(w.begun) > timeout:
		return fmt.Sprintf("it still does not work after %s", timeout)
	}
	return ""
}

// Problem returns why the scheduler does not work yet, with kubelet's status.
func (w *Watch) Problem() string {
	if w.words == "" {
		return w.LastProblem
	}
	return w.LastProblem + "; kubelet reports: " + w.words
}

// askKubelet reads kubelet's status for the current version from the API server, at most once a second.
func (w *Watch) askKubelet(ctx context.Context) {
	if time.Since(w.asked) < time.Second {
		return
	}
	w.asked = time.Now()
	begun, words, err := w.node.Cluster.kubeletStatusOf(ctx, w.pod.Object.Namespace, w.node.podName(w.pod), w.version)
	if err == nil {
		w.words = words
	}
	if begun && w.begun.IsZero() {
		w.begun = w.asked
	}
}

// CleanedUp returns when kubelet had cleaned up the old pod; zero: not yet.
func (w *Watch) CleanedUp() time.Time {
	if w.cleaned.IsZero() && !w.oldGone.IsZero() && gone(w.cgroups) &&
		(len(w.cgroups) > 0 || time.Since(w.oldGone) >= cleanUpTime) {
		w.cleaned = time.Now()
	}
	return w.cleaned
}

func (w *Watch) observe(ctx context.Context) ([]*cri.PodSandbox, []*cri.Container, error) {
	sandboxes, err := w.node.sandboxes(ctx, w.pod)
	if err != nil {
		return nil, nil, err
	}
	containers, err := w.node.Containers(ctx, w.pod)
	return sandboxes, containers, err
}

// fresh returns the IDs of the sandboxes of the current version. A pod whose sandbox failed gets another one.
func (w *Watch) fresh(sandboxes []*cri.PodSandbox) map[string]bool {
	found := map[string]bool{}
	for _, sandbox := range sandboxes {
		if sandbox.Annotations[manifest.RestartedAtAnnotation] == w.version {
			found[sandbox.Id] = true
		}
	}
	return found
}

// once prints a progress message the first time only.
func (w *Watch) once(format string, arguments ...any) {
	if w.printed == nil {
		return
	}
	if line := fmt.Sprintf(format, arguments...); !w.printed[line] {
		w.printed[line] = true
		w.node.Say("%s", line)
	}
}

// Look checks the progress of the replacement: started reports whether kubelet has begun with the current version, done
// whether its scheduler works.
func (w *Watch) Look(ctx context.Context) (started, done bool, err error) {
	sandboxes, containers, err := w.observe(ctx)
	if err != nil {
		// The runtime may be restarting; the deadline ends the retries.
		w.LastProblem, _ = nextstep.Split(err, "")
		return false, false, nil
	}
	fresh := w.fresh(sandboxes)
	var (
		oldRuns bool
		running *cri.Container
		ended   int
	)
	for _, c := range containers {
		switch {
		case fresh[c.PodSandboxId] && Runs(c):
			running = c
		case fresh[c.PodSandboxId]:
			ended++
		case Runs(c):
			oldRuns = true
		}
	}
	if oldRuns {
		w.oldSeen = true
		w.LastProblem = "kubelet has not stopped the old container; see journalctl -u kubelet"
		return false, false, nil
	}
	if w.oldGone.IsZero() {
		w.oldGone = time.Now()
		w.once("the old container has stopped")
	}
	w.freeLease(ctx)
	if len(fresh) == 0 {
		w.LastProblem = "kubelet has not started the new pod; see journalctl -u kubelet"
		w.askKubelet(ctx)
		return !w.begun.IsZero(), false, nil
	}
	if w.begun.IsZero() {
		w.begun = time.Now()
	}
	if ended > exitsAllowed {
		return true, false, &Failure{Reason: "its container exited repeatedly", Detail: w.LastWords(ctx)}
	}
	if running == nil {
		w.LastProblem = "its container does not run"
		w.askKubelet(ctx)
		return true, false, nil
	}
	w.words = ""
	if w.want.ImageID != "" && running.ImageRef != w.want.ImageID {
		return true, false, &Failure{Reason: fmt.Sprintf("kubelet started the image %s, not %s: another image has the same name", running.ImageRef, w.want.ImageID)}
	}
	w.once("the new container runs (image %s)", Short(running.ImageRef))
	w.LastProblem = w.unready(ctx)
	return true, w.LastProblem == "", nil
}

// unready returns why the running scheduler does not work; empty if it is healthy and its lease is renewed.
func (w *Watch) unready(ctx context.Context) string {
	if problem := Healthy(ctx, w.want.Health); problem != "" {
		return problem
	}
	w.once("it is healthy (%s)", w.want.Health)
	if w.want.Lease == nil {
		w.Leads = true
		return ""
	}
	holder, err := w.node.Cluster.Holder(ctx, *w.want.Lease)
	if err != nil {
		return err.Error()
	}
	switch here := IsHere(holder.HolderIdentity); {
	case holder.HolderIdentity == "" || holder.HolderIdentity == w.holder.HolderIdentity && here:
		return fmt.Sprintf("it does not get the lease %s", *w.want.Lease)
	case holder.RenewTime.Equal(&w.holder.RenewTime):
		return fmt.Sprintf("no scheduler renews the lease %s, which %s holds", *w.want.Lease, holder.HolderIdentity)
	case here:
		w.Leads = true
		w.once("it holds the lease %s", *w.want.Lease)
	default:
		w.once("it stands by: %s holds and renews the lease %s", holder.HolderIdentity, *w.want.Lease)
	}
	return ""
}

// freeLease releases the lease of this node's old scheduler after its process has
// ended. A scheduler releases its lease on shutdown, but not if it was renewing it
// at that moment, or crashed. Then no scheduler would work until the lease expires.
func (w *Watch) freeLease(ctx context.Context) {
	if w.leaseFree || w.want.Lease == nil {
		return
	}
	if !IsHere(w.holder.HolderIdentity) || !w.oldSeen {
		w.leaseFree = true
		return
	}
	// After an error, the next look retries.
	w.leaseFree, _ = w.node.Cluster.release(ctx, *w.want.Lease, w.holder.HolderIdentity)
}

// LastWords returns the exit status and the last log lines of the new pod's newest container.
func (w *Watch) LastWords(ctx context.Context) string {
	sandboxes, containers, err := w.observe(ctx)
	if err != nil {
		return ""
	}
	fresh := w.fresh(sandboxes)
	var newest *cri.Container
	for _, c := range containers {
		// Prefer an ended container to one that has just started.
		if fresh[c.PodSandboxId] && (newest == nil || Runs(newest) && !Runs(c) || Runs(newest) == Runs(c) && c.CreatedAt > newest.CreatedAt) {
			newest = c
		}
	}
	if newest == nil {
		return ""
	}
	return w.node.Runtime.ending(ctx, newest.Id)
}
