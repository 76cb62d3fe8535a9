// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/equality"

	"kube-scheduler-fork/build/nextstep"
)

// Targets of Rollback.
const (
	// ToStock is the manifest from before the first swap.
	ToStock = "stock"
	// ToPrevious is the manifest from before the last install or rollback.
	ToPrevious = "previous"
)

// Rollback restores an earlier manifest and waits until its scheduler works. The manifest is as it was, except for the
// restart time in an annotation and, if Edit.Reformatted is set, its format. The replaced manifest is saved.
func (t *Tool) Rollback(ctx context.Context, to string) error {
	end, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	_, replaced, unreadable := t.readManifest()
	if err := t.orInterrupted(ctx, t.rollback(ctx, to)); err != nil {
		return err
	}
	if _, pod, err := t.readManifest(); err == nil && !pod.Swapped {
		t.sayPatched()
	}
	if unreadable != nil || !replaced.Swapped {
		return nil
	}
	// Another rollback needs this image. Save it last, since pods wait for the restored scheduler.
	if err := t.keepImage(ctx, replaced.Image); err != nil {
		t.say("the image %s cannot be saved for another rollback: %v", replaced.Image, err)
	}
	return nil
}

// rollback implements Rollback under the lock.
func (t *Tool) rollback(ctx context.Context, to string) error {
	if err := t.refuseLink(); err != nil {
		return err
	}
	var path string
	switch to {
	case ToStock:
		path = t.state.original()
	case ToPrevious:
		path = t.state.previous()
	default:
		return nextstep.With(fmt.Errorf("--to %s is unknown", to),
			"kube-scheduler-swap rollback --to %s, or --to %s", ToStock, ToPrevious)
	}
	target, err := readIfThere(path)
	if err != nil {
		return nextstep.With(err, "run the same command with sudo")
	}
	unfinished, err := t.unfinished()
	if err != nil {
		return err
	}
	before, pod, unreadable := t.readManifest()
	// Only a manifest from an unfinished run is in doubt; a later one stays.
	doubted := false
	if unreadable == nil {
		if doubted, err = t.doubted(unfinished, before); err != nil {
			return err
		}
	}
	kept, err := readIfThere(t.state.undo())
	if err != nil {
		return err
	}
	// The manifest from before the unfinished run is still in that run's undo file.
	fromUndo := to == ToPrevious && doubted && kept != nil
	if fromUndo {
		target, path = kept, t.state.undo()
	}
	switch {
	case target == nil && unreadable == nil && !pod.Swapped && !doubted:
		t.say("%s is kubeadm's: nothing to roll back", t.manifest)
		return t.stay(ctx, before, pod)
	case target == nil:
		return nextstep.With(
			fmt.Errorf("%s does not exist: the earlier manifest is unknown, for example on a node that joined with kubeadm's patch",
				path),
			"kubeadm init phase control-plane scheduler, which writes kubeadm's own")
	case unreadable == nil && !doubted && onlyRestarted(target, before):
		t.say("the previous manifest is already in place: nothing to roll back")
		return t.stay(ctx, before, pod)
	case unreadable == nil && !doubted && to == ToStock && !pod.Swapped && !halfSwapped(pod):
		// kubeadm upgrade has written a newer manifest, so the saved one is out of date.
		t.say("%s is not swapped, because kubeadm or a person has rewritten it: nothing to roll back", t.manifest)
		return t.stay(ctx, before, pod)
	}
	edit, err := Restart(target, t.started)
	if err != nil {
		what, _ := nextstep.Split(err, "")
		return nextstep.With(fmt.Errorf("%s cannot be edited: %s", path, what),
			"cp %s %s; kube-scheduler-swap status", path, t.manifest)
	}
	if unreadable != nil {
		// A missing or unreadable manifest is exactly what a rollback must repair.
		t.say("the current manifest cannot be used: %v", unreadable)
	}
	keptEdits, err := t.keepEdits(before, doubted)
	if err != nil {
		return err
	}
	if unreadable == nil && to == ToStock && pod.Swapped && !swapOf(target, pod) {
		if keptEdits == "" {
			// An install has included the edits in its manifest.
			if keptEdits, err = t.keepEdited(before); err != nil {
				return err
			}
		}
		t.say("the manifest was rewritten or edited since the first swap, for example by kubeadm upgrade; the restored "+
			"one is older, and the current one is kept as %s. kubeadm init phase control-plane scheduler writes "+
			"the one of this node's kubeadm", keptEdits)
	}
	if err := t.haveImage(ctx, target); err != nil {
		return err
	}
	if before != nil && unreadable == nil && (!doubted || kept == nil) {
		if err := t.keepReplaced(before, pod, target); err != nil {
			return err
		}
	}
	err = t.writeJournal("rollback", target, unfinished)
	if errors.Is(err, unix.ENOSPC) {
		// The restored manifest has worked before, so a killed run leaves nothing in doubt.
		t.say("there is no room for the journal in %s: if this run is killed, run it again", t.state.folder)
	} else if err != nil {
		return err
	}
	written, err := t.restore(ctx, before, target, t.options.Timeout)
	var other *changedByOther
	switch {
	case err == nil:
	case errors.As(err, &other):
		return err
	case written == nil && errors.Is(err, context.Canceled):
		return errors.Join(errInterruptedBefore, t.unbegin(unfinished))
	case written == nil:
		err = errors.Join(err, t.unbegin(unfinished))
		return fmt.Errorf("the earlier manifest could NOT be restored: %w", err)
	case errors.Is(err, context.Canceled):
		return nextstep.With(
			errors.New("interrupted: the earlier manifest is restored, but its scheduler was not confirmed to work"),
			"kube-scheduler-swap status")
	default:
		return nextstep.With(
			fmt.Errorf("the earlier manifest is restored, but its scheduler does not work: %w; the one that it replaced is kept as %s",
				err, t.state.undo()),
			"journalctl -u kubelet; kube-scheduler-swap status")
	}
	except := "the annotation " + RestartedAtAnnotation
	if edit.Reformatted {
		except += " and the format"
	}
	t.say("done: %s is as it was before the %s, with %s, except for %s", t.manifest,
		map[string]string{ToStock: "first swap", ToPrevious: "last change"}[to], inWords(target), except)
	if !fromUndo {
		if err := os.Rename(t.state.undo(), t.state.previous()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nextstep.With(fmt.Errorf("the scheduler works, but the manifest that it replaced cannot be saved: %w", err),
				"make %s writable", t.state.folder)
		}
	}
	if unreadable == nil {
		t.sayPending(ctx, pod, target)
	}
	return t.settled(ctx, written)
}

