// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/nextstep"
)

// Uninstall goes back to kubeadm's scheduler, and removes what this tool has put on the node: kubeadm's patch, the
// images and the state folder. What a person has edited stays. Interrupted, it is finished by the next run.
func (t *Tool) Uninstall(ctx context.Context) error {
	end, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := t.rollback(ctx, ToStock); err != nil {
		return err
	}
	_, pod, err := t.readManifest()
	if err != nil {
		return err
	}
	if pod.Swapped {
		return nextstep.With(fmt.Errorf("%s still has a swap in it", t.manifest), "kube-scheduler-swap status")
	}
	if err := t.removePatches(); err != nil {
		return err
	}
	if err := t.removeImages(ctx, pod.Image); err != nil {
		return err
	}
	if err := t.removeState(); err != nil {
		return err
	}
	t.sayClusterConfiguration(ctx)
	t.say("done: of kube-scheduler-swap, the annotation %s in %s is left, which does nothing", RestartedAtAnnotation, t.manifest)
	return nil
}

// removePatches removes kubeadm's patch for the swap, which would bring it back.
func (t *Tool) removePatches() error {
	folders := []string{DefaultPatches}
	var patch patched
	if there, err := readRecord(t.state.patchedFile(), &patch); err != nil {
		return err
	} else if there && patch.Folder != DefaultPatches {
		folders = append(folders, patch.Folder)
	}
	for _, folder := range folders {
		file := filepath.Join(folder, KubeadmPatchFile)
		content, err := readIfThere(file)
		if err != nil {
			return err
		}
		if !strings.Contains(string(content), VersionAnnotation) {
			continue
		}
		if err := removeDurably(file); err != nil {
			return nextstep.With(fmt.Errorf("kubeadm's patch cannot be removed: %w", err), "rm %s, then run this again", file)
		}
		t.say("removed %s", file)
	}
	return nil
}

// removeImages takes the names of the images away that swaps of this node ran; in is the one that runs now.
func (t *Tool) removeImages(ctx context.Context, in string) error {
	files, err := filepath.Glob(filepath.Join(t.state.folder, "*.yaml"))
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, file := range files {
		content, err := readIfThere(file)
		if err != nil {
			return err
		}
		if pod, err := Describe(content); err == nil && pod.Swapped {
			names[pod.Image] = true
		}
	}
	delete(names, in)
	for name := range names {
		if id, err := t.runtime.imageID(ctx, name); err != nil {
			return err
		} else if id == "" {
			continue
		}
		if err := t.runtime.drop(ctx, name); err != nil {
			return err
		}
		t.say("removed the image %s", name)
	}
	return nil
}

// removeState removes the state folder, but for what a person has edited.
func (t *Tool) removeState() error {
	configs, err := filepath.Glob(filepath.Join(t.state.configs(), "*"))
	if err != nil {
		return err
	}
	for _, folder := range configs {
		if err := t.keepEditedConfig(folder); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(t.state.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	var kept []string
	for _, entry := range entries {
		path := filepath.Join(t.state.folder, entry.Name())
		if strings.HasPrefix(entry.Name(), "edited-") || strings.HasPrefix(entry.Name(), "exact-") {
			kept = append(kept, path)
		} else if err := os.RemoveAll(path); err != nil {
			return nextstep.With(err, "rm -r %s, then run this again", path)
		}
	}
	if len(kept) > 0 {
		t.say("what was edited by hand is left: %s", strings.Join(kept, ", "))
		return nil
	}
	if err := os.Remove(t.state.folder); err != nil {
		return nextstep.With(err, "rm -r %s", t.state.folder)
	}
	t.say("removed %s", t.state.folder)
	return nil
}

// sayClusterConfiguration tells whether kubeadm would still give the scheduler our configuration.
func (t *Tool) sayClusterConfiguration(ctx context.Context) {
	found, err := t.cluster.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.say("whether kubeadm's ClusterConfiguration names the swap is not known: %v", err)
	} else if err == nil && strings.Contains(found.Data["ClusterConfiguration"], ContainerConfigPath) {
		t.say("kubeadm's ClusterConfiguration still names %s: once no node is swapped, take scheduler.extraArgs.config out "+
			"(kubectl -n kube-system edit configmap kubeadm-config)", ContainerConfigPath)
	}
}
