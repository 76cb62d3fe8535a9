// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// Uninstall restores kubeadm's scheduler, and removes this tool's files from the node: kubeadm's patch, the images and
// the state directory. Files with manual edits stay. After an interruption, another run finishes it.
func (t *Tool) Uninstall(ctx context.Context) error {
	end, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	var ours []byte
	before, pod, err := t.readManifest()
	if err == nil {
		if ours, err = manifest.KubeadmPatch(pod.Swap); err != nil {
			return err
		}
	}
	ids, err := t.swappedImages(ctx, before)
	if err != nil {
		return err
	}
	if err := t.rollback(ctx, ToStock); err != nil {
		return err
	}
	if _, pod, err = t.readManifest(); err != nil {
		return err
	}
	if pod.Swapped {
		return nextstep.With(fmt.Errorf("%s is still swapped", t.manifest), "kube-scheduler-swap status")
	}
	if err := t.state.RemovePatches(ours); err != nil {
		return err
	}
	t.removeImages(ctx, pod, ids)
	if err := t.state.RemoveAll(); err != nil {
		return err
	}
	t.sayClusterConfiguration(ctx)
	left := "nothing of kube-scheduler-swap is left in " + t.manifest
	if !pod.Swap.RestartedAt.IsZero() {
		left = fmt.Sprintf("all that is left of kube-scheduler-swap is the annotation %s in %s, which has no effect",
			manifest.RestartedAtAnnotation, t.manifest)
	}
	t.say("done: %s; the program itself stays: rm %s", left, os.Args[0])
	return nil
}

// sayClusterConfiguration warns if kubeadm would still pass this tool's configuration to the scheduler.
func (t *Tool) sayClusterConfiguration(ctx context.Context) {
	found, err := t.node.Cluster.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.say("cannot check whether kubeadm's ClusterConfiguration refers to the swap: %v", err)
	} else if err == nil && strings.Contains(found.Data["ClusterConfiguration"], manifest.ContainerConfigPath) {
		t.say("kubeadm's ClusterConfiguration still has %s: once no node is swapped, remove scheduler.extraArgs.config "+
			"(kubectl -n kube-system edit configmap kubeadm-config)", manifest.ContainerConfigPath)
	}
}

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
