// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kube-scheduler-fork/build/nextstep"
)

// Refused is the error for problems that would make the swap fail; nothing was changed.
type Refused struct{ Findings Findings }

func (r *Refused) Error() string {
	return fmt.Sprintf("nothing was changed, because %d problem(s) would make the swap fail", r.Findings.Problems())
}

// UndoneError is the error for a change that failed and was undone.
type UndoneError struct {
	// Reason is why the new scheduler does not count as working.
	Reason error
	// Undo is the error from restoring the old manifest; nil if the old scheduler works again.
	Undo error
	// Kept is the path of the saved old manifest if it could not be restored; Manifest is then the path to copy it to.
	Kept, Manifest string
}

func (e *UndoneError) Error() string {
	switch {
	case e.Undo == nil:
		return blame(e.Reason) + "\nthe old one runs again"
	case e.Kept != "":
		return fmt.Sprintf("%s\nthe old manifest could NOT be restored: %v", blame(e.Reason), e.Undo)
	}
	return fmt.Sprintf("%s\nthe old manifest is restored, but its scheduler was not confirmed to work: %v",
		blame(e.Reason), e.Undo)
}

// blame returns a sentence about which scheduler does not work: the new one, or the current leader on another node.
func blame(reason error) string {
	if leader := leaderOf(reason); leader != "" {
		return fmt.Sprintf("%s holds the lease but binds no pods, so the new scheduler of this node cannot be "+
			"confirmed to work: %v", leader, reason)
	}
	return fmt.Sprintf("the new scheduler does not work: %v", reason)
}

// leaderOf returns the scheduler of another node that caused the failure; empty: none.
func leaderOf(reason error) string {
	var failed *failure
	if errors.As(reason, &failed) {
		return failed.leader
	}
	return ""
}

// atLeader returns the next step when another node's scheduler is the leader and binds nothing.
func atLeader(leader string) string {
	where := "on the node that holds the lease"
	// kube-scheduler's identity is its host name, "_" and a random part.
	if end := strings.LastIndex(leader, "_"); end > 0 {
		where = "on " + leader[:end]
	}
	return where + ": kube-scheduler-swap rollback if it is swapped, otherwise read its scheduler's log; once pods are " +
		"bound again, find the cause before you continue here"
}

// next returns the next step.
func (e *UndoneError) next() string {
	switch leader := leaderOf(e.Reason); {
	case e.Undo == nil && leader != "":
		return atLeader(leader)
	case e.Undo == nil:
		return "fix the problem above, then run this again"
	case e.Kept != "":
		return fmt.Sprintf("fix that, then cp %s %s; kube-scheduler-swap status", e.Kept, e.Manifest)
	}
	return "kube-scheduler-swap status; journalctl -u kubelet; kube-scheduler-swap rollback"
}

func (e *UndoneError) Unwrap() []error { return []error{e.Reason, e.Undo} }

// undoTime is the time for the old scheduler to work again, counted from
// the moment when kubelet begins to start its pod.
const undoTime = 2 * time.Minute

// StuckError is the error for a new scheduler that does not work when there is no working one to restore.
type StuckError struct {
	Reason error
	// Kept is the path of the saved earlier manifest; empty if that manifest was from an unfinished run.
	Kept string
}

func (e *StuckError) Error() string {
	text := blame(e.Reason) + "\nthe previous one did not work before this run either, so the new manifest stays"
	if e.Kept != "" {
		text += "; the previous manifest is kept as " + e.Kept
	}
	return text
}

func (e *StuckError) Unwrap() error { return e.Reason }

// Install swaps the scheduler of this node and waits until the
// new one works. If it does not, Install restores the old one.
func (t *Tool) Install(ctx context.Context, request Request) error {
	return t.orInterrupted(ctx, t.install(ctx, request))
}

// orInterrupted maps errors after a cancel: before the manifest was written, every error becomes errInterruptedBefore.
func (t *Tool) orInterrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || t.wrote || errors.Is(err, errInterruptedBefore) {
		return err
	}
	return errInterruptedBefore
}

