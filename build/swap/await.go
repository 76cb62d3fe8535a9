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
	// pollInterval is how often the container runtime is asked while the scheduler is replaced; it answers in
	// milliseconds.
	pollInterval = 100 * time.Millisecond
	// nudgeAfter is how long kubelet gets to make room for the new pod after it is done with the old one. kubelet 1.23
	// looks again at a static pod that had to wait for its predecessor only after 10 to 15 seconds, but takes one whose
	// manifest changes at once: so the manifest is renamed again, with another time of the restart in it.
	nudgeAfter = 300 * time.Millisecond
	// nudgeAgainAfter is how long kubelet gets after that, a busy node included. A rename too many costs those 10 to 15
	// seconds.
	nudgeAgainAfter = 1500 * time.Millisecond
	// cleanUpTime is how long kubelet takes for the old pod once its container has ended, where no control groups tell.
	cleanUpTime = 2 * time.Second
	// nudges bounds how often the manifest is renamed again; kubelet gets there by itself afterwards.
	nudges = 6
	// kubeletTime is how long kubelet may take until it begins with the new pod. It waits for the old one first: two
	// minutes for its volumes, if they cannot be mounted, and the time that its container gets to end.
	kubeletTime = 6 * time.Minute
	// exitsAllowed is how often the new container may end. One start may meet the API server at a bad moment.
	exitsAllowed = 1
)

// wanted is what has to run in the end.
type wanted struct {
	// imageID is what the container has to run; empty: whatever the manifest's image is.
	imageID string
	// health is where the scheduler answers.
	health string
	// lease is what the scheduler, or that of another control-plane node, has to renew; nil without leader election.
	lease *schedulerpod.Lease
}

// failure is why a scheduler is not taken for working.
type failure struct {
	reason string
	// detail is how its container ended and what it wrote last.
	detail string
	// leader is the holder of the lease, if it is another node's scheduler that does not work: it bound no probe pod.
	leader string
	// unheard tells that no scheduler said anything about the probe pod.
	unheard bool
}

func (f *failure) Error() string {
	if f.detail == "" {
		return f.reason
	}
	return f.reason + ": " + f.detail
}

// versions makes the manifest for each rename of one replacement: nil when no other is to follow.
type versions func(attempt int) ([]byte, error)

// marked gives versions of a manifest that differ in the time of the restart only. No manifest is ever put back byte
// for byte: kubelet makes the pod's UID from its content, and a pod whose UID ran before waits for that one's restart
// back-off, up to five minutes.
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

// replacement is one change of the manifest, from the first rename to a scheduler that works.
type replacement struct {
	tool *Tool
	// pod is what the manifest describes: its names are the same before and after.
	pod      *Pod
	want     wanted
	versions versions
	// found is what has to lie there when the next version is written; nil: nothing.
	found []byte
	// cgroups are the control groups of the pods that were there before.
	cgroups []string
	// holder is who held the lease before.
	holder holder
	mode   fs.FileMode

	// attempt counts the renames; written is when the last one was, and version its mark.
	attempt int
	written time.Time
	version string
	// oldSeen tells whether an old container was seen to run; oldGone is when none did any more; cleanedUp when kubelet
	// was done with them.
	oldSeen            bool
	oldGone, cleanedUp time.Time
	// leaseFree is true once the old scheduler's lease needs no more care.
	leaseFree bool
	// begun is when kubelet was first seen to begin with the version that lies there now; words is what it says of it,
	// asked at the time asked.
	begun, asked time.Time
	words        string
	// first is when the first version was written.
	first time.Time
	// said are the lines of progress that were printed; nil: none is to be.
	said map[string]bool
	// lastProblem is why the scheduler does not work yet.
	lastProblem string
	// leads tells whether the new scheduler holds the lease, or needs none.
	leads bool
}

// changedByOther says that another program or a person has written the manifest while this one was at work. Theirs
// stays.
type changedByOther struct{ manifest string }

func (c *changedByOther) Error() string {
	return fmt.Sprintf("another program or a person has written %s while this run was at work; it was left as it is", c.manifest)
}

// lookTime is how long one look at the container runtime, the scheduler and its lease may take.
const lookTime = 5 * time.Second

