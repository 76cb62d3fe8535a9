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

// Refused is returned when check found what would make the swap fail; nothing was changed.
type Refused struct{ Findings Findings }

func (r *Refused) Error() string {
	return fmt.Sprintf("nothing was changed, because of problems that would make the swap fail: %d", r.Findings.Problems())
}

// UndoneError says that a change did not work and was taken back.
type UndoneError struct {
	// Reason is why the new scheduler is not taken for working.
	Reason error
	// Undo is what went wrong when the old manifest was put back; nil if the old scheduler works again.
	Undo error
	// Kept is where the old manifest lies, if it could not be put back; then Manifest is where it belongs.
	Kept, Manifest string
}

func (e *UndoneError) Error() string {
	switch {
	case e.Undo == nil:
		return blame(e.Reason) + "\nthe old one runs again"
	case e.Kept != "":
		return fmt.Sprintf("%s\nthe old manifest could NOT be put back: %v", blame(e.Reason), e.Undo)
	}
	return fmt.Sprintf("%s\nthe old manifest is back in place, but its scheduler was not confirmed to work: %v",
		blame(e.Reason), e.Undo)
}

// blame says what does not work: the new scheduler, or that of another node, which leads.
func blame(reason error) string {
	if leader := leaderOf(reason); leader != "" {
		return fmt.Sprintf("%s holds the lease and binds nothing, so the new scheduler of this node does not take its "+
			"place yet: %v", leader, reason)
	}
	return fmt.Sprintf("the new scheduler does not work: %v", reason)
}

// leaderOf gives the scheduler of another node that is the reason; empty: it is none.
func leaderOf(reason error) string {
	var failed *failure
	if errors.As(reason, &failed) {
		return failed.leader
	}
	return ""
}

// atLeader is what to do about another node's scheduler that leads and binds nothing.
func atLeader(leader string) string {
	where := "on the node that holds the lease"
	// kube-scheduler calls itself by its host's name and a random part.
	if end := strings.LastIndex(leader, "_"); end > 0 {
		where = "on " + leader[:end]
	}
	return where + ": kube-scheduler-swap rollback if it is swapped, else see its scheduler's log; when pods are bound " +
		"again, find out why they were not, before you go on here"
}

// next is the next step.
func (e *UndoneError) next() string {
	switch leader := leaderOf(e.Reason); {
	case e.Undo == nil && leader != "":
		return atLeader(leader)
	case e.Undo == nil:
		return "fix what the lines above say, then run this again"
	case e.Kept != "":
		return fmt.Sprintf("fix that, then cp %s %s; kube-scheduler-swap status", e.Kept, e.Manifest)
	}
	return "kube-scheduler-swap status; journalctl -u kubelet; kube-scheduler-swap rollback"
}

func (e *UndoneError) Unwrap() []error { return []error{e.Reason, e.Undo} }

// undoTime is how long the old scheduler may take to work again once kubelet has begun with it. Kubelet's own time
// comes before that.
const undoTime = 2 * time.Minute

// StuckError says that the new scheduler does not work, and that there was none that worked to put back.
type StuckError struct {
	Reason error
	// Kept is where the manifest lies that was there; empty: it was that of a run that did not finish.
	Kept string
}

func (e *StuckError) Error() string {
	text := blame(e.Reason) + "\nthe one that was there did not work either when this began, so the new manifest stays"
	if e.Kept != "" {
		text += "; what was there is kept as " + e.Kept
	}
	return text
}

func (e *StuckError) Unwrap() error { return e.Reason }

// Install swaps the scheduler of this node, and waits until the new one works; otherwise it puts the old one back.
func (t *Tool) Install(ctx context.Context, request Request) error {
	return t.orInterrupted(ctx, t.install(ctx, request))
}

