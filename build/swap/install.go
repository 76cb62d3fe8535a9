// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// Install swaps the scheduler of this node and waits until the
// new one works. If it does not, Install restores the old one.
func (t *Tool) Install(ctx context.Context, request Request) error {
	return t.orInterrupted(ctx, t.install(ctx, request))
}

func (t *Tool) install(ctx context.Context, request Request) error {
	end, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	i, err := t.prepare(ctx, request)
	if err != nil {
		return err
	}
	if err := i.supply(ctx); err != nil {
		return err
	}
	if i.unfinished, err = t.state.Unfinished(); err != nil {
		return err
	}
	if done, err := i.keep(ctx); done || err != nil {
		return err
	}
	written, err := t.change("install", i.p.after, false, i.unfinished, func() ([]byte, error) { return i.replace(ctx) })
	switch {
	case err == nil:
		return i.finish(written)
	case written == nil:
		return err
	}
	return i.failed(err, written)
}

// installation is the change from the current scheduler to the planned one.
type installation struct {
	*Tool
	p          *plan
	probes     host.Probes
	want       host.Wanted
	unfinished *record.Journal
	// fallback is the manifest that an undo restores; nil: none that works.
	fallback []byte
}

// prepare plans the change, and returns an error if anything would make it fail.
func (t *Tool) prepare(ctx context.Context, request Request) (*installation, error) {
	if err := checkAccepted(request.Accept); err != nil {
		return nil, err
	}
	probes, err := host.ProbesOf(request.Probe)
	if err != nil {
		return nil, err
	}
	if !probes.Asked {
		// Check only the profiles that the operator named.
		request.Probe = nil
	}
	p, err := t.plan(ctx, request)
	if err != nil {
		return nil, err
	}
	findings, err := t.check(ctx, p, request)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		// Those findings are only consequences of the cancel.
		return nil, errInterruptedBefore
	}
	if len(findings) > 0 {
		findings.Write(t.options.Output)
	}
	if findings.Problems() > 0 {
		return nil, nextstep.With(fmt.Errorf("nothing was changed, because %d problem(s) would make the swap fail",
			findings.Problems()), "fix the problems above, then run this again")
	}
	t.say("the new scheduler (%s) accepts its command line and configuration", manifest.Version(p.swap.Version))
	for _, adopted := range p.adopted {
		t.say("the configuration gets %s, because %s of the manifest no longer has an effect", adopted.Line(), adopted)
	}
	want := host.Wanted{ImageID: p.imageID, Health: p.afterPod.HealthURL(), Lease: p.afterPod.Lease(p.accepted)}
	return &installation{Tool: t, p: p, probes: probes, want: want}, nil
}

// supply puts the image and the configuration of the new scheduler on the node, where nothing uses them yet.
func (i *installation) supply(ctx context.Context) error {
	p := i.p
	if p.archive != nil {
		if err := i.node.Load(ctx, p.archive.Path, p.swap.Image, p.imageID); err != nil {
			return err
		}
	}
	if p.config != nil {
		if err := i.state.SaveEditedConfig(p.swap.ConfigFolder); err != nil {
			return err
		}
		if _, err := i.state.SaveConfig(p.config, p.afterPod.User()); err != nil {
			return err
		}
		i.say("kept the configuration in %s", p.swap.ConfigFolder)
	}
	return i.state.ChownConfigs(p.afterPod.User())
}

// keep saves everything that an undo or a rollback needs; done reports that the manifest needs no change.
func (i *installation) keep(ctx context.Context) (done bool, err error) {
	works := func() error { return i.node.Broken(ctx, i.p.pod, i.manifest) }
	i.fallback, err = i.state.SaveForUndo(i.p.before, i.p.pod, i.unfinished, works)
	if err != nil {
		return false, err
	}
	i.saveImages(ctx, i.fallback)
	if i.p.unchanged() {
		if done, err := i.already(ctx); done || err != nil {
			return done, err
		}
	}
	if i.fallback != nil {
		i.probes.Bound = i.node.BoundBefore(ctx, i.probes)
	}
	if ctx.Err() != nil {
		return false, errInterruptedBefore
	}
	return false, nil
}