// stay leaves the current manifest in place, and verifies that its
// scheduler works: the operator had a reason for the rollback.
func (t *Tool) stay(ctx context.Context, manifest []byte, pod *Pod) error {
	if err := t.settled(ctx, manifest); err != nil {
		return err
	}
	problem := t.broken(ctx, pod)
	switch original := t.state.original(); {
	case problem == nil:
		return nil
	case exists(original):
		return nextstep.With(fmt.Errorf("there is nothing to roll back, but the scheduler of %s does not work: %w", t.manifest, problem),
			"journalctl -u kubelet; or restore the manifest from before the first swap: cp %s %s", original, t.manifest)
	default:
		return nextstep.With(fmt.Errorf("there is nothing to roll back, but the scheduler of %s does not work: %w", t.manifest, problem),
			"journalctl -u kubelet; or kubeadm init phase control-plane scheduler, which writes kubeadm's own")
	}
}

// keepReplaced saves the manifest that a rollback replaces. A full disk is no reason to stay with a scheduler that does
// not work, if the content of the manifest is saved elsewhere.
func (t *Tool) keepReplaced(before []byte, pod *Pod, target []byte) error {
	err := writeDurably(t.state.undo(), before, 0o600)
	if err == nil {
		return nil
	}
	where := ""
	if errors.Is(err, unix.ENOSPC) {
		where = t.keptElsewhere(before, pod, target)
	}
	if where == "" {
		return nextstep.With(fmt.Errorf("cannot keep the current manifest: %w", err),
			"make room in %s", t.state.folder)
	}
	t.say("there is no room in %s to keep the current manifest for rollback --to %s; %s",
		t.state.folder, ToPrevious, where)
	// Otherwise the file of an earlier run would be mistaken for it.
	return removeDurably(t.state.undo())
}

// keptElsewhere describes where the content of a manifest is saved: in another file, or in the restored manifest, if
// the only difference is a swap. Empty: nowhere.
func (t *Tool) keptElsewhere(manifest []byte, pod *Pod, target []byte) string {
	files, err := filepath.Glob(filepath.Join(t.state.folder, "*.yaml"))
	if err != nil {
		return ""
	}
	for _, file := range files {
		if file == t.state.undo() {
			continue
		}
		if known, err := readIfThere(file); err == nil && known != nil && identity(known) == identity(manifest) {
			return "it is in " + file
		}
	}
	if pod.Swapped && swapOf(target, pod) {
		return "it differs from the restored one only by the swap, and kube-scheduler-swap install creates it again"
	}
	return ""
}

