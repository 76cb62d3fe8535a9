// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"path/filepath"
	"slices"
	"strings"

	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// checkUndone reports a swap that an upgrade or a person has overwritten.
func (t *Tool) checkUndone(findings *Findings, content []byte, pod *manifest.Pod) error {
	var last record.Installed
	there, err := record.ReadJSON(t.state.InstalledFile(), &last)
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