// orInterrupted is what an error comes to: whatever failed once the user had lost patience, and before the manifest was
// written, is nothing but that.
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
		// check looks at what the operator has named.
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
		// What was found then is that nothing answers.
		return errInterruptedBefore
	}
	if len(findings) > 0 {
		findings.Write(t.options.Output)
	}
	if findings.Problems() > 0 {
		return nextstep.With(&Refused{Findings: findings}, "fix what is listed above, then run this again")
	}
	t.say("the new scheduler (%s) accepts its command line and configuration", version(p.swap.Version))
	for _, adopted := range p.adopted {
		t.say("the configuration gets %s, for %s of the manifest, which no longer has an effect", adopted.line(), adopted)
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
		// An interrupted run, or the same command again: what is asked for lies there. If it works, nothing need
		// restart.
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
				// The run before was ended before it had probed.
				return t.undo(err, p.before, good)
			case ctx.Err() != nil:
				return errInterruptedBefore
			case leader != "":
				return nextstep.With(
					fmt.Errorf("%s already runs with this image and this configuration, and was not changed; "+
						"but %s holds the lease and binds nothing: %w", p.swap.Image, leader, err), "%s", atLeader(leader))
			default:
				return nextstep.With(
					fmt.Errorf("%s already runs with this image and this configuration, and was not changed; but %w",
						p.swap.Image, err),
					"kubectl get nodes; kube-scheduler-swap status; kube-scheduler-swap rollback")
			}
		}
		t.say("the requested manifest is already in place, and does not work: %v", problem)
		// Neither check nor the way back tells two forms of one manifest apart.
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
			"fix what the lines above say, then run this again; or kube-scheduler-swap rollback")
	}
	return t.undo(err, change.found, good)
}

// exists tells whether a file is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// errInterruptedBefore is what is said of a run that was ended before it changed anything.
var errInterruptedBefore = nextstep.With(errors.New("interrupted before anything was changed"),
	"the same command again")

// writeJournal says that a manifest is about to be written, which was never seen to work, like those of the run before
// that did not finish.
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

// unbegin takes a run's journal back: it has written nothing, so what was known before is known still.
func (t *Tool) unbegin(before *journal) error {
	if before == nil {
		return removeDurably(t.state.journalFile())
	}
	return writeRecord(t.state.journalFile(), before)
}

// doubted tells whether a manifest was put there by an unfinished run, and was never seen to work.
func (t *Tool) doubted(unfinished *journal, manifest []byte) (bool, error) {
	if unfinished == nil || !slices.Contains(unfinished.Unproven, identity(manifest)) {
		return false, nil
	}
	var last installed
	there, err := readRecord(t.state.installedFile(), &last)
	// A run that was ended while it cleared up has seen it.
	return !there || last.Manifest != sum(manifest), err
}

// version is an image's version for a person.
func version(label string) string {
	if label == "" {
		return "of unknown version"
	}
	return label
}

// begin lets no other run change anything until end is called, and clears away what one that was killed has left.
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

// clearScratch removes what a run that was killed had unpacked or half written; no other run is at work while the lock
// is held.
func (t *Tool) clearScratch() error {
	// The second is what was to be renamed into place.
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

// load brings the image into the runtime, and sees that it is the one of the archive. It does so even if the runtime
// has an image of that name and id: an import that failed half-way leaves one without all of its content.
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
		// Also when the user has lost patience.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if id, _ := t.runtime.imageID(ctx, p.swap.Image); before == "" && id != "" {
			if left := t.runtime.drop(ctx, p.swap.Image); left != nil {
				t.say("the name %s is left in the container runtime, without all of its content: %v", p.swap.Image, left)
			}
		}
		return err
	}
	id := ""
	// The runtime tells kubelet of a new image a moment after it was loaded.
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

