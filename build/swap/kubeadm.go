// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"kube-scheduler-fork/build/staticpod"
)

// DefaultPatches is where kubeadm's patches lie unless the user says otherwise.
const DefaultPatches = "/etc/kubernetes/patches"

// KubeadmPatch writes the patch that makes `kubeadm upgrade --patches` and `kubeadm join --patches` keep the swap of this node,
// and gives the lines for kubeadm's ClusterConfiguration. From then on every install brings the patch up to date.
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
		return "", errors.New("the scheduler of this node is not swapped: there is nothing to keep; next: kube-scheduler-swap install")
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", err
	}
	if err := t.writePatch(folder, pod.Swap); err != nil {
		return "", err
	}
	if err := writeRecord(t.state.patchedFile(), patched{Folder: folder}); err != nil {
		return "", fmt.Errorf("cannot write down where the patch lies: %w; next: see that there is room in %s", err, t.state.folder)
	}
	if pod.Swap.ConfigFolder == "" {
		// Nothing is mounted then for --config to name.
		return "", nil
	}
	return staticpod.ClusterConfigurationLines(), nil
}

// updatePatch brings kubeadm's patch up to date, if there is one.
func (t *Tool) updatePatch(swap staticpod.Swap) error {
	var patch patched
	there, err := readRecord(t.state.patchedFile(), &patch)
	if err != nil {
		return err
	}
	if !there {
		// A node that joined with the patch of another one.
		if !t.patchThere() {
			return nil
		}
		patch.Folder = DefaultPatches
		if err := writeRecord(t.state.patchedFile(), patch); err != nil {
			return err
		}
	}
	if err := t.writePatch(patch.Folder, swap); err != nil {
		return err
	}
	t.say("brought kubeadm's patch in %s up to date", patch.Folder)
	return nil
}

// patchThere tells whether a patch of ours lies where kubeadm's patches lie by default.
func (t *Tool) patchThere() bool {
	content, err := readIfThere(filepath.Join(DefaultPatches, staticpod.KubeadmPatchFile))
	return err == nil && strings.Contains(string(content), staticpod.VersionAnnotation)
}

func (t *Tool) writePatch(folder string, swap staticpod.Swap) error {
	if inside(folder, filepath.Dir(t.manifest)) {
		return fmt.Errorf("the patch may not lie in %s: kubelet would run it; next: name another folder with --folder", filepath.Dir(t.manifest))
	}
	content, err := staticpod.KubeadmPatch(swap)
	if err != nil {
		return err
	}
	if err := keepFolder(folder); err != nil {
		return err
	}
	if err := writeDurably(filepath.Join(folder, staticpod.KubeadmPatchFile), content, 0o600); err != nil {
		return fmt.Errorf("cannot write kubeadm's patch: %w; next: see that there is room in %s", err, folder)
	}
	return nil
}
