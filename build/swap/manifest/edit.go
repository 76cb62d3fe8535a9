// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

// Edit is an edited manifest.
type Edit struct {
	Manifest []byte
	// Reformatted reports whether lines outside the change differ too: indentation, blank lines, line ends, the space
	// before comments and anchors; in JSON the order of keys. The content and the comments are the same. It is always
	// false for a manifest written by an earlier edit. It is also false for kubeadm's, except if a long value with
	// blanks in it, such as an annotation from a patch, made kubeadm break the line.
	Reformatted bool
}

// Diff returns a unified diff between two texts; nil if they are equal.
func Diff(oldName string, old []byte, newName string, new []byte) []byte {
	return diff.Diff(oldName, old, newName, new)
}

// Apply swaps a manifest: it sets the image, an imagePullPolicy without a pull at every start, --config, volumes with
// their mounts, and the annotations. It then compares the decoded pods to verify that nothing else changed. A second Apply
// with the same swap changes nothing; in a swapped manifest, Apply replaces the values in place. It also replaces an
// operator's --config in place, and leaves their other volumes. Without Swap.ConfigFolder, it removes the configuration
// of an earlier swap, and leaves an operator's --config.
//
// An error says what is wrong with the manifest, and ends with the next step.
func Apply(manifest []byte, swap Swap) (Edit, error) {
	if err := swap.check(); err != nil {
		return Edit{}, err
	}
	return edit(manifest, swap.plan, swap.proof)
}

// Restart sets RestartedAtAnnotation and nothing else, in a swapped or an original manifest.
func Restart(manifest []byte, at time.Time) (Edit, error) {
	plan := func(t tree, _ Pod) {
		t.setEntries(place{"metadata", "annotations"}, entry{RestartedAtAnnotation, quoted(formatTime(at))})
	}
	proof := func(before, after Pod) error {
		swap := before.Swap
		if swap.RestartedAt = at.UTC(); after.Swap != swap {
			return fmt.Errorf("it would say %+v", after.Swap)
		}
		return nil
	}
	return edit(manifest, plan, proof)
}

// WithoutPull makes kubelet use the image on the node, and changes nothing else.
func WithoutPull(manifest []byte) (Edit, error) {
	plan := func(t tree, pod Pod) {
		t.set(place{"spec", "containers", pod.Index, "imagePullPolicy"}, scalar(string(corev1.PullIfNotPresent)))
	}
	return edit(manifest, plan, func(before, after Pod) error {
		if after.Pulls() || after.Swap != before.Swap {
			return errors.New("the image would still be pulled, or the swap would change")
		}
		return nil
	})
}

// withoutSwap returns a copy of a pod without the fields that a swap may change. The rest must stay the same.
func withoutSwap(described Pod, hardened bool) *corev1.Pod {
	pod := described.Object.DeepCopy()
	for _, name := range []string{ConfigSHA256Annotation, VersionAnnotation, RestartedAtAnnotation} {
		delete(pod.Annotations, name)
	}
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return IsOurs(v.Name) })
	container := &pod.Spec.Containers[described.Index]
	container.Image, container.ImagePullPolicy = "", ""
	container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
		return IsOurs(m.Name) || path.Clean(m.MountPath) == ContainerConfigFolder
	})
	if hardened {
		withoutSecurity(container)
	}
	// Remove --config from the command line, and keep the split into command and args.
	container.Command, container.Args = nil, nil
	existing := described.Line.Find("config")
	for index, element := range described.Line.Elements {
		switch {
		case slices.ContainsFunc(existing, func(f schedulerpod.FlagPlace) bool { return f.First <= index && index <= f.Last }):
		case index < described.Line.Command:
			container.Command = append(container.Command, element)
		default:
			container.Args = append(container.Args, element)
		}
	}
	return pod
}

// edit changes a manifest and verifies the result: proof must accept it,
// and except for the fields of a swap it must be equal to the original.
func edit(manifest []byte, plan func(tree, Pod), proof func(before, after Pod) error) (Edit, error) {
	before, err := Describe(manifest)
	if err != nil {
		return Edit{}, err
	}
	plain, err := normalize(manifest)
	if err != nil {
		return Edit{}, err
	}
	document, err := parse(plain)
	if err != nil {
		return Edit{}, err
	}
	plan(tree{document.Content[0]}, before)
	changed, err := encode(document, plain)
	if err != nil {
		return Edit{}, err
	}
	if bytes.Equal(changed, plain) {
		return Edit{Manifest: manifest}, nil
	}
	if len(changed) > maxManifest {
		return Edit{}, nextstep.With(
			fmt.Errorf("the changed manifest would have more than %d bytes, which kubelet rejects", maxManifest), "shorten it")
	}
	after, err := Describe(changed)
	if err == nil {
		err = proof(before, after)
	}
	// Only install --hardened sets a security context.
	hardened := before.Swap.Hardened != after.Swap.Hardened || before.Swap.NonRoot != after.Swap.NonRoot
	if err == nil && !equality.Semantic.DeepEqual(withoutSwap(before, hardened), withoutSwap(after, hardened)) {
		err = errors.New("other fields would change, too")
	}
	if err != nil {
		return Edit{}, nextstep.With(
			fmt.Errorf("the manifest is written in a way that cannot be changed safely: %w", err),
			"replace its anchors by their values, write its lists with one item per line, then run this again")
	}
	return Edit{Manifest: changed, Reformatted: !bytes.Equal(plain, manifest)}, nil
}
