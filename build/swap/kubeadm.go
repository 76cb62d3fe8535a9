// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// KubeadmPatchFile is the file name that kubeadm expects for the patch.
const KubeadmPatchFile = "kube-scheduler+strategic.yaml"

// KubeadmPatch returns the strategic merge patch that makes `kubeadm upgrade --patches` and `kubeadm join --patches`
// write the swapped manifest. Two parts of a swap are missing: --config, because a strategic merge cannot add to a list
// of strings (see ClusterConfigurationLines), and RestartedAt, which is specific to one node and moment.
func KubeadmPatch(swap Swap) ([]byte, error) {
	if err := swap.check(); err != nil {
		return nil, err
	}
	container := []entry{{"name", scalar(program)}, {"image", scalar(swap.Image)}}
	spec := []entry{{"containers", nil}}
	var mounts, volumes []*yaml.Node
	for _, v := range swap.volumes() {
		mounts, volumes = append(mounts, v.mountNode()), append(volumes, v.node())
	}
	if len(volumes) > 0 {
		container = append(container, entry{"volumeMounts", sequence(mounts...)})
		spec = append(spec, entry{"volumes", sequence(volumes...)})
	}
	if swap.Hardened {
		container = append(container, entry{"securityContext", mapping(swap.securityContext()...)})
	}
	spec[0].value = sequence(mapping(container...))
	var annotations []entry
	for _, e := range swap.annotations() {
		if e.value.Value != "" && e.key != RestartedAtAnnotation {
			annotations = append(annotations, e)
		}
	}
	var patch []entry
	if len(annotations) > 0 {
		patch = append(patch, entry{"metadata", mapping(entry{"annotations", mapping(annotations...)})})
	}
	patch = append(patch, entry{"spec", mapping(spec...)})

	var written bytes.Buffer
	fmt.Fprintf(&written, "# Keeps the swapped %s when kubeadm writes its manifest: name this file %s in the folder of\n"+
		"# `kubeadm upgrade --patches` or `kubeadm join --patches`.\n", program, KubeadmPatchFile)
	err := yaml.NewEncoder(&written).Encode(mapping(patch...))
	return written.Bytes(), err
}

// ClusterConfigurationLines returns the lines that add --config to kubeadm's ClusterConfiguration, for a swap with a
// configuration. They are the same for every install.
func ClusterConfigurationLines() string {
	return "scheduler:\n  extraArgs:\n    config: " + ContainerConfigPath + "\n"
}

// DefaultPatches is the default directory of kubeadm's patches.
const DefaultPatches = "/etc/kubernetes/patches"

// KubeadmPatch writes the patch that makes `kubeadm upgrade --patches` and `kubeadm
// join --patches` keep the swap of this node, and returns the lines for kubeadm's
// ClusterConfiguration, if it needs any. Every later install updates the patch.
func (t *Tool) KubeadmPatch(ctx context.Context, folder string) (lines string, err error) {
	unlock, err := t.state.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	_, pod, err := t.readManifest()
	if err != nil {
		return "", err
	}
	if !pod.Swapped {
		return "", nextstep.With(
			errors.New("the scheduler of this node is not swapped, so there is nothing for kubeadm to keep"),
			"kube-scheduler-swap install")
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", err
	}
	if err := t.writePatch(folder, pod.Swap); err != nil {
		return "", err
	}
	if pod.Swap.ConfigFolder == "" {
		// --config has no file to name then.
		return "", nil
	}
	return ClusterConfigurationLines(), nil
}

// updatePatch updates kubeadm's patch, if there is one.
func (t *Tool) updatePatch(swap Swap) error {
	var patch patched
	there, err := readRecord(t.state.patchedFile(), &patch)
	if err != nil {
		return err
	}
	if !there {
		// This node joined with another node's patch.
		if !t.patchThere() {
			return nil
		}
		patch.Folder = DefaultPatches
	}
	if err := t.writePatch(patch.Folder, swap); err != nil {
		return err
	}
	t.say("updated kubeadm's patch in %s", patch.Folder)
	return nil
}

// patchFiles returns the paths where this tool's patch may be.
func (t *Tool) patchFiles() ([]string, error) {
	files := []string{filepath.Join(DefaultPatches, KubeadmPatchFile)}
	var patch patched
	if there, err := readRecord(t.state.patchedFile(), &patch); err != nil {
		return nil, err
	} else if there && patch.Folder != DefaultPatches {
		files = append(files, filepath.Join(patch.Folder, KubeadmPatchFile))
	}
	return files, nil
}

// patchThere reports whether this tool's patch is in kubeadm's default directory.
func (t *Tool) patchThere() bool {
	content, err := readIfThere(filepath.Join(DefaultPatches, KubeadmPatchFile))
	return err == nil && strings.Contains(string(content), VersionAnnotation)
}

func (t *Tool) writePatch(folder string, swap Swap) error {
	if inside(folder, filepath.Dir(t.manifest)) {
		return nextstep.With(fmt.Errorf("the patch must not be in %s: kubelet would run it", filepath.Dir(t.manifest)),
			"name another directory with --folder")
	}
	content, err := KubeadmPatch(swap)
	if err != nil {
		return err
	}
	if err := keepFolder(folder); err != nil {
		return err
	}
	file := filepath.Join(folder, KubeadmPatchFile)
	if before, err := readIfThere(file); err != nil {
		return err
	} else if before != nil && !bytes.Equal(before, content) {
		if err := t.keepEditedPatch(before, nil); err != nil {
			return err
		}
	}
	if err := writeDurably(file, content, 0o600); err != nil {
		return nextstep.With(fmt.Errorf("cannot write kubeadm's patch: %w", err),
			"make room in %s", folder)
	}
	if err := writeRecord(t.state.patchedFile(), patched{Folder: folder, Patch: sum(content)}); err != nil {
		return nextstep.With(fmt.Errorf("cannot record where kubeadm's patch is: %w", err),
			"make room in %s", t.state.folder)
	}
	return nil
}

// keepEditedPatch saves a patch in the state directory if it is not as this tool wrote
// it, so that manual edits are not lost. Without a record of the written patch, it
// compares with ours; if ours is nil too, every patch for a swap counts as unedited.
func (t *Tool) keepEditedPatch(patch, ours []byte) error {
	var last patched
	if _, err := readRecord(t.state.patchedFile(), &last); err != nil {
		return err
	}
	switch {
	case last.Patch == sum(patch) || bytes.Equal(patch, ours):
		return nil
	case last.Patch == "" && ours == nil && strings.Contains(string(patch), VersionAnnotation):
		return nil
	}
	// There may be two patches, in two directories.
	kept := t.state.stamped("edited-kubeadm-patch-"+sum(patch)[:8], t.started)
	if err := writeDurably(kept, patch, 0o600); err != nil {
		return nextstep.With(fmt.Errorf("cannot keep kubeadm's patch: %w", err),
			"make room in %s", t.state.folder)
	}
	t.say("kubeadm's patch was edited since this tool wrote it; kept as %s", kept)
	return nil
}
