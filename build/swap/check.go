// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// Check returns everything that would make a swap fail, and a swap that an upgrade has undone. It changes nothing.
func (t *Tool) Check(ctx context.Context, request Request) (Findings, error) {
	var findings Findings
	content, pod, err := t.readManifest()
	if err != nil {
		return nil, err
	}
	if err := checkAccepted(request.Accept); err != nil {
		return nil, err
	}
	if err := t.checkUndone(&findings, content, pod); err != nil {
		return nil, err
	}
	if request.Archive == "" && request.Image == "" && request.VerifyKey == "" && request.Config == "" && !pod.Swapped {
		// Without a target, check only what does not depend on one.
		return append(findings, t.checkNode(ctx, pod, nil)...), nil
	}
	p, err := t.plan(ctx, request)
	if err != nil {
		findings.failed(err)
		return append(findings, t.checkNode(ctx, pod, nil)...), nil
	}
	rest, err := t.check(ctx, p, request)
	return append(findings, rest...), err
}

// otherwise is the next step for an error without one.
const otherwise = "fix the problem above, then run the same command again"

// check returns everything that would make a plan fail.
func (t *Tool) check(ctx context.Context, p *plan, request Request) (Findings, error) {
	findings := t.checkNode(ctx, p.pod, p)
	if p.archive != nil {
		if err := t.checkNames(ctx, &findings, p); err != nil {
			return nil, err
		}
	}
	t.checkForm(&findings, p)
	if p.pod.Pulls() {
		findings.warn("nothing; make sure that other tools that write this manifest keep that",
			"the manifest makes kubelet pull the image at every start; install sets imagePullPolicy: IfNotPresent, because it loads the image itself")
	}
	checkHardened(&findings, p)
	t.checkReplaced(&findings, p, request)
	t.checkConfig(ctx, &findings, p, request)
	if p.accepted != nil {
		t.checkSharedProfiles(ctx, &findings, p, request.Accept)
	}
	return findings, nil
}

// checkNames reports images in the runtime that the archive would replace, because it has one of their names.
func (t *Tool) checkNames(ctx context.Context, findings *Findings, p *plan) error {
	for _, name := range p.archive.Names {
		id, err := t.node.Runtime.ImageID(ctx, name)
		if err != nil {
			return err
		}
		repository, _, _ := strings.Cut(path.Base(name), ":")
		switch {
		case id == "" || id == p.imageID:
		case name == p.pod.Image:
			findings.problem("kube-scheduler-swap rollback, then run this again; or use an archive with another image name",
				"the running scheduler is another image with the same name, %s: once the new image is loaded, the old manifest "+
					"would start it, too", name)
		case !strings.Contains(repository, "scheduler"):
			findings.problem("use an archive with only the scheduler's image name, as in the release bundle",
				"the container runtime has another image with the name %s, which is not a scheduler's: loading %s replaces it "+
					"for all pods", name, p.archive.Path)
		default:
			findings.warn("nothing, if that image is no longer needed; otherwise use an archive with another image name",
				"the container runtime has another image with the name %s; loading %s replaces it, and a rollback to it would "+
					"run the new one", name, p.archive.Path)
		}
	}
	return nil
}

// checkForm warns if the whole manifest would be reformatted.
func (t *Tool) checkForm(findings *Findings, p *plan) {
	if p.reformatted && !p.unchanged() {
		findings.warn("kube-scheduler-swap diff with the same arguments shows every line",
			"%s", wouldReformat(t.manifest))
	}
}

// checkUndone reports a swap that an upgrade or a person has overwritten.
func (t *Tool) checkUndone(findings *Findings, content []byte, pod *manifest.Pod) error {
	last, there, err := t.state.LastInstalled()
	if err != nil {
		return err
	}
	if unfinished, err := t.state.Unfinished(); err != nil {
		return err
	} else if unfinished != nil && slices.Contains(unfinished.Unproven, manifest.Identity(content)) {
		findings.warn("run kube-scheduler-swap install with the same arguments, or kube-scheduler-swap rollback",
			"the %s of %s did not finish", unfinished.Operation, unfinished.Started.Format("2006-01-02 15:04:05 MST"))
		return nil
	}
	again := "kube-scheduler-swap install --image " + last.Image
	if last.Config != "" {
		again += " --config " + filepath.Join(t.state.ConfigFolder(last.Config+strings.Repeat("0", 12)), manifest.ConfigFileName)
	}
	if last.Mounts != "" {
		again += " --mount " + last.Mounts
	} else if pod.Swap.Mounts != "" {
		again += " --mount " + NoMount
	}
	if last.Hardened {
		again += " --hardened"
	}
	again += ", and kube-scheduler-swap kubeadm-patch for the next upgrade"
	at := last.At.Format("2006-01-02 15:04:05 MST")
	switch {
	case manifest.HalfSwapped(pod):
		findings.problem("kube-scheduler-swap install --archive kube-scheduler.tar --config FILE, and use --patches at the next upgrade",
			"%s uses %s but mounts nothing there, so its scheduler cannot start; kubeadm writes this without our patch", t.manifest, manifest.ContainerConfigPath)
	case !there && (!pod.Swapped || pod.Swap.ConfigSHA256 != "" && !manifest.UsesConfig(pod)) && t.state.HasDefaultPatch():
		// This node joined with another node's patch.
		findings.warn("kube-scheduler-swap install --archive kube-scheduler.tar --config FILE, or remove the patch",
			"kubeadm's patch for the swap is in %s, but %s is not, or only partly, swapped, as after an upgrade without --patches", record.DefaultPatches, t.manifest)
	case !there || last.Manifest == manifest.Sum(content):
	case last.Config != "" && pod.Image == last.Image && pod.Swap.ConfigSHA256 == last.Config && !manifest.UsesConfig(pod):
		findings.problem(again, "the swap was partly undone: %s has the image and the volume that were installed on %s, but not --config; "+
			"scheduler.extraArgs.config is missing in kubeadm's ClusterConfiguration", t.manifest, at)
	case pod.Swapped && pod.Image == last.Image && pod.Swap.ConfigSHA256 != last.Config:
		findings.problem(again, "the swap was changed: %s uses another configuration than the one that was installed on %s", t.manifest, at)
	case pod.Swapped && pod.Image == last.Image && pod.Swap.Mounts != last.Mounts:
		findings.problem(again, "the swap was changed: %s mounts other directories (%q) than those that were installed on %s (%q)",
			t.manifest, pod.Swap.Mounts, at, last.Mounts)
	case pod.Swapped && pod.Image == last.Image && last.Hardened && !pod.Swap.Hardened:
		findings.problem(again, "the swap was changed: the container in %s is not hardened, as it was installed on %s", t.manifest, at)
	case !pod.Swapped && pod.Image == last.Image:
		findings.problem(again, "the swap was undone: %s has the image that was installed on %s, and nothing else of the swap, as after kubeadm upgrade",
			t.manifest, at)
	case !pod.Swapped || pod.Image != last.Image:
		findings.problem(again, "the swap was undone: %s has the image %s instead of the one that was installed on %s, %s, as after kubeadm upgrade",
			t.manifest, pod.Image, at, last.Image)
	default:
		findings.warn("nothing, if that was intended", "%s was rewritten or edited since %s; its image and configuration are those that were installed", t.manifest, at)
	}
	return nil
}
