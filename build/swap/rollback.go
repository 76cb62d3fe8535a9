// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// Targets of Rollback.
const (
	// ToStock is the manifest from before the first swap.
	ToStock = "stock"
	// ToPrevious is the manifest from before the last install or rollback.
	ToPrevious = "previous"
)

// byKubeadm is the command that makes kubeadm write its own manifest. Without the cluster's own configuration, kubeadm
// uses the default registry and flags. The configuration file of a swap, which Upgrade in docs/operations.md adds, is
// not mounted by that manifest.
const byKubeadm = "kubectl --namespace kube-system get configmap kubeadm-config --output jsonpath='{.data.ClusterConfiguration}' | " +
	"grep -v " + manifest.ContainerConfigPath + " | kubeadm init phase control-plane scheduler --config /dev/stdin"

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
		t.state.WarnOfPatch()
	}
	if unreadable != nil || !replaced.Swapped {
		return nil
	}
	// Another rollback needs this image. Save it last, since pods wait for the restored scheduler.
	if err := t.saveImage(ctx, replaced.Image); err != nil {
		t.say("the image %s cannot be saved for another rollback: %v", replaced.Image, err)
	}
	return nil
}

// rollback implements Rollback under the lock.
func (t *Tool) rollback(ctx context.Context, to string) error {
	r, err := t.restoration(to)
	if err != nil {
		return err
	}
	if nothing := r.nothing(); nothing != "" {
		t.say("%s: nothing to roll back", nothing)
		return t.stay(ctx, r.before, r.pod)
	}
	if r.target == nil {
		return nextstep.With(
			fmt.Errorf("%s does not exist: the earlier manifest is unknown, for example on a node that joined with kubeadm's patch",
				r.path),
			byKubeadm+", which writes kubeadm's own")
	}
	if err := r.refuseHang(); err != nil {
		return err
	}
	if err := r.keep(ctx); err != nil {
		return err
	}
	written, err := t.change("rollback", r.target, true, r.unfinished, func() ([]byte, error) {
		return t.restore(ctx, r.before, r.target, t.options.Timeout)
	})
	switch {
	case err == nil:
		return r.finish(ctx, written)
	case written == nil:
		return err
	case errors.Is(err, context.Canceled):
		return nextstep.With(
			errors.New("interrupted: the earlier manifest is restored, but its scheduler was not confirmed to work"),
			"kube-scheduler-swap status")
	}
	return nextstep.With(
		fmt.Errorf("the earlier manifest is restored, but its scheduler does not work: %w; the one that it replaced is kept as %s",
			err, t.state.Undo()),
		"journalctl -u kubelet; kube-scheduler-swap status")
}

// restoration is the change from the current manifest to an earlier one.
type restoration struct {
	*Tool
	to string
	// target is the earlier manifest, and path its file.
	target []byte
	path   string
	// before is the current manifest, and pod its decoded form; unreadable is why it cannot be used.
	before     []byte
	pod        *manifest.Pod
	unreadable error
	unfinished *record.Journal
	// unproven reports whether before is from the unfinished run, and was never seen working. earlier is then the
	// manifest from before that run, if there is one.
	unproven bool
	earlier  []byte
	// fromUndo reports whether earlier is the target.
	fromUndo bool
	// reformatted reports whether a restart time changes the format of the target.
	reformatted bool
}

// restoration reads the current manifest, and the one to restore.
func (t *Tool) restoration(to string) (*restoration, error) {
	if err := t.refuseLink(); err != nil {
		return nil, err
	}
	r := &restoration{Tool: t, to: to}
	switch to {
	case ToStock:
		r.path = t.state.Original()
	case ToPrevious:
		r.path = t.state.Previous()
	default:
		return nil, nextstep.With(fmt.Errorf("--to %s is unknown", to),
			"kube-scheduler-swap rollback --to %s, or --to %s", ToStock, ToPrevious)
	}
	var err error
	if r.target, err = record.ReadIfExists(r.path); err != nil {
		return nil, nextstep.With(err, "run the same command with sudo")
	}
	if r.unfinished, err = t.state.Unfinished(); err != nil {
		return nil, err
	}
	// Only a manifest from an unfinished run is in doubt; a later one stays.
	if r.before, r.pod, r.unreadable = t.readManifest(); r.unreadable == nil {
		if r.unproven, err = t.state.IsUnproven(r.unfinished, r.before); err != nil {
			return nil, err
		}
	}
	if r.earlier, err = record.ReadIfExists(t.state.Undo()); err != nil {
		return nil, err
	}
	// The manifest from before the unfinished run is still in that run's undo file.
	if r.fromUndo = to == ToPrevious && r.unproven && r.earlier != nil; r.fromUndo {
		r.target, r.path = r.earlier, t.state.Undo()
	}
	return r, nil
}

// nothing returns why there is nothing to roll back; empty: there is something.
func (r *restoration) nothing() string {
	switch {
	case r.unreadable != nil || r.unproven:
		return ""
	case r.target == nil && !r.pod.Swapped:
		return r.manifest + " is kubeadm's"
	case r.target == nil:
		return ""
	case manifest.OnlyRestarted(r.target, r.before):
		return "the previous manifest is already in place"
	case r.to == ToStock && !r.pod.Swapped && !manifest.HalfSwapped(r.pod):
		// kubeadm upgrade has written a newer manifest, so the saved one is out of date.
		return r.manifest + " is not swapped, because kubeadm or a person has rewritten it"
	}
	return ""
}

