// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

const (
	// pollInterval is the time between queries to the container runtime
	// during a replacement. The runtime answers in milliseconds.
	pollInterval = 100 * time.Millisecond
	// lookTime is the timeout for one look at the container runtime, the scheduler and its lease.
	lookTime = 5 * time.Second
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

// wanted is the expected state after a replacement.
type wanted struct {
	// imageID is the image that the container must run; empty: the image in the manifest.
	imageID string
	// health is the URL of the scheduler's health check.
	health string
	// lease is the lease that this scheduler, or one on another
	// control-plane node, must renew; nil without leader election.
	lease *schedulerpod.Lease
}

// failure is the reason why a scheduler is not accepted as working.
type failure struct {
	reason string
	// detail is the exit status of its container and the end of its log.
	detail string
	// leader is the lease holder if the failing scheduler is another node's: it did not bind the probe pod.
	leader string
	// unheard reports whether no scheduler set a condition on the probe pod.
	unheard bool
}

func (f *failure) Error() string {
	if f.detail == "" {
		return f.reason
	}
	return f.reason + ": " + f.detail
}

// leaderOf returns the scheduler of another node that caused the failure; empty: none.
func leaderOf(reason error) string {
	var failed *failure
	if errors.As(reason, &failed) {
		return failed.leader
	}
	return ""
}

// watch observes how kubelet replaces the scheduler's pod after a change of its manifest.
type watch struct {
	node *node
	// pod is the pod in the manifest; its names are the same before and after.
	pod  *Pod
	want wanted
	// cgroups are the control groups of the pods that ran before.
	cgroups []string
	// holder is the lease holder before the replacement.
	holder holder

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
	// lastProblem is why the scheduler does not work yet.
	lastProblem string
	// leads reports whether the new scheduler holds the lease, or needs none.
	leads bool
}

// watchReplacement begins before the manifest is written. Errors here make the change slower, but not wrong.
func (n *node) watchReplacement(ctx context.Context, pod *Pod, want wanted) *watch {
	w := &watch{node: n, pod: pod, want: want, printed: map[string]bool{}}
	pods := map[string]bool{}
	if sandboxes, containers, err := w.observe(ctx); err == nil {
		for _, sandbox := range sandboxes {
			pods[sandbox.podUID] = true
		}
		for _, container := range containers {
			w.oldSeen = w.oldSeen || container.running
		}
	}
	w.cgroups = podCgroups(cgroupRoot, pods)
	if want.lease != nil {
		w.holder, _ = n.cluster.holder(ctx, *want.lease)
	}
	return w
}

// works returns what is wrong with the running scheduler; nil if it
// matches want. leads reports whether it holds the lease, or needs none.
func (n *node) works(ctx context.Context, pod *Pod, want wanted) (leads bool, err error) {
	w := &watch{node: n, pod: pod, want: want, version: pod.Object.Annotations[RestartedAtAnnotation], leaseFree: true}
	if want.lease != nil {
		if w.holder, err = n.cluster.holder(ctx, *want.lease); err != nil {
			return false, err
		}
		// The current holder may be this scheduler itself: it only has to renew the lease.
		w.holder.identity = ""
	}
	ctx, stop := context.WithTimeout(ctx, worksTime)
	defer stop()
	for {
		_, done, err := w.look(ctx)
		if done || err != nil {
			return w.leads, err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return false, errors.New(w.lastProblem)
		}
	}
}

// wrote sets the version that kubelet must start now. Nothing is known about it yet.
func (w *watch) wrote(version string, at time.Time) {
	w.version, w.begun, w.asked, w.words = version, time.Time{}, time.Time{}, ""
	if w.first.IsZero() {
		w.first = at
	}
}

// late reports the timeout that has passed; empty: none. The
// scheduler's own timeout starts when kubelet starts on its pod.
func (w *watch) late(timeout time.Duration) string {
	switch {
	case w.begun.IsZero() && time.Since(w.first) > max(kubeletTime, timeout):
		return fmt.Sprintf("kubelet has not started it within %s", max(kubeletTime, timeout))
	case !w.begun.IsZero() && time.Since(w.begun) > timeout:
		return fmt.Sprintf("it still does not work after %s", timeout)
	}
	return ""
}

// problem returns why the scheduler does not work yet, with kubelet's status.
func (w *watch) problem() string {
	if w.words == "" {
		return w.lastProblem
	}
	return w.lastProblem + "; kubelet reports: " + w.words
}

// askKubelet reads kubelet's status for the current version from the API server, at most once a second.
func (w *watch) askKubelet(ctx context.Context) {
	if time.Since(w.asked) < time.Second {
		return
	}
	w.asked = time.Now()
	status, err := w.node.cluster.kubeletStatusOf(ctx, w.pod.Namespace, w.node.podName(w.pod), w.version)
	if err != nil {
		return
	}
	w.words = status.words
	if status.begun && w.begun.IsZero() {
		w.begun = w.asked
	}
}

// cleanedUp returns when kubelet had cleaned up the old pod; zero: not yet.
func (w *watch) cleanedUp() time.Time {
	if w.cleaned.IsZero() && !w.oldGone.IsZero() && gone(w.cgroups) &&
		(len(w.cgroups) > 0 || time.Since(w.oldGone) >= cleanUpTime) {
		w.cleaned = time.Now()
	}
	return w.cleaned
}

func (w *watch) observe(ctx context.Context) ([]sandbox, []container, error) {
	name := w.node.podName(w.pod)
	sandboxes, err := w.node.runtime.sandboxesOf(ctx, w.pod.Namespace, name)
	if err != nil {
		return nil, nil, err
	}
	containers, err := w.node.runtime.containersOf(ctx, w.pod.Namespace, name, w.pod.ContainerName)
	return sandboxes, containers, err
}

// fresh returns the IDs of the sandboxes of the current version. A pod whose sandbox failed gets another one.
func (w *watch) fresh(sandboxes []sandbox) map[string]bool {
	found := map[string]bool{}
	for _, sandbox := range sandboxes {
		if sandbox.restartedAt == w.version {
			found[sandbox.id] = true
		}
	}
	return found
}

// once prints a progress message the first time only.
func (w *watch) once(format string, arguments ...any) {
	if w.printed == nil {
		return
	}
	if line := fmt.Sprintf(format, arguments...); !w.printed[line] {
		w.printed[line] = true
		w.node.say("%s", line)
	}
}

// look checks the progress of the replacement: started reports whether kubelet has begun with the current version, done
// whether its scheduler works.
func (w *watch) look(ctx context.Context) (started, done bool, err error) {
	sandboxes, containers, err := w.observe(ctx)
	if err != nil {
		// The runtime may be restarting; the deadline ends the retries.
		w.lastProblem, _ = nextstep.Split(err, "")
		return false, false, nil
	}
	fresh := w.fresh(sandboxes)
	var (
		oldRuns bool
		running *container
		ended   int
	)
	for i, c := range containers {
		switch {
		case fresh[c.sandbox] && c.running:
			running = &containers[i]
		case fresh[c.sandbox]:
			ended++
		case c.running:
			oldRuns = true
		}
	}
	if oldRuns {
		w.oldSeen = true
		w.lastProblem = "kubelet has not stopped the old container; see journalctl -u kubelet"
		return false, false, nil
	}
	if w.oldGone.IsZero() {
		w.oldGone = time.Now()
		w.once("the old container has stopped")
	}
	w.freeLease(ctx)
	if len(fresh) == 0 {
		w.lastProblem = "kubelet has not started the new pod; see journalctl -u kubelet"
		w.askKubelet(ctx)
		return !w.begun.IsZero(), false, nil
	}
	if w.begun.IsZero() {
		w.begun = time.Now()
	}
	if ended > exitsAllowed {
		return true, false, &failure{reason: "its container exited repeatedly", detail: w.lastWords(ctx)}
	}
	if running == nil {
		w.lastProblem = "its container does not run"
		w.askKubelet(ctx)
		return true, false, nil
	}
	w.words = ""
	if w.want.imageID != "" && running.imageID != w.want.imageID {
		return true, false, &failure{reason: fmt.Sprintf("kubelet started the image %s, not %s: another image has the same name", running.imageID, w.want.imageID)}
	}
	w.once("the new container runs (image %s)", short(running.imageID))
	w.lastProblem = w.unready(ctx)
	return true, w.lastProblem == "", nil
}

// unready returns why the running scheduler does not work; empty if it is healthy and its lease is renewed.
func (w *watch) unready(ctx context.Context) string {
	if problem := healthy(ctx, w.want.health); problem != "" {
		return problem
	}
	w.once("it is healthy (%s)", w.want.health)
	if w.want.lease == nil {
		w.leads = true
		return ""
	}
	holder, err := w.node.cluster.holder(ctx, *w.want.lease)
	if err != nil {
		return err.Error()
	}
	switch here := isHere(holder.identity); {
	case holder.identity == "" || holder.identity == w.holder.identity && here:
		return fmt.Sprintf("it does not get the lease %s", *w.want.lease)
	case holder.renewed.Equal(w.holder.renewed):
		return fmt.Sprintf("no scheduler renews the lease %s, which %s holds", *w.want.lease, holder.identity)
	case here:
		w.leads = true
		w.once("it holds the lease %s", *w.want.lease)
	default:
		w.once("it stands by: %s holds and renews the lease %s", holder.identity, *w.want.lease)
	}
	return ""
}

// freeLease releases the lease of this node's old scheduler after its process has
// ended. A scheduler releases its lease on shutdown, but not if it was renewing it
// at that moment, or crashed. Then no scheduler would work until the lease expires.
func (w *watch) freeLease(ctx context.Context) {
	if w.leaseFree || w.want.lease == nil {
		return
	}
	if !isHere(w.holder.identity) || !w.oldSeen {
		w.leaseFree = true
		return
	}
	// After an error, the next look retries.
	w.leaseFree, _ = w.node.cluster.release(ctx, *w.want.lease, w.holder.identity)
}

// lastWords returns the exit status and the last log lines of the new pod's newest container.
func (w *watch) lastWords(ctx context.Context) string {
	sandboxes, containers, err := w.observe(ctx)
	if err != nil {
		return ""
	}
	fresh := w.fresh(sandboxes)
	var newest *container
	for i, c := range containers {
		// Prefer an ended container to one that has just started.
		if fresh[c.sandbox] && (newest == nil || newest.running && !c.running || newest.running == c.running && c.created.After(newest.created)) {
			newest = &containers[i]
		}
	}
	if newest == nil {
		return ""
	}
	return w.node.runtime.ending(ctx, newest.id)
}
