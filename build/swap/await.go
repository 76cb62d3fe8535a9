// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

const (
	// pollInterval is the time between queries to the container runtime
	// during a replacement. The runtime answers in milliseconds.
	pollInterval = 100 * time.Millisecond
	// nudgeAfter is the time that kubelet gets to start the new pod after it has cleaned up the old one. kubelet 1.23
	// retries a static pod that had to wait for its predecessor only after 10 to 15 seconds, but handles a changed
	// manifest at once. So the manifest is renamed into place again, with a new restart time.
	nudgeAfter = 300 * time.Millisecond
	// nudgeAgainAfter is the time until the next such rename, long enough for a busy node. One rename too many costs
	// those 10 to 15 seconds.
	nudgeAgainAfter = 1500 * time.Millisecond
	// cleanUpTime is the assumed time to clean up the old pod after its
	// container has ended, if there are no control groups to watch.
	cleanUpTime = 2 * time.Second
	// nudges limits these renames; after that, kubelet starts the pod on its own.
	nudges = 6
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

// versions returns the manifest for each rename of a replacement; nil for no further rename.
type versions func(attempt int) ([]byte, error)

// marked returns versions of a manifest that differ only in the restart time. No manifest is ever restored byte for
// byte: kubelet derives the pod's UID from the manifest's content, and a pod with a known UID waits for the restart
// back-off of that UID, up to five minutes.
func marked(manifest []byte) versions {
	return func(attempt int) ([]byte, error) {
		if attempt > nudges {
			return nil, nil
		}
		return restarted(manifest)
	}
}

func restarted(manifest []byte) ([]byte, error) {
	edit, err := Restart(manifest, time.Now())
	return edit.Manifest, err
}

// replacement is one change of the manifest, from the first rename until its scheduler works.
type replacement struct {
	tool *Tool
	// pod is the pod in the manifest; its names are the same before and after.
	pod      *Pod
	want     wanted
	versions versions
	// found is the expected content of the manifest before the next write; nil: no file.
	found []byte
	// cgroups are the control groups of the pods that ran before.
	cgroups []string
	// holder is the lease holder before the replacement.
	holder holder
	mode   fs.FileMode

	// attempt counts the renames; written is the time of the last one, and version is its restart time.
	attempt int
	written time.Time
	version string
	// oldSeen reports whether an old container was seen running; oldGone is when the last of them had ended; cleanedUp
	// is when kubelet had cleaned up.
	oldSeen            bool
	oldGone, cleanedUp time.Time
	// leaseFree is true once the old scheduler's lease needs no further work.
	leaseFree bool
	// begun is when kubelet was first seen to work on the current
	// version; words is kubelet's status for it, as of asked.
	begun, asked time.Time
	words        string
	// first is the time of the first rename.
	first time.Time
	// printed are the progress messages so far; nil: print none.
	printed map[string]bool
	// lastProblem is why the scheduler does not work yet.
	lastProblem string
	// leads reports whether the new scheduler holds the lease, or needs none.
	leads bool
}

// changedByOther is the error for a manifest that another program
// or a person changed during this run. Their version stays.
type changedByOther struct{ manifest string }

func (c *changedByOther) Error() string {
	return fmt.Sprintf("another program or a person has written %s during this run; it was left as it is", c.manifest)
}

// lookTime is the timeout for one look at the container runtime, the scheduler and its lease.
const lookTime = 5 * time.Second

// run writes the manifest and waits until its scheduler works. Afterwards r.found is the current manifest; if r.attempt
// is 0, nothing was written. A *failure means that the scheduler does not work.
func (r *replacement) run(ctx context.Context) error {
	t := r.tool
	r.printed = map[string]bool{}
	// Errors here make the change slower, but not wrong.
	pods := map[string]bool{}
	if sandboxes, containers, err := r.observe(ctx); err == nil {
		for _, sandbox := range sandboxes {
			pods[sandbox.podUID] = true
		}
		for _, container := range containers {
			r.oldSeen = r.oldSeen || container.running
		}
	}
	r.cgroups = podCgroups(cgroupRoot, pods)
	if r.want.lease != nil {
		r.holder, _ = t.cluster.holder(ctx, *r.want.lease)
	}
	r.mode = 0o600
	if info, err := os.Stat(t.manifest); err == nil {
		r.mode = info.Mode().Perm()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.write(); err != nil {
		return err
	}
	t.say("wrote %s", t.manifest)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		looking, stop := context.WithTimeout(ctx, lookTime)
		started, done, err := r.look(looking)
		stop()
		if done || err != nil {
			return err
		}
		if !started && r.nudgeDue() {
			var other *changedByOther
			if err := r.write(); errors.As(err, &other) {
				return err
			} else if err != nil {
				// This write only speeds kubelet up.
				r.lastProblem = err.Error()
			}
		}
		if late := r.late(); late != "" {
			return &failure{reason: late + ": " + r.problem(), detail: r.lastWords(ctx)}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// late reports the timeout that has passed; empty: none. The
// scheduler's own timeout starts when kubelet starts on its pod.
func (r *replacement) late() string {
	switch timeout := r.tool.options.Timeout; {
	case r.begun.IsZero() && time.Since(r.first) > max(kubeletTime, timeout):
		return fmt.Sprintf("kubelet has not started it within %s", max(kubeletTime, timeout))
	case !r.begun.IsZero() && time.Since(r.begun) > timeout:
		return fmt.Sprintf("it still does not work after %s", timeout)
	}
	return ""
}

// problem returns why the scheduler does not work yet, with kubelet's status.
func (r *replacement) problem() string {
	if r.words == "" {
		return r.lastProblem
	}
	return r.lastProblem + "; kubelet reports: " + r.words
}

// askKubelet reads kubelet's status for the current version from the API server, at most once a second.
func (r *replacement) askKubelet(ctx context.Context) {
	if time.Since(r.asked) < time.Second {
		return
	}
	r.asked = time.Now()
	status, err := r.tool.cluster.kubeletStatusOf(ctx, r.pod.Namespace, r.tool.podName(r.pod), r.version)
	if err != nil {
		return
	}
	r.words = status.words
	if status.begun && r.begun.IsZero() {
		r.begun = r.asked
	}
}

// write renames the next version into place, if there is one.
func (r *replacement) write() error {
	content, err := r.versions(r.attempt)
	if content == nil || err != nil {
		return err
	}
	described, err := Describe(content)
	if err != nil {
		return err
	}
	if there, err := readIfThere(r.tool.manifest); err != nil {
		return err
	} else if sum(there) != sum(r.found) {
		return nextstep.With(&changedByOther{r.tool.manifest}, "kube-scheduler-swap status")
	}
	if err := writeDurably(r.tool.manifest, content, r.mode); err != nil {
		// An error after the rename does not undo it.
		if there, _ := readIfThere(r.tool.manifest); sum(there) != sum(content) {
			return nextstep.With(fmt.Errorf("cannot write %s: %w", r.tool.manifest, err),
				"make its directory writable, and make room on its disk")
		}
	}
	r.found, r.tool.wrote = content, true
	r.attempt, r.written, r.version = r.attempt+1, time.Now(), described.Object.Annotations[RestartedAtAnnotation]
	// Nothing is known about this version yet.
	r.begun, r.asked, r.words = time.Time{}, time.Time{}, ""
	if r.attempt == 1 {
		r.first = r.written
	}
	return nil
}

// nudgeDue reports whether kubelet has cleaned up the old pod, but has not started the new one in time.
func (r *replacement) nudgeDue() bool {
	if r.oldGone.IsZero() {
		return false
	}
	if r.cleanedUp.IsZero() {
		if !gone(r.cgroups) || len(r.cgroups) == 0 && time.Since(r.oldGone) < cleanUpTime {
			return false
		}
		r.cleanedUp = time.Now()
	}
	if r.attempt > 1 {
		return time.Since(r.written) > nudgeAgainAfter
	}
	return time.Since(r.cleanedUp) > nudgeAfter && time.Since(r.written) > nudgeAfter
}

func (r *replacement) observe(ctx context.Context) ([]sandbox, []container, error) {
	name := r.tool.podName(r.pod)
	sandboxes, err := r.tool.runtime.sandboxesOf(ctx, r.pod.Namespace, name)
	if err != nil {
		return nil, nil, err
	}
	containers, err := r.tool.runtime.containersOf(ctx, r.pod.Namespace, name, r.pod.ContainerName)
	return sandboxes, containers, err
}

// fresh returns the IDs of the sandboxes of the current version. A pod whose sandbox failed gets another one.
func (r *replacement) fresh(sandboxes []sandbox) map[string]bool {
	found := map[string]bool{}
	for _, sandbox := range sandboxes {
		if sandbox.restartedAt == r.version {
			found[sandbox.id] = true
		}
	}
	return found
}

// once prints a progress message the first time only.
func (r *replacement) once(format string, arguments ...any) {
	if r.printed == nil {
		return
	}
	if line := fmt.Sprintf(format, arguments...); !r.printed[line] {
		r.printed[line] = true
		r.tool.say("%s", line)
	}
}

// look checks the progress of the replacement: started reports whether kubelet has begun with the current version, done
// whether its scheduler works.
func (r *replacement) look(ctx context.Context) (started, done bool, err error) {
	sandboxes, containers, err := r.observe(ctx)
	if err != nil {
		// The runtime may be restarting; the deadline ends the retries.
		r.lastProblem, _ = nextstep.Split(err, "")
		return false, false, nil
	}
	fresh := r.fresh(sandboxes)
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
		r.oldSeen = true
		r.lastProblem = "kubelet has not stopped the old container; see journalctl -u kubelet"
		return false, false, nil
	}
	if r.oldGone.IsZero() {
		r.oldGone = time.Now()
		r.once("the old container has stopped")
	}
	r.freeLease(ctx)
	if len(fresh) == 0 {
		r.lastProblem = "kubelet has not started the new pod; see journalctl -u kubelet"
		r.askKubelet(ctx)
		return !r.begun.IsZero(), false, nil
	}
	if r.begun.IsZero() {
		r.begun = time.Now()
	}
	if ended > exitsAllowed {
		return true, false, &failure{reason: "its container exited repeatedly", detail: r.lastWords(ctx)}
	}
	if running == nil {
		r.lastProblem = "its container does not run"
		r.askKubelet(ctx)
		return true, false, nil
	}
	r.words = ""
	if r.want.imageID != "" && running.imageID != r.want.imageID {
		return true, false, &failure{reason: fmt.Sprintf("kubelet started the image %s, not %s: another image has the same name", running.imageID, r.want.imageID)}
	}
	r.once("the new container runs (image %s)", short(running.imageID))
	if problem := healthy(ctx, r.want.health); problem != "" {
		r.lastProblem = problem
		return true, false, nil
	}
	r.once("it is healthy (%s)", r.want.health)
	if r.want.lease == nil {
		r.leads = true
		return true, true, nil
	}
	holder, err := r.tool.cluster.holder(ctx, *r.want.lease)
	if err != nil {
		r.lastProblem = err.Error()
		return true, false, nil
	}
	switch here := isHere(holder.identity); {
	case holder.identity == "" || holder.identity == r.holder.identity && here:
		r.lastProblem = fmt.Sprintf("it does not get the lease %s", *r.want.lease)
		return true, false, nil
	case holder.renewed.Equal(r.holder.renewed):
		r.lastProblem = fmt.Sprintf("no scheduler renews the lease %s, which %s holds", *r.want.lease, holder.identity)
		return true, false, nil
	case here:
		r.leads = true
		r.once("it holds the lease %s", *r.want.lease)
	default:
		r.once("it stands by: %s holds and renews the lease %s", holder.identity, *r.want.lease)
	}
	return true, true, nil
}

// freeLease releases the lease of this node's old scheduler after its process has
// ended. A scheduler releases its lease on shutdown, but not if it was renewing it
// at that moment, or crashed. Then no scheduler would work until the lease expires.
func (r *replacement) freeLease(ctx context.Context) {
	if r.leaseFree || r.want.lease == nil {
		return
	}
	if !isHere(r.holder.identity) || !r.oldSeen {
		r.leaseFree = true
		return
	}
	// After an error, the next look retries.
	r.leaseFree, _ = r.tool.cluster.release(ctx, *r.want.lease, r.holder.identity)
}

// lastWords returns the exit status and the last log lines of the new pod's newest container.
func (r *replacement) lastWords(ctx context.Context) string {
	sandboxes, containers, err := r.observe(ctx)
	if err != nil {
		return ""
	}
	fresh := r.fresh(sandboxes)
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
	return r.tool.runtime.ending(ctx, newest.id)
}

// isHere reports whether a lease holder is a scheduler of this host.
// kube-scheduler's identity is the host name, "_" and a random part.
func isHere(identity string) bool {
	name, err := os.Hostname()
	return err == nil && strings.HasPrefix(identity, name+"_")
}

// prober connects only to schedulers of this node, whose certificates are self-signed.
var prober = &http.Client{
	Timeout:   2 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// healthy returns why a scheduler is not healthy; empty if it is.
func healthy(ctx context.Context, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	answer, err := prober.Do(request)
	if err != nil {
		return fmt.Sprintf("it does not answer: %v", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
		return fmt.Sprintf("%s returns %s: %s", url, answer.Status, strings.TrimSpace(string(text)))
	}
	return ""
}

// short returns the first 12 digits of an image ID.
func short(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}