// keep saves everything that another rollback needs, and ensures that the image is on this node.
func (r *restoration) keep(ctx context.Context) error {
	edit, err := manifest.Restart(r.target, r.started)
	if err != nil {
		what, _ := nextstep.Split(err, "")
		return nextstep.With(fmt.Errorf("%s cannot be edited: %s", r.path, what),
			"cp %s %s; kube-scheduler-swap status", r.path, r.manifest)
	}
	r.reformatted = edit.Reformatted
	if r.unreadable != nil {
		// A missing or unreadable manifest is exactly what a rollback must repair.
		r.say("the current manifest cannot be used: %v", r.unreadable)
	}
	edited, err := r.state.SaveEdits(r.before, r.unproven)
	if err != nil {
		return err
	}
	if r.unreadable == nil && r.to == ToStock && r.pod.Swapped && !manifest.SwapOf(r.target, r.pod) {
		if edited == "" {
			// An install has included the edits in its manifest.
			if edited, err = r.state.SaveEdited(r.before); err != nil {
				return err
			}
		}
		r.say("the manifest was rewritten or edited since the first swap, for example by kubeadm upgrade; the restored "+
			"one is older, and the current one is kept as %s. This writes the one of this node's kubeadm: %s", edited, byKubeadm)
	}
	if err := r.ensureImage(ctx, r.target); err != nil {
		return err
	}
	if r.before != nil && r.unreadable == nil && (!r.unproven || r.earlier == nil) {
		return r.state.SaveReplaced(r.before, r.pod, r.target)
	}
	return nil
}

func (r *restoration) finish(ctx context.Context, written []byte) error {
	except := "the annotation " + manifest.RestartedAtAnnotation
	if r.reformatted {
		except += " and the format"
	}
	r.say("done: %s is as it was before the %s, with %s, except for %s", r.manifest,
		map[string]string{ToStock: "first swap", ToPrevious: "last change"}[r.to], manifest.InWords(r.target), except)
	if !r.fromUndo {
		if err := os.Rename(r.state.Undo(), r.state.Previous()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nextstep.With(fmt.Errorf("the scheduler works, but the manifest that it replaced cannot be saved: %w", err),
				"make %s writable", r.state.Path)
		}
	}
	if r.unreadable == nil {
		r.sayPending(ctx, r.pod, r.target)
	}
	return r.settled(ctx, written)
}

// stay leaves the current manifest in place, and verifies that its
// scheduler works: the operator had a reason for the rollback.
func (t *Tool) stay(ctx context.Context, manifest []byte, pod *manifest.Pod) error {
	if err := t.settled(ctx, manifest); err != nil {
		return err
	}
	problem := t.node.Broken(ctx, pod, t.manifest)
	if problem == nil {
		return nil
	}
	next := byKubeadm + ", which writes kubeadm's own"
	if original := t.state.Original(); exists(original) {
		next = "restore the manifest from before the first swap: cp " + original + " " + t.manifest
	}
	return nextstep.With(fmt.Errorf("there is nothing to roll back, but the scheduler of %s does not work: %w", t.manifest, problem),
		"journalctl -u kubelet; or %s", next)
}

// sayPending prints the pending pods of profiles that the scheduler had before the rollback, and no longer has, and the
// pods that need its plugin Overcommit.
func (t *Tool) sayPending(ctx context.Context, before *manifest.Pod, target []byte) {
	now, err := manifest.Describe(target)
	if err != nil {
		return
	}
	pending, err := t.node.Cluster.Pending(ctx)
	if err != nil {
		t.say("cannot list the pods that wait for a removed profile: %v", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		if host.ServesNow(before, name) && !host.ServesNow(&now, name) {
			t.say("%d pending pods ask for the scheduler %s, which no longer runs, for example %s; they wait until a scheduler of that name "+
				"runs, or until they are created again without schedulerName", len(pending[name]), name, pending[name][0])
		}
	}
	had, _ := host.ConfigOf(before)
	has, _ := host.ConfigOf(&now)
	if effect, err := t.node.Cluster.WithoutOvercommit(ctx, had, has); err != nil {
		t.say("%v", err)
	} else if effect != "" {
		t.say("%s; create those again without this resource, or install the plugin again", effect)
	}
}

// settled records the manifest in place after a rollback: an earlier swap, or none.
func (t *Tool) settled(ctx context.Context, content []byte) error {
	pod, err := manifest.Describe(content)
	if err != nil {
		return err
	}
	if pod.Swapped {
		id, err := t.node.Runtime.ImageID(ctx, pod.Image)
		if err != nil {
			return err
		}
		if err := t.state.RecordInstalled(content, pod.Swap, id); err != nil {
			return t.state.NoRoom("cannot record the current state", err)
		}
	} else if err := record.RemoveDurably(t.state.InstalledFile()); err != nil {
		return err
	}
	if err := t.state.EndJournal(); err != nil {
		return err
	}
	if !pod.Swapped {
		return nil
	}
	return t.state.UpdatePatch(pod.Swap)
}