// sayPending prints the pending pods of profiles that the scheduler had before the rollback, and no longer has, and the
// pods that need its plugin Overcommit.
func (t *Tool) sayPending(ctx context.Context, before *Pod, target []byte) {
	now, err := Describe(target)
	if err != nil {
		return
	}
	pending, err := t.cluster.pending(ctx)
	if err != nil {
		t.say("cannot list the pods that wait for a removed profile: %v", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		if t.servesNow(before, name) && !t.servesNow(&now, name) {
			t.say("%d pending pods ask for the scheduler %s, which no longer runs, for example %s; they wait until a scheduler of that name "+
				"runs, or until they are created again without schedulerName", len(pending[name]), name, pending[name][0])
		}
	}
	had, _ := configOf(before)
	has, _ := configOf(&now)
	if effect, err := t.cluster.withoutOvercommit(ctx, had, has); err != nil {
		t.say("%v", err)
	} else if effect != "" {
		t.say("%s; create those again without this resource, or install the plugin again", effect)
	}
}

// swapOf reports whether a pod is the given manifest plus the pod's swap, and nothing else.
func swapOf(manifest []byte, pod *Pod) bool {
	edit, err := Apply(manifest, pod.Swap)
	if err != nil {
		return false
	}
	expected, err := Describe(edit.Manifest)
	return err == nil && equality.Semantic.DeepEqual(expected.Object, pod.Object)
}

// haveImage ensures that a manifest's image is on this node before anything is changed: kubelet removes images that
// have been unused for a while.
func (t *Tool) haveImage(ctx context.Context, manifest []byte) error {
	pod, err := Describe(manifest)
	if err != nil {
		return err
	}
	id, err := t.runtime.imageID(ctx, pod.Image)
	if id != "" || err != nil {
		return err
	}
	if kept, err := openArchive(t.state.imageFile(pod.Image)); err == nil {
		t.say("loading %s, which is no longer on this node, from %s", pod.Image, kept.path)
		if err = t.runtime.load(ctx, kept.path); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.say("that failed: %v", err)
	}
	t.say("pulling %s, which is no longer on this node", pod.Image)
	if err := t.runtime.pull(ctx, pod.Image); err != nil {
		return nextstep.With(
			fmt.Errorf("%s, the image to roll back to, is not on this node and cannot be pulled: %w",
				pod.Image, err), "load it (%s), then run this again", strings.Join(append(t.runtime.tool(), map[bool]string{true: "load --input FILE", false: "images import FILE"}[t.runtime.docker]),
				" "))
	}
	return nil
}

// settled records the manifest in place after a rollback: an earlier swap, or none.
func (t *Tool) settled(ctx context.Context, manifest []byte) error {
	pod, err := Describe(manifest)
	if err != nil {
		return err
	}
	if pod.Swapped {
		id, err := t.runtime.imageID(ctx, pod.Image)
		if err != nil {
			return err
		}
		err = writeRecord(t.state.installedFile(), installed{At: time.Now().UTC(), Manifest: sum(manifest), Image: pod.Image, ImageID: id,
			Version: pod.Swap.Version, Config: pod.Swap.ConfigSHA256, Mounts: pod.Swap.Mounts, Hardened: pod.Swap.Hardened})
		if err != nil {
			return nextstep.With(fmt.Errorf("cannot record the current state: %w", err),
				"make room in %s", t.state.folder)
		}
	} else if err := removeDurably(t.state.installedFile()); err != nil {
		return err
	}
	if err := errors.Join(removeDurably(t.state.journalFile()), removeDurably(t.state.undo())); err != nil {
		return err
	}
	if !pod.Swapped {
		return nil
	}
	return t.updatePatch(pod.Swap)
}

// sayPatched warns about kubeadm settings that still refer to the swap after a rollback.
func (t *Tool) sayPatched() {
	var patch patched
	if there, err := readRecord(t.state.patchedFile(), &patch); there && err == nil {
		t.say("kubeadm would restore the swap at its next upgrade: to prevent that, remove scheduler.extraArgs.config from its ClusterConfiguration, "+
			"and rm %s %s", filepath.Join(patch.Folder, KubeadmPatchFile), t.state.patchedFile())
	}
}

// inWords describes a manifest's image and configuration for output.
func inWords(manifest []byte) string {
	pod, err := Describe(manifest)
	if err != nil {
		return "a manifest that cannot be read"
	}
	text := "the image " + pod.Image
	if pod.Swapped {
		text += " (" + version(pod.Swap.Version) + ")"
	}
	inside := pod.ConfigFile()
	if inside == "" {
		return text + " and no configuration"
	}
	if host, mounted := pod.HostPath(inside); mounted {
		inside = host
	}
	return text + " and the configuration " + inside
}

// keepEdits saves a manifest that differs from what the last install wrote, so that manual edits are not lost. It
// returns the path; empty: nothing to save. doubted means that the manifest is from an unfinished run.
func (t *Tool) keepEdits(manifest []byte, doubted bool) (string, error) {
	var last installed
	there, err := readRecord(t.state.installedFile(), &last)
	if err != nil {
		return "", err
	}
	if manifest == nil || doubted || there && last.Manifest == sum(manifest) {
		return "", nil
	}
	for _, file := range []string{t.state.original(), t.state.previous()} {
		if known, err := readIfThere(file); err != nil {
			return "", err
		} else if known != nil && identity(known) == identity(manifest) {
			return "", nil
		}
	}
	path, err := t.keepEdited(manifest)
	if err == nil {
		t.say("the manifest was edited since the last install; kept as %s", path)
	}
	return path, err
}

// keepEdited saves a manually edited manifest and returns the path.
func (t *Tool) keepEdited(manifest []byte) (string, error) {
	path := t.state.stamped("edited", t.started)
	if err := writeDurably(path, manifest, 0o600); err != nil {
		return "", nextstep.With(fmt.Errorf("cannot keep the manifest that was edited by hand: %w", err),
			"make room in %s", t.state.folder)
	}
	return path, nil
}