func (t *Tool) install(ctx context.Context, request Request) error {
	end, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := checkAccepted(request.Accept); err != nil {
		return err
	}
	probes, err := probesOf(request.Probe)
	if err != nil {
		return err
	}
	if !probes.asked {
		// Check only the profiles that the operator named.
		request.Probe = nil
	}
	p, err := t.plan(ctx, request)
	if err != nil {
		return err
	}
	findings, err := t.check(ctx, p, request)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		// Those findings are only consequences of the cancel.
		return errInterruptedBefore
	}
	if len(findings) > 0 {
		findings.Write(t.options.Output)
	}
	if findings.Problems() > 0 {
		return nextstep.With(&Refused{Findings: findings}, "fix the problems above, then run this again")
	}
	t.say("the new scheduler (%s) accepts its command line and configuration", version(p.swap.Version))
	for _, adopted := range p.adopted {
		t.say("the configuration gets %s, because %s of the manifest no longer has an effect", adopted.line(), adopted)
	}
	want := wanted{imageID: p.imageID, health: p.afterPod.HealthURL(), lease: p.afterPod.Lease(p.accepted)}

	if err := t.load(ctx, p); err != nil {
		return err
	}
	if p.config != nil {
		if err := t.keepEditedConfig(p.swap.ConfigFolder); err != nil {
			return err
		}
		if _, err := t.state.keepConfig(p.config, userOf(p.afterPod)); err != nil {
			return err
		}
		t.say("kept the configuration in %s", p.swap.ConfigFolder)
	}
	if err := t.state.closeConfigs(userOf(p.afterPod)); err != nil {
		return err
	}
	unfinished, err := t.unfinished()
	if err != nil {
		return err
	}
	good, err := t.keepWayBack(p, unfinished, func() error { return t.broken(ctx, p.pod) })
	if err != nil {
		return err
	}
	t.keepImages(ctx, good)
	if p.unchanged() {
		// After an interrupted run or a repeated command, the wanted manifest is already in place. If its scheduler
		// works, no restart is needed.
		leads, problem := t.works(ctx, p.pod, want)
		if ctx.Err() != nil {
			return errInterruptedBefore
		}
		if problem == nil {
			t.say("%s already runs with this image and this configuration", p.swap.Image)
			err := t.probeAll(ctx, probes, want.lease, leads)
			switch leader := leaderOf(err); {
			case err == nil:
				return t.finish(p, p.before)
			case good != nil && identity(good) != identity(p.before):
				// The earlier run was killed before its probe.
				return t.undo(err, p.before, good)
			case ctx.Err() != nil:
				return errInterruptedBefore
			case leader != "":
				return nextstep.With(
					fmt.Errorf("%s already runs with this image and this configuration, and was not changed; "+
						"but %s holds the lease and binds no pods: %w", p.swap.Image, leader, err), "%s", atLeader(leader))
			default:
				return nextstep.With(
					fmt.Errorf("%s already runs with this image and this configuration, and was not changed; but %w",
						p.swap.Image, err),
					"kubectl get nodes; kube-scheduler-swap status; kube-scheduler-swap rollback")
			}
		}
		t.say("the requested manifest is already in place, but does not work: %v", problem)
		// check and the saved manifests ignore the format of a manifest, so save the exact text.
		t.keepExact(p.before)
	}
	if good != nil {
		probes.bound = t.boundBefore(ctx, probes)
	}
	if ctx.Err() != nil {
		return errInterruptedBefore
	}
	if err := t.writeJournal("install", p.after, unfinished); err != nil {
		return err
	}
	change := &replacement{tool: t, pod: p.afterPod, want: want, found: p.before, versions: func(attempt int) ([]byte, error) {
		if attempt > nudges {
			return nil, nil
		}
		marked := p.swap
		marked.RestartedAt = time.Now()
		edit, err := Apply(p.before, marked)
		return edit.Manifest, err
	}}
	err = change.run(ctx)
	if err == nil {
		err = t.probeAll(ctx, probes, want.lease, change.leads)
	}
	var other *changedByOther
	switch {
	case err == nil:
		return t.finish(p, change.found)
	case errors.As(err, &other):
		return err
	case change.attempt == 0:
		if errors.Is(err, context.Canceled) {
			err = errInterruptedBefore
		}
		return errors.Join(err, t.unbegin(unfinished))
	}
	if good == nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("it was interrupted before it was confirmed to work")
		}
		stuck := &StuckError{Reason: err}
		if kept := t.state.stamped("broken", t.started); exists(kept) {
			stuck.Kept = kept
		}
		if leader := leaderOf(err); leader != "" {
			return nextstep.With(stuck, "%s", atLeader(leader))
		}
		return nextstep.With(stuck,
			"fix the problem above, then run this again; or kube-scheduler-swap rollback")
	}
	return t.undo(err, change.found, good)
}

