// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kube-scheduler-fork/build/nextstep"
)

// keepImages saves the images that a rollback needs: kubelet removes unused images, and a node may have no registry. An
// image that cannot be saved is no reason to stop.
func (t *Tool) keepImages(ctx context.Context, good []byte) {
	original, _ := readIfThere(t.state.original())
	for _, manifest := range [][]byte{good, original} {
		pod, err := Describe(manifest)
		if manifest == nil || err != nil {
			continue
		}
		if err := t.keepImage(ctx, pod.Image); err != nil && ctx.Err() == nil {
			t.say("the image %s cannot be saved, so a rollback needs it in the container runtime or in a registry: %v",
				pod.Image, err)
		}
	}
}

func (t *Tool) keepImage(ctx context.Context, name string) error {
	id, err := t.node.runtime.imageID(ctx, name)
	if id == "" || err != nil {
		return err
	}
	file := t.state.imageFile(name)
	// A saved file is always complete; its content is verified before it is loaded.
	if tag, err := parseTag(name); err != nil {
		return err
	} else if _, kept, _, err := imageOf(func() (io.ReadCloser, error) { return os.Open(file) }, tag.String()); err == nil && kept == id {
		return nil
	}
	if err := keepFolder(t.state.images()); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(t.state.folder, ".scratch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	saved := filepath.Join(scratch, "image.tar")
	if err := t.node.runtime.save(ctx, name, saved); err != nil {
		return err
	}
	return os.Rename(saved, file)
}

// pullTime is the timeout of a pull before the image on the node is used.
const pullTime = 30 * time.Second

// startable returns a manifest that kubelet can start without a registry: if the image is pulled at every start and the
// registry does not answer, the result uses the image on the node.
func (t *Tool) startable(ctx context.Context, manifest []byte) []byte {
	pod, err := Describe(manifest)
	if err != nil || !pod.pulls() {
		return manifest
	}
	pulling, stop := context.WithTimeout(ctx, pullTime)
	defer stop()
	if err = t.node.runtime.pull(pulling, pod.Image); err == nil {
		return manifest
	}
	edit, failed := WithoutPull(manifest)
	if failed != nil {
		return manifest
	}
	t.say("the old manifest makes kubelet pull %s at every start, but that fails: %v; it gets imagePullPolicy: IfNotPresent; "+
		"set Always again once the registry answers, if you need it", pod.Image, err)
	return edit.Manifest
}

// haveImage ensures that a manifest's image is on this node before anything is changed: kubelet removes images that
// have been unused for a while.
func (t *Tool) haveImage(ctx context.Context, manifest []byte) error {
	pod, err := Describe(manifest)
	if err != nil {
		return err
	}
	id, err := t.node.runtime.imageID(ctx, pod.Image)
	if id != "" || err != nil {
		return err
	}
	if kept, err := openArchive(t.state.imageFile(pod.Image)); err == nil {
		t.say("loading %s, which is no longer on this node, from %s", pod.Image, kept.path)
		if err = t.node.runtime.load(ctx, kept.path); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.say("that failed: %v", err)
	}
	t.say("pulling %s, which is no longer on this node", pod.Image)
	if err := t.node.runtime.pull(ctx, pod.Image); err != nil {
		return nextstep.With(
			fmt.Errorf("%s, the image to roll back to, is not on this node and cannot be pulled: %w",
				pod.Image, err), "load it (%s), then run this again", strings.Join(append(t.node.runtime.tool(), map[bool]string{true: "load --input FILE", false: "images import FILE"}[t.node.runtime.docker]),
				" "))
	}
	return nil
}

// swappedImages returns the known images of swaps on this node, IDs by name. now is the current manifest.
func (t *Tool) swappedImages(ctx context.Context, now []byte) (map[string]string, error) {
	manifests, err := t.state.savedManifests()
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for _, manifest := range append(manifests, now) {
		pod, err := Describe(manifest)
		if err != nil || !pod.Swapped {
			continue
		}
		id, err := t.node.runtime.imageID(ctx, pod.Image)
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
	runs, unknown := t.node.runtime.imageID(ctx, scheduler.Image)
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		user, err := "the scheduler of "+t.manifest, unknown
		if err == nil && ids[name] != runs {
			user, err = t.node.imageUser(ctx, scheduler, ids[name])
		}
		if err == nil && user == "" {
			if err = t.node.runtime.remove(ctx, ids[name]); err == nil {
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
			t.node.runtime.removeCommand(ctx, name, ids[name]))
	}
}
