// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"path/filepath"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// KubeadmPatch writes the patch that makes `kubeadm upgrade --patches` and `kubeadm
// join --patches` keep the swap of this node, and returns the lines for kubeadm's
// ClusterConfiguration, if it needs any. Every later install updates the patch.
func (t *Tool) KubeadmPatch(ctx context.Context, folder string) (lines string, err error) {
	unlock, err := t.state.Lock()
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
	if err := t.state.WritePatch(folder, pod.Swap); err != nil {
		return "", err
	}
	if pod.Swap.ConfigFolder == "" {
		// --config has no file to name then.
		return "", nil
	}
	return manifest.ClusterConfigurationLines(), nil
}