// run puts the manifest into place and waits until its scheduler works. r.found is in the end what lies there; if
// r.attempt is 0, nothing was written. A *failure says that the scheduler does not work.
func (r *replacement) run(ctx context.Context) error {
	t := r.tool
	r.said = map[string]bool{}
	// What cannot be seen now makes the change slower, and no less right.
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
				// It only makes kubelet quicker.
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

// late says that the scheduler has had its time; empty: it has not. Its own time begins when kubelet begins with its
// pod.
func (r *replacement) late() string {
	switch timeout := r.tool.options.Timeout; {
	case r.begun.IsZero() && time.Since(r.first) > max(kubeletTime, timeout):
		return fmt.Sprintf("kubelet has not begun with it in %s", max(kubeletTime, timeout))
	case !r.begun.IsZero() && time.Since(r.begun) > timeout:
		return fmt.Sprintf("it does not work after %s", timeout)
	}
	return ""
}

// problem is why the scheduler does not work yet, and what kubelet says.
func (r *replacement) problem() string {
	if r.words == "" {
		return r.lastProblem
	}
	return r.lastProblem + "; kubelet says: " + r.words
}

// askKubelet looks at what kubelet tells the API server of the version that lies there now, every second at most.
func (r *replacement) askKubelet(ctx context.Context) {
	if time.Since(r.asked) < time.Second {
		return
	}
	r.asked = time.Now()
	says, err := r.tool.cluster.kubeletSays(ctx, r.pod.Namespace, r.tool.podName(r.pod), r.version)
	if err != nil {
		return
	}
	r.words = says.words
	if says.begun && r.begun.IsZero() {
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
		// What fails after the rename has replaced it all the same.
		if there, _ := readIfThere(r.tool.manifest); sum(there) != sum(content) {
			return nextstep.With(fmt.Errorf("cannot write %s: %w", r.tool.manifest, err),
				"make its directory writable, and make room on its disk")
		}
	}
	r.found, r.tool.wrote = content, true
	r.attempt, r.written, r.version = r.attempt+1, time.Now(), described.Object.Annotations[RestartedAtAnnotation]
	// Of this version nothing is known.
	r.begun, r.asked, r.words = time.Time{}, time.Time{}, ""
	if r.attempt == 1 {
		r.first = r.written
	}
	return nil
}

// nudgeDue tells whether kubelet is done with the old pod, and the new one waits all the same.
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

// fresh are the ids of the sandboxes of the version that lies there now. A pod whose sandbox failed gets another one.
func (r *replacement) fresh(sandboxes []sandbox) map[string]bool {
	found := map[string]bool{}
	for _, sandbox := range sandboxes {
		if sandbox.restartedAt == r.version {
			found[sandbox.id] = true
		}
	}
	return found
}

// once prints a line of progress the first time.
func (r *replacement) once(format string, arguments ...any) {
	if r.said == nil {
		return
	}
	if line := fmt.Sprintf(format, arguments...); !r.said[line] {
		r.said[line] = true
		r.tool.say("%s", line)
	}
}

// look sees how far the replacement is: started says that the runtime works on the version that lies there now; done
// that its scheduler works.
func (r *replacement) look(ctx context.Context) (started, done bool, err error) {
	sandboxes, containers, err := r.observe(ctx)
	if err != nil {
		// The runtime may be starting again; the deadline tells when to give up.
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
		r.lastProblem = "kubelet has not ended the old container; see journalctl -u kubelet"
		return false, false, nil
	}
	if r.oldGone.IsZero() {
		r.oldGone = time.Now()
		r.once("the old container has ended")
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
		return true, false, &failure{reason: "its container ended repeatedly", detail: r.lastWords(ctx)}
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

// freeLease ends the lease of the old scheduler of this node, whose process is gone. A scheduler does that itself when
// it is asked to end, but not if it was just renewing its lease, or died: then no scheduler works until the lease runs
// out.
func (r *replacement) freeLease(ctx context.Context) {
	if r.leaseFree || r.want.lease == nil {
		return
	}
	if !isHere(r.holder.identity) || !r.oldSeen {
		r.leaseFree = true
		return
	}
	// If the API server does not answer now, the next look tries again.
	r.leaseFree, _ = r.tool.cluster.release(ctx, *r.want.lease, r.holder.identity)
}

// lastWords is how the newest container of the new pod ended, and what it wrote.
func (r *replacement) lastWords(ctx context.Context) string {
	sandboxes, containers, err := r.observe(ctx)
	if err != nil {
		return ""
	}
	fresh := r.fresh(sandboxes)
	var newest *container
	for i, c := range containers {
		// One that ended tells more than the one that was just started.
		if fresh[c.sandbox] && (newest == nil || newest.running && !c.running || newest.running == c.running && c.created.After(newest.created)) {
			newest = &containers[i]
		}
	}
	if newest == nil {
		return ""
	}
	return r.tool.runtime.ending(ctx, newest.id)
}

// isHere tells whether the identity of a lease's holder is that of a scheduler of this host: its name and a random
// part, kube-scheduler's own rule.
func isHere(identity string) bool {
	name, err := os.Hostname()
	return err == nil && strings.HasPrefix(identity, name+"_")
}

// prober asks schedulers of this node only, whose certificate is their own: no authority vouches for it.
var prober = &http.Client{
	Timeout:   2 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// healthy says why a scheduler is not healthy; empty if it is.
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
		return fmt.Sprintf("%s says %s: %s", url, answer.Status, strings.TrimSpace(string(text)))
	}
	return ""
}

// short is an image id as a person compares it.
func short(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}