// exists reports whether a file exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// errInterruptedBefore is the error for a run that was interrupted before it changed anything.
var errInterruptedBefore = nextstep.With(errors.New("interrupted before anything was changed"),
	"run the same command again")

// writeJournal records a manifest as not yet seen working, before it is written. It keeps the entries of an
// earlier unfinished run.
func (t *Tool) writeJournal(operation string, manifest []byte, before *journal) error {
	begun := journal{Operation: operation, Started: t.started, Process: os.Getpid(), Unproven: []string{identity(manifest)}}
	if before != nil {
		begun.Unproven = append(begun.Unproven, before.Unproven...)
	}
	if err := writeRecord(t.state.journalFile(), begun); err != nil {
		return nextstep.With(fmt.Errorf("cannot write the journal: %w", err),
			"make room in %s", t.state.folder)
	}
	return nil
}

// unbegin restores the journal from before a run that has written nothing.
func (t *Tool) unbegin(before *journal) error {
	if before == nil {
		return removeDurably(t.state.journalFile())
	}
	return writeRecord(t.state.journalFile(), before)
}

// doubted reports whether a manifest is from an unfinished run and has never been seen working.
func (t *Tool) doubted(unfinished *journal, manifest []byte) (bool, error) {
	if unfinished == nil || !slices.Contains(unfinished.Unproven, identity(manifest)) {
		return false, nil
	}
	var last installed
	there, err := readRecord(t.state.installedFile(), &last)
	// A run that was killed during its cleanup has seen the manifest working.
	return !there || last.Manifest != sum(manifest), err
}

// version returns an image's version for output.
func version(label string) string {
	if label == "" {
		return "of unknown version"
	}
	return label
}

// begin takes the lock, which end releases, and removes leftovers of killed runs.
func (t *Tool) begin(ctx context.Context) (end func(), err error) {
	unlock, err := t.state.lock()
	if err != nil {
		return nil, err
	}
	if err := t.clearScratch(); err != nil {
		unlock()
		return nil, err
	}
	t.clearProbes(ctx)
	return unlock, nil
}

