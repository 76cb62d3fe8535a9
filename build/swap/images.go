// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// saveImages saves the images that a rollback needs: kubelet removes unused images, and a node may have no registry. An
// image that cannot be saved is no reason to stop.
func (t *Tool) saveImages(ctx context.Context, fallback []byte) {
	original, _ := record.ReadIfExists(t.state.Original())
	for _, content := range [][]byte{fallback, original} {
		pod, err := manifest.Describe(content)
		if content == nil || err != nil {
			continue
		}
		if err := t.saveImage(ctx, pod.Image); err != nil && ctx.Err() == nil {
			t.say("the image %s cannot be saved, so a rollback needs it in the container runtime or in a registry: %v",
				pod.Image, err)
		}
	}
}

func (t *Tool) saveImage(ctx context.Context, name string) error {
	id, err := t.node.Runtime.ImageID(ctx, name)
	if id == "" || err != nil {
		return err
	}
	return t.state.SaveImage(name, id, func(file string) error { return t.node.Runtime.Save(ctx, name, file) })
}

// pullTime is the timeout of a pull before the image on the node is used.
const pullTime = 30 * time.Second

// withoutPull returns a manifest that kubelet can start without a registry: if the image is pulled at every start and the
// registry does not answer, the result uses the image on the node.
func (t *Tool) withoutPull(ctx context.Context, content []byte) []byte {
	pod, err := manifest.Describe(content)
	if err != nil || !pod.Pulls() {
		return content
	}
	pulling, stop := context.WithTimeout(ctx, pullTime)
	defer stop()
	if err = t.node.Runtime.Pull(pulling, pod.Image); err == nil {
		return content
	}
	edit, failed := manifest.WithoutPull(content)
	if failed != nil {
		return content
	}
	t.say("the old manifest makes kubelet pull %s at every start, but that fails: %v; it gets imagePullPolicy: IfNotPresent; "+
		"set Always again once the registry answers, if you need it", pod.Image, err)
	return edit.Manifest
}

// ensureImage ensures that a manifest's image is on this node before anything is changed: kubelet removes images that
// have been unused for a while.
func (t *Tool) ensureImage(ctx context.Context, content []byte) error {
	pod, err := manifest.Describe(content)
	if err != nil {
		return err
	}
	id, err := t.node.Runtime.ImageID(ctx, pod.Image)
	if id != "" || err != nil {
		return err
	}
	if kept, err := record.OpenArchive(t.state.ImageFile(pod.Image)); err == nil {
		t.say("loading %s, which is no longer on this node, from %s", pod.Image, kept.Path)
		if err = t.node.Runtime.Load(ctx, kept.Path); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.say("that failed: %v", err)
	}
	t.say("pulling %s, which is no longer on this node", pod.Image)
	if err := t.node.Runtime.Pull(ctx, pod.Image); err != nil {
		return nextstep.With(
			fmt.Errorf("%s, the image to roll back to, is not on this node and cannot be pulled: %w",
				pod.Image, err), "load it (%s), then run this again", strings.Join(append(t.node.Runtime.Tool(), map[bool]string{true: "load --input FILE", false: "images import FILE"}[t.node.Runtime.Docker]),
				" "))
	}
	return nil
}

// swappedImages returns the known images of swaps on this node, IDs by name. now is the current manifest.
func (t *Tool) swappedImages(ctx context.Context, now []byte) (map[string]string, error) {
	manifests, err := t.state.SavedManifests()
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for _, content := range append(manifests, now) {
		pod, err := manifest.Describe(content)
		if err != nil || !pod.Swapped {
			continue
		}
		id, err := t.node.Runtime.ImageID(ctx, pod.Image)
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
func (t *Tool) removeImages(ctx context.Context, scheduler *manifest.Pod, ids map[string]string) {
	// The restored manifest may have the same image, set by hand.
	runs, unknown := t.node.Runtime.ImageID(ctx, scheduler.Image)
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		user, err := "the scheduler of "+t.manifest, unknown
		if err == nil && ids[name] != runs {
			user, err = t.node.ImageUser(ctx, scheduler, ids[name])
		}
		if err == nil && user == "" {
			if err = t.node.Runtime.Remove(ctx, ids[name]); err == nil {
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
			t.node.Runtime.RemoveCommand(ctx, name, ids[name]))
	}
}