// keepWayBack writes what is needed to go back, before anything is changed, and gives the manifest that an undo puts
// back: the one that lies there, or, if an unfinished run put that there and it was never seen to work, the one from
// before. Nil: there is nothing to go back to, since the scheduler that is there does not work, as works tells.
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
			return nextstep.With(fmt.Errorf("cannot keep the way back: %w", err),
				"make room in %s", t.state.folder)
		}
		return nil
	}
	if !p.pod.Swapped && !halfSwapped(p.pod) {
		// kubeadm's own: the first swap, or an upgrade has put it there since.
		kept, err := readIfThere(t.state.original())
		if err != nil {
			return nil, err
		}
		// One that does not work takes the place of none.
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

// broken tells why the scheduler of the manifest that lies there is known not to work: none of its containers runs, or
// it is not healthy, for as long as one is given to renew its lease, and longer while kubelet starts it. What cannot be
// told does not make it broken.
func (t *Tool) broken(ctx context.Context, pod *Pod) error {
	began, said := time.Now(), false
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
		case !said:
			said = true
			t.say("the manifest was changed just now: waiting until kubelet has started the scheduler that is "+
				"there (%s)", problem)
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

// restartTime is how long kubelet may take to start a static pod whose manifest was changed, and the scheduler to be
// healthy: kubelet looks again 10 to 15 seconds after the old container has ended, which may take some time itself.
const restartTime = 45 * time.Second

// trouble tells what is wrong with the scheduler that runs now; empty: nothing. changed is when kubelet was last given
// something to do for it, or has begun with it: the manifest was written, or a sandbox was made.
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
		// A file that is moved into place keeps its other times.
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

// keepImages keeps the images of the manifests that one can go back to: kubelet clears images away that nothing uses,
// and a node may have no registry. What cannot be kept is no reason to stop.
func (t *Tool) keepImages(ctx context.Context, good []byte) {
	original, _ := readIfThere(t.state.original())
	for _, manifest := range [][]byte{good, original} {
		pod, err := Describe(manifest)
		if manifest == nil || err != nil {
			continue
		}
		if err := t.keepImage(ctx, pod.Image); err != nil && ctx.Err() == nil {
			t.say("the image %s is not kept, so a rollback needs it in the container runtime, or a registry: %v", pod.Image, err)
		}
	}
}

func (t *Tool) keepImage(ctx context.Context, name string) error {
	id, err := t.runtime.imageID(ctx, name)
	if id == "" || err != nil {
		return err
	}
	file := t.state.imageFile(name)
	// It was put there whole; before it is loaded all of it is read.
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

// keepEditedConfig saves a configuration in the state folder that is not what was installed: edits by hand must not be
// lost.
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

// halfSwapped tells whether a manifest names our configuration and does not mount it: an upgrade by a kubeadm whose
// ClusterConfiguration has our lines, without our patch.
func halfSwapped(pod *Pod) bool {
	path, _ := pod.Flag("config")
	_, mounted := pod.HostPath(ContainerConfigPath)
	return path == ContainerConfigPath && !mounted
}

// onlyRestarted tells whether a manifest is another one with the time of a restart in it, which a rollback may leave.
func onlyRestarted(from, to []byte) bool {
	pod, err := Describe(to)
	if err != nil || pod.Swap.RestartedAt.IsZero() {
		return sum(from) == sum(to)
	}
	edit, err := Restart(from, pod.Swap.RestartedAt)
	return err == nil && sum(edit.Manifest) == sum(to)
}

// unfinished gives the journal of a run that did not finish; nil if there is none.
func (t *Tool) unfinished() (*journal, error) {
	found := &journal{}
	there, err := readRecord(t.state.journalFile(), found)
	if !there || err != nil {
		return nil, err
	}
	return found, nil
}

// works tells what is wrong with the scheduler that runs now; nil if it is what is wanted. leads tells whether it holds
// the lease, or needs none.
func (t *Tool) works(ctx context.Context, pod *Pod, want wanted) (leads bool, err error) {
	r := &replacement{tool: t, pod: pod, want: want, version: pod.Object.Annotations[RestartedAtAnnotation], leaseFree: true}
	if want.lease != nil {
		if r.holder, err = t.cluster.holder(ctx, *want.lease); err != nil {
			return false, err
		}
		// The one that holds it now may be the one that is asked about: it has to renew it.
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

// worksTime is how long a scheduler that runs already may take to renew its lease, which it does every two seconds.
const worksTime = 8 * time.Second

// undo puts a manifest back that worked, whatever has become of the user's patience in the meantime. found is what lies
// there.
func (t *Tool) undo(reason error, found, good []byte) error {
	var failed *failure
	switch {
	case errors.Is(reason, context.Canceled):
		reason = errors.New("it was interrupted before it was confirmed to work")
		t.say("interrupted")
	case errors.As(reason, &failed):
		// The rest of it stands in the error, last.
		t.say("%s", failed.reason)
	}
	t.say("putting the old manifest back")
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

// undone writes down that what was there before a failed install is there again.
func (t *Tool) undone(good, written []byte) error {
	var last installed
	there, err := readRecord(t.state.installedFile(), &last)
	if err != nil {
		return err
	}
	// Another time of the restart stands in it now.
	if there && last.Manifest == sum(good) && last.Manifest != sum(written) {
		last.Manifest = sum(written)
		if err := writeRecord(t.state.installedFile(), last); err != nil {
			return err
		}
	}
	return errors.Join(removeDurably(t.state.journalFile()), removeDurably(t.state.undo()))
}

// restore puts a manifest in the place of the one that was found, with the time of the restart in an annotation, and
// waits until its scheduler works. It gives what it has written; nil if nothing.
func (t *Tool) restore(ctx context.Context, found, manifest []byte, timeout time.Duration) ([]byte, error) {
	t.keepExact(manifest)
	manifest = t.startable(ctx, manifest)
	pod, err := Describe(manifest)
	if err != nil {
		return nil, err
	}
	if folder := pod.Swap.ConfigFolder; inside(folder, t.state.configs()) {
		// Its container may run as another user than the one that it takes the place of.
		if err := giveConfig(folder, userOf(&pod)); err != nil {
			t.say("the configuration cannot be given to the user of the old scheduler: %v", err)
		}
	}
	// Whether its image is there and its configuration can be read is seen when it runs.
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

// startable gives a manifest that kubelet can start without a registry: one that has the image pulled at every start is
// changed to use the image that is there, if the registry does not answer.
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
	t.say("the manifest from before has %s pulled at every start, and that fails: %v; it gets imagePullPolicy: IfNotPresent; "+
		"put Always back when the registry answers, if you need it", pod.Image, err)
	return edit.Manifest
}

// pullTime is how long a pull may take before the image that is there is used.
const pullTime = 30 * time.Second

// keepExact keeps the exact text of a manifest that gets another form when the time of the restart is set in it.
func (t *Tool) keepExact(manifest []byte) {
	edit, err := Restart(manifest, t.started)
	if err != nil || !edit.Reformatted {
		return
	}
	kept := "is kept as " + t.state.stamped("exact", t.started)
	if err := writeDurably(t.state.stamped("exact", t.started), manifest, 0o600); err != nil {
		// Nothing may stand in the way of the old scheduler.
		kept = fmt.Sprintf("cannot be kept: %v", err)
	}
	t.say("the manifest from before is not in the form that this tool writes: it gets that form, its content and its comments stay; "+
		"its exact text %s", kept)
}

// finish writes down what was installed, and clears away what is of no use any more.
func (t *Tool) finish(p *plan, written []byte) error {
	record := installed{At: time.Now().UTC(), Manifest: sum(written), Image: p.swap.Image, ImageID: p.imageID, Version: p.swap.Version, Config: p.swap.ConfigSHA256}
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
			return nextstep.With(fmt.Errorf("the new scheduler works, but the way back cannot be kept: %w", err),
				"run this again")
		}
	}
	if err := errors.Join(removeDurably(t.state.journalFile()), removeDurably(t.state.undo())); err != nil {
		return nextstep.With(fmt.Errorf("the new scheduler works, but the journal cannot be removed: %w", err),
			"run this again")
	}
	if err := errors.Join(t.updatePatch(p.swap), t.clear(written)); err != nil {
		return nextstep.With(
			fmt.Errorf("the new scheduler works and is recorded, but kubeadm's patch or old configurations are as they were: %w",
				err),
			"fix that, then run this again")
	}
	t.say("done: this node's scheduler is %s", version(p.swap.Version))
	return nil
}

// clear removes the configurations that no manifest names, neither the one that lies there, nor one that is kept, nor
// kubeadm's patch; and the images that no rollback goes to.
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