// clearScratch removes files that a killed run had unpacked or
// half written. The lock ensures that no other run uses them.
func (t *Tool) clearScratch() error {
	// The second pattern is writeDurably's temporary file.
	for _, pattern := range []string{".scratch-*", ".*.new"} {
		left, err := filepath.Glob(filepath.Join(t.state.folder, pattern))
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// load loads the image into the runtime and verifies its ID. It loads even if the runtime already has an image with
// this name and ID: a failed import leaves one with content missing.
func (t *Tool) load(ctx context.Context, p *plan) error {
	if p.archive == nil {
		return nil
	}
	before, err := t.runtime.imageID(ctx, p.swap.Image)
	if err != nil {
		return err
	}
	t.say("loading %s", p.archive.path)
	if err := t.runtime.load(ctx, p.archive.path); err != nil {
		// Clean up even if the user has cancelled.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if id, _ := t.runtime.imageID(ctx, p.swap.Image); before == "" && id != "" {
			if left := t.runtime.drop(ctx, p.swap.Image); left != nil {
				t.say("the container runtime still has the name %s, for an incomplete image: %v", p.swap.Image, left)
			}
		}
		return err
	}
	id := ""
	// The runtime reports a new image with a short delay.
	for deadline := time.Now().Add(10 * time.Second); ; {
		if id, err = t.runtime.imageID(ctx, p.swap.Image); err != nil {
			return err
		}
		if id == p.imageID {
			t.say("loaded %s (image %s)", p.swap.Image, short(id))
			return nil
		}
		if time.Now().After(deadline) {
			return nextstep.With(
				fmt.Errorf("%s was loaded, but the container runtime at %s has %q under the name %s, not %s",
					p.archive.path, t.runtime.endpoint, id, p.swap.Image, p.imageID),
				"%s images ls", t.runtime.tool()[0])
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// keepWayBack saves everything that a rollback needs before anything is changed, and returns the manifest for an undo:
// the current one; or the one before it, if the current one is from an unfinished run and was never seen working. It
// returns nil if there is nothing to restore, because the current scheduler does not work, as reported by works.
func (t *Tool) keepWayBack(p *plan, unfinished *journal, works func() error) ([]byte, error) {
	good := p.before
	doubted, err := t.doubted(unfinished, p.before)
	if err != nil {
		return nil, err
	}
	if doubted {
		kept, err := readIfThere(t.state.undo())
		if err != nil {
			return nil, err
		}
		if good = kept; kept != nil {
			t.say("the %s of %s did not finish; its manifest does not count as working", unfinished.Operation, unfinished.Started.Format(time.RFC3339))
		}
	} else if problem := works(); problem != nil {
		kept := t.state.stamped("broken", t.started)
		if err := writeDurably(kept, p.before, 0o600); err != nil {
			return nil, nextstep.With(fmt.Errorf("cannot keep the current manifest: %w", err),
				"make room in %s", t.state.folder)
		}
		t.say("the current scheduler does not work, so it cannot be used for a rollback: %v; its manifest is kept as %s",
			problem, kept)
		good = nil
	}
	write := func(path string, content []byte) error {
		if err := writeDurably(path, content, 0o600); err != nil {
			return nextstep.With(fmt.Errorf("cannot save the manifest for a rollback: %w", err),
				"make room in %s", t.state.folder)
		}
		return nil
	}
	if !p.pod.Swapped && !halfSwapped(p.pod) {
		// This is kubeadm's manifest: before the first swap, or after an upgrade.
		kept, err := readIfThere(t.state.original())
		if err != nil {
			return nil, err
		}
		// A manifest that does not work is saved only if there is no other.
		if kept == nil || good != nil && !onlyRestarted(kept, p.before) {
			if err := write(t.state.original(), p.before); err != nil {
				return nil, err
			}
		}
	}
	if good == nil {
		return nil, removeDurably(t.state.undo())
	}
	return good, write(t.state.undo(), good)
}

// broken returns why the current manifest's scheduler does not work: none of its containers runs, or it is not healthy.
// It waits as long as a scheduler may take to renew its lease, and longer while kubelet starts it. A state that cannot
// be determined does not count as broken.
func (t *Tool) broken(ctx context.Context, pod *Pod) error {
	began, announced := time.Now(), false
	for {
		looking, stop := context.WithTimeout(ctx, lookTime)
		problem, changed, err := t.trouble(looking, pod)
		stop()
		switch {
		case err != nil || problem == "":
			return nil
		case time.Since(began) < worksTime:
		case time.Since(changed) > restartTime || time.Since(began) > 2*restartTime:
			return errors.New(problem)
		case !announced:
			announced = true
			t.say("the manifest was changed just now: waiting until kubelet has started the current scheduler "+
				"(%s)", problem)
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

// restartTime is the time for kubelet to start a static pod after its manifest changed, and for the scheduler to become
// healthy: kubelet retries 10 to 15 seconds after the old container has ended, and its end may take some time too.
const restartTime = 45 * time.Second

// trouble returns what is wrong with the running scheduler; empty: nothing. changed is the last time that the manifest
// was written or kubelet created a sandbox for it.
func (t *Tool) trouble(ctx context.Context, pod *Pod) (problem string, changed time.Time, err error) {
	name := t.podName(pod)
	containers, err := t.runtime.containersOf(ctx, pod.Namespace, name, pod.ContainerName)
	if err != nil {
		return "", time.Time{}, err
	}
	problem = "none of its containers runs"
	if slices.ContainsFunc(containers, func(c container) bool { return c.running }) {
		problem = healthy(ctx, pod.HealthURL())
	}
	if problem == "" {
		return "", time.Time{}, nil
	}
	var file unix.Stat_t
	if err := unix.Stat(t.manifest, &file); err == nil {
		// Use the change time: a rename does not update the others.
		changed = time.Unix(file.Ctim.Unix())
	}
	sandboxes, err := t.runtime.sandboxesOf(ctx, pod.Namespace, name)
	for _, sandbox := range sandboxes {
		if sandbox.created.After(changed) {
			changed = sandbox.created
		}
	}
	return problem, changed, err
}

// keepImages saves the images that a rollback needs: kubelet removes unused images, and a node may have no registry. An
// image that cannot be saved is no reason to stop.
func (t *Tool) keepImages(ctx context.Context, good []byte) {
	original, _ := readIfThere(t.state.original())
	for _, manifest := range [][]byte{good, original} {
		pod, err := Describe(manifest)
		if manifest == nil || err != nil {
			continue
		}
		if err := t.keepImage(ctx, pod.Image); err != nil && ctx.Err() == nil {
			t.say("the image %s cannot be saved, so a rollback needs it in the container runtime or in a registry: %v",
				pod.Image, err)
		}
	}
}

func (t *Tool) keepImage(ctx context.Context, name string) error {
	id, err := t.runtime.imageID(ctx, name)
	if id == "" || err != nil {
		return err
	}
	file := t.state.imageFile(name)
	// A saved file is always complete; its content is verified before it is loaded.
	if tag, err := parseTag(name); err != nil {
		return err
	} else if _, kept, _, err := imageOf(func() (io.ReadCloser, error) { return os.Open(file) }, tag.String()); err == nil && kept == id {
		return nil
	}
	if err := keepFolder(t.state.images()); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(t.state.folder, ".scratch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	saved := filepath.Join(scratch, "image.tar")
	if err := t.runtime.save(ctx, name, saved); err != nil {
		return err
	}
	return os.Rename(saved, file)
}

// keepEditedConfig saves a configuration in the state directory if it
// differs from what was installed, so that manual edits are not lost.
func (t *Tool) keepEditedConfig(folder string) error {
	content, err := readIfThere(filepath.Join(folder, ConfigFileName))
	if content == nil || err != nil || folder == t.state.configFolder(sum(content)) {
		return err
	}
	path := t.state.stamped("edited-config-"+filepath.Base(folder), t.started)
	if err := writeDurably(path, content, 0o600); err != nil {
		return nextstep.With(fmt.Errorf("cannot keep the configuration that was edited by hand: %w", err),
			"make room in %s", t.state.folder)
	}
	t.say("the configuration in %s was edited since it was installed; kept as %s", folder, path)
	return nil
}

// halfSwapped reports whether a manifest names this tool's configuration, but does not mount it. A kubeadm upgrade does
// that if the ClusterConfiguration has our lines and the patch is missing.
func halfSwapped(pod *Pod) bool {
	path, _ := pod.Flag("config")
	_, mounted := pod.HostPath(ContainerConfigPath)
	return path == ContainerConfigPath && !mounted
}

// onlyRestarted reports whether two manifests differ at most by the second's restart time, which a rollback may leave.
func onlyRestarted(from, to []byte) bool {
	pod, err := Describe(to)
	if err != nil || pod.Swap.RestartedAt.IsZero() {
		return sum(from) == sum(to)
	}
	edit, err := Restart(from, pod.Swap.RestartedAt)
	return err == nil && sum(edit.Manifest) == sum(to)
}

// unfinished returns the journal of an unfinished run; nil if there is none.
func (t *Tool) unfinished() (*journal, error) {
	found := &journal{}
	there, err := readRecord(t.state.journalFile(), found)
	if !there || err != nil {
		return nil, err
	}
	return found, nil
}

// works returns what is wrong with the running scheduler; nil if it
// matches want. leads reports whether it holds the lease, or needs none.
func (t *Tool) works(ctx context.Context, pod *Pod, want wanted) (leads bool, err error) {
	r := &replacement{tool: t, pod: pod, want: want, version: pod.Object.Annotations[RestartedAtAnnotation], leaseFree: true}
	if want.lease != nil {
		if r.holder, err = t.cluster.holder(ctx, *want.lease); err != nil {
			return false, err
		}
		// The current holder may be this scheduler itself: it only has to renew the lease.
		r.holder.identity = ""
	}
	ctx, stop := context.WithTimeout(ctx, worksTime)
	defer stop()
	for {
		_, done, err := r.look(ctx)
		if done || err != nil {
			return r.leads, err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return false, errors.New(r.lastProblem)
		}
	}
}

// worksTime is the time in which a running scheduler must renew its lease, which it does every two seconds.
const worksTime = 8 * time.Second

// undo restores a manifest that worked, even if the user has cancelled. found is the current manifest.
func (t *Tool) undo(reason error, found, good []byte) error {
	var failed *failure
	switch {
	case errors.Is(reason, context.Canceled):
		reason = errors.New("it was interrupted before it was confirmed to work")
		t.say("interrupted")
	case errors.As(reason, &failed):
		// The rest is printed at the end, with the error.
		t.say("%s", failed.reason)
	}
	t.say("restoring the old manifest")
	written, err := t.restore(context.Background(), found, good, undoTime)
	var other *changedByOther
	if errors.As(err, &other) {
		return fmt.Errorf("%s\n%w", blame(reason), err)
	}
	if err == nil {
		if err = t.undone(good, written); err != nil {
			return nextstep.With(
				fmt.Errorf("%s\nthe old one runs again, but that cannot be recorded: %w", blame(reason), err),
				"make room in %s", t.state.folder)
		}
	}
	undone := &UndoneError{Reason: reason, Undo: err}
	if written == nil {
		undone.Kept, undone.Manifest = t.state.undo(), t.manifest
	}
	return nextstep.With(undone, "%s", undone.next())
}

// undone records that the manifest from before a failed install is in place again.
func (t *Tool) undone(good, written []byte) error {
	var last installed
	there, err := readRecord(t.state.installedFile(), &last)
	if err != nil {
		return err
	}
	// It has a new restart time now.
	if there && last.Manifest == sum(good) && last.Manifest != sum(written) {
		last.Manifest = sum(written)
		if err := writeRecord(t.state.installedFile(), last); err != nil {
			return err
		}
	}
	return errors.Join(removeDurably(t.state.journalFile()), removeDurably(t.state.undo()))
}

// restore replaces the manifest found with another one, with a new restart time, and waits until its scheduler works.
// It returns the manifest that it wrote; nil if none.
func (t *Tool) restore(ctx context.Context, found, manifest []byte, timeout time.Duration) ([]byte, error) {
	t.keepExact(manifest)
	manifest = t.startable(ctx, manifest)
	pod, err := Describe(manifest)
	if err != nil {
		return nil, err
	}
	if folder := pod.Swap.ConfigFolder; inside(folder, t.state.configs()) {
		// Its container may run as another user than the current one.
		if err := giveConfig(folder, userOf(&pod)); err != nil {
			t.say("the configuration cannot be made readable for the user of the old scheduler: %v", err)
		}
	}
	// Ignore errors: a missing image or unreadable configuration shows when the scheduler starts.
	id, _ := t.runtime.imageID(ctx, pod.Image)
	config, _ := configOf(&pod)
	t.options.Timeout = timeout
	change := &replacement{tool: t, pod: &pod, found: found, versions: marked(manifest),
		want: wanted{imageID: id, health: pod.HealthURL(), lease: pod.Lease(config)}}
	err = change.run(ctx)
	if change.attempt == 0 {
		return nil, err
	}
	return change.found, err
}

// startable returns a manifest that kubelet can start without a registry: if the image is pulled at every start and the
// registry does not answer, the result uses the image on the node.
func (t *Tool) startable(ctx context.Context, manifest []byte) []byte {
	pod, err := Describe(manifest)
	if err != nil || !pod.pulls() {
		return manifest
	}
	pulling, stop := context.WithTimeout(ctx, pullTime)
	defer stop()
	if err = t.runtime.pull(pulling, pod.Image); err == nil {
		return manifest
	}
	edit, failed := WithoutPull(manifest)
	if failed != nil {
		return manifest
	}
	t.say("the old manifest makes kubelet pull %s at every start, but that fails: %v; it gets imagePullPolicy: IfNotPresent; "+
		"set Always again once the registry answers, if you need it", pod.Image, err)
	return edit.Manifest
}

// pullTime is the timeout of a pull before the image on the node is used.
const pullTime = 30 * time.Second

// keepExact saves the exact text of a manifest that a new restart time would reformat.
func (t *Tool) keepExact(manifest []byte) {
	edit, err := Restart(manifest, t.started)
	if err != nil || !edit.Reformatted {
		return
	}
	kept := "is kept as " + t.state.stamped("exact", t.started)
	if err := writeDurably(t.state.stamped("exact", t.started), manifest, 0o600); err != nil {
		// Nothing must delay the old scheduler.
		kept = fmt.Sprintf("cannot be kept: %v", err)
	}
	t.say("the old manifest is not formatted as this tool writes it: it is reformatted, its content and its comments stay; "+
		"its exact text %s", kept)
}

// finish records the installed scheduler and removes files that are no longer needed.
func (t *Tool) finish(p *plan, written []byte) error {
	record := installed{At: time.Now().UTC(), Manifest: sum(written), Image: p.swap.Image, ImageID: p.imageID, Version: p.swap.Version,
		Config: p.swap.ConfigSHA256, Mounts: p.swap.Mounts, Hardened: p.swap.Hardened}
	if err := writeRecord(t.state.installedFile(), record); err != nil {
		return nextstep.With(fmt.Errorf("the new scheduler works, but that cannot be recorded: %w", err),
			"make room in %s, then run this again", t.state.folder)
	}
	kept, err := readIfThere(t.state.undo())
	if err != nil {
		return err
	}
	if kept != nil && identity(kept) != identity(written) {
		if err := os.Rename(t.state.undo(), t.state.previous()); err != nil {
			return nextstep.With(fmt.Errorf("the new scheduler works, but the manifest for a rollback cannot be saved: %w", err),
				"run this again")
		}
	}
	if err := errors.Join(removeDurably(t.state.journalFile()), removeDurably(t.state.undo())); err != nil {
		return nextstep.With(fmt.Errorf("the new scheduler works, but the journal cannot be removed: %w", err),
			"run this again")
	}
	if err := errors.Join(t.updatePatch(p.swap), t.clear(written)); err != nil {
		return nextstep.With(
			fmt.Errorf("the new scheduler works and is recorded, but updating kubeadm's patch or removing old files failed: %w",
				err),
			"fix that, then run this again")
	}
	t.say("done: this node's scheduler is %s", version(p.swap.Version))
	return nil
}

// clear removes the configurations that are named neither in the current manifest, nor in a saved one, nor in kubeadm's
// patch; and the images that no rollback needs.
func (t *Tool) clear(written []byte) error {
	named, err := t.state.manifests()
	if err != nil {
		return err
	}
	patches, err := t.patchFiles()
	if err != nil {
		return err
	}
	for _, file := range patches {
		content, err := readIfThere(file)
		if err != nil {
			return err
		}
		named = append(named, content)
	}
	images := map[string]bool{}
	for _, file := range []string{t.state.original(), t.state.previous()} {
		content, err := readIfThere(file)
		if err != nil {
			return err
		}
		if pod, err := Describe(content); err == nil {
			images[t.state.imageFile(pod.Image)] = true
		}
	}
	kept, err := filepath.Glob(filepath.Join(t.state.images(), "*"))
	if err != nil {
		return err
	}
	for _, file := range kept {
		if !images[file] {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return t.state.dropConfigs(t.keepEditedConfig, append(named, written)...)
}