// already concludes an install whose manifest is already in place, after an interrupted run or a repeated command. done
// reports that its scheduler works, so no restart is needed.
func (i *installation) already(ctx context.Context) (done bool, err error) {
	p := i.p
	leads, problem := i.node.Works(ctx, p.pod, i.want)
	if ctx.Err() != nil {
		return false, errInterruptedBefore
	}
	if problem != nil {
		i.say("the requested manifest is already in place, but does not work: %v", problem)
		// check and the saved manifests ignore the format of a manifest, so save the exact text.
		i.state.SaveExact(p.before)
		return false, nil
	}
	i.say("%s already runs with this image and this configuration", p.swap.Image)
	err = i.node.ProbeAll(ctx, i.probes, i.want.Lease, leads)
	switch leader := host.LeaderOf(err); {
	case err == nil:
		return true, i.finish(p.before)
	case i.fallback != nil && manifest.Identity(i.fallback) != manifest.Identity(p.before):
		// The earlier run was killed before its probe.
		return false, i.undo(err, p.before, i.fallback)
	case ctx.Err() != nil:
		return false, errInterruptedBefore
	case leader != "":
		return false, nextstep.With(
			fmt.Errorf("%s already runs with this image and this configuration, and was not changed; "+
				"but %s holds the lease and binds no pods: %w", p.swap.Image, leader, err), "%s", atLeader(leader))
	default:
		return false, nextstep.With(
			fmt.Errorf("%s already runs with this image and this configuration, and was not changed; but %w",
				p.swap.Image, err),
			"kubectl get nodes; kube-scheduler-swap status; kube-scheduler-swap rollback")
	}
}

// replace writes the manifest, and waits until its scheduler works and binds probe pods.
func (i *installation) replace(ctx context.Context) (written []byte, err error) {
	p := i.p
	r := &replacement{tool: i.Tool, pod: p.afterPod, want: i.want, found: p.before, timeout: i.options.Timeout,
		edit: func(at time.Time) (manifest.Edit, error) {
			marked := p.swap
			marked.RestartedAt = at
			return manifest.Apply(p.before, marked)
		}}
	if written, err = r.run(ctx); err == nil {
		err = i.node.ProbeAll(ctx, i.probes, i.want.Lease, r.watch.Leads)
	}
	return written, err
}

// failed undoes the change if it can, and returns the error for a scheduler that does not work.
func (i *installation) failed(err error, written []byte) error {
	if i.fallback != nil {
		return i.undo(err, written, i.fallback)
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("it was interrupted before it was confirmed to work")
	}
	saved := i.state.Stamped("broken")
	if !exists(saved) {
		saved = ""
	}
	return stuckError(err, saved)
}

// finish records that the scheduler works, and removes what is no longer needed.
func (i *installation) finish(written []byte) error {
	swap := i.p.swap
	if err := i.state.RecordInstalled(written, swap, i.p.imageID); err != nil {
		return nextstep.With(fmt.Errorf("the new scheduler works, but that cannot be recorded: %w", err),
			"make room in %s, then run this again", i.state.Path)
	}
	if err := i.state.SavePrevious(written); err != nil {
		return err
	}
	if err := i.state.EndJournal(); err != nil {
		return nextstep.With(fmt.Errorf("the new scheduler works, but the journal cannot be removed: %w", err),
			"run this again")
	}
	if err := errors.Join(i.state.UpdatePatch(swap), i.state.RemoveUnused(written)); err != nil {
		return nextstep.With(
			fmt.Errorf("the new scheduler works and is recorded, but updating kubeadm's patch or removing old files failed: %w",
				err),
			"fix that, then run this again")
	}
	i.say("done: this node's scheduler is %s", manifest.Version(swap.Version))
	return nil
}

// exists reports whether a file exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
