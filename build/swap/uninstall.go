// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/nextstep"
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
		if ours, err = KubeadmPatch(pod.Swap); err != nil {
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
	if err := t.removePatches(ours); err != nil {
		return err
	}
	t.removeImages(ctx, pod, ids)
	if err := t.removeState(); err != nil {
		return err
	}
	t.sayClusterConfiguration(ctx)
	left := "nothing of kube-scheduler-swap is left in " + t.manifest
	if !pod.Swap.RestartedAt.IsZero() {
		left = fmt.Sprintf("all that is left of kube-scheduler-swap is the annotation %s in %s, which has no effect",
			RestartedAtAnnotation, t.manifest)
	}
	t.say("done: %s; the program itself stays: rm %s", left, os.Args[0])
	return nil
}

// swappedImages returns the known images of swaps on this node, IDs by name. now is the current manifest.
func (t *Tool) swappedImages(ctx context.Context, now []byte) (map[string]string, error) {
	manifests, err := t.state.manifests()
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for _, manifest := range append(manifests, now) {
		pod, err := Describe(manifest)
		if err != nil || !pod.Swapped {
			continue
		}
		id, err := t.runtime.imageID(ctx, pod.Image)
		if err != nil {
			return nil, err
		}
		if id != "" {
			ids[pod.Image] = id
		}
	}
	return ids, nil
}

// removeImages removes images by name and ID, except those in use by anything other than the manifest's scheduler: the
// next container of such a user would not start.
func (t *Tool) removeImages(ctx context.Context, scheduler *Pod, ids map[string]string) {
	// The restored manifest may have the same image, set by hand.
	runs, unknown := t.runtime.imageID(ctx, scheduler.Image)
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		user, err := "the scheduler of "+t.manifest, unknown
		if err == nil && ids[name] != runs {
			user, err = t.imageUser(ctx, scheduler, ids[name])
		}
		if err == nil && user == "" {
			if err = t.runtime.remove(ctx, ids[name]); err == nil {
				t.say("removed the image %s", name)
				continue
			}
		}
		why := user + " uses it"
		if err != nil {
			what, _ := nextstep.Split(err, "")
			why = what
		}
		t.say("the image %s is left: %s; once nothing needs it: %s", name, why,
			t.runtime.removeCommand(ctx, name, ids[name]))
	}
}

// imageUser returns a container or pod of this node, other than the
// scheduler, that was created from an image or refers to it; empty: none.
func (t *Tool) imageUser(ctx context.Context, scheduler *Pod, id string) (string, error) {
	own := metav1.ObjectMeta{Namespace: scheduler.Namespace, Name: t.podName(scheduler)}
	container, err := t.runtime.containerOf(ctx, id, own)
	if container != "" || err != nil {
		return container, err
	}
	pods, err := t.cluster.podsOn(ctx, t.kubelet.nodeName)
	if err != nil {
		return "", err
	}
	// Many pods of a node share a few images.
	known := map[string]string{}
	for _, pod := range pods {
		if pod.Namespace == own.Namespace && pod.Name == own.Name {
			continue
		}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			found, asked := known[container.Image]
			if !asked {
				// Resolve names with the runtime: one image may have several.
				if found, err = t.runtime.imageID(ctx, container.Image); err != nil {
					return "", err
				}
				known[container.Image] = found
			}
			if found == id {
				return "the pod " + pod.Namespace + "/" + pod.Name, nil
			}
		}
	}
	return "", nil
}

// removePatches removes kubeadm's patch, which would restore the swap. A patch with manual edits is first saved with
// the other edited files.
func (t *Tool) removePatches(ours []byte) error {
	files, err := t.patchFiles()
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := readIfThere(file)
		if err != nil {
			return err
		}
		if !strings.Contains(string(content), VersionAnnotation) {
			continue
		}
		if err := t.keepEditedPatch(content, ours); err != nil {
			return err
		}
		if err := removeDurably(file); err != nil {
			return nextstep.With(fmt.Errorf("kubeadm's patch cannot be removed: %w", err), "rm %s, then run this again", file)
		}
		t.say("removed %s", file)
	}
	return nil
}

// removeState removes this tool's files from the state directory, except files with manual edits.
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
	// The directory may contain other files.
	for _, path := range []string{t.state.original(), t.state.previous(), t.state.undo(), t.state.journalFile(), t.state.installedFile(),
		t.state.patchedFile(), t.state.configs(), t.state.images(), filepath.Join(t.state.folder, "lock")} {
		if err := os.RemoveAll(path); err != nil {
			return nextstep.With(err, "rm -r %s, then run this again", path)
		}
	}
	if err := os.Remove(t.state.folder); err != nil {
		t.say("%s is left, with saved manual edits; once you have read them: rm -r %s", t.state.folder, t.state.folder)
		return nil
	}
	t.say("removed %s", t.state.folder)
	return nil
}

// sayClusterConfiguration warns if kubeadm would still pass this tool's configuration to the scheduler.
func (t *Tool) sayClusterConfiguration(ctx context.Context) {
	found, err := t.cluster.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.say("cannot check whether kubeadm's ClusterConfiguration refers to the swap: %v", err)
	} else if err == nil && strings.Contains(found.Data["ClusterConfiguration"], ContainerConfigPath) {
		t.say("kubeadm's ClusterConfiguration still has %s: once no node is swapped, remove scheduler.extraArgs.config "+
			"(kubectl -n kube-system edit configmap kubeadm-config)", ContainerConfigPath)
	}
}
