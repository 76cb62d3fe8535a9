// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// identity returns the sum of a manifest without its restart time, which changes with every write.
func identity(manifest []byte) string {
	edit, err := Restart(manifest, time.Unix(0, 0))
	if err != nil {
		return sum(manifest)
	}
	return sum(edit.Manifest)
}

// onlyRestarted reports whether two manifests differ at most by the second's restart time, which a rollback may leave.
func onlyRestarted(from, to []byte) bool {
	pod, err := Describe(to)
	if err != nil || pod.Swap.RestartedAt.IsZero() {
		return sum(from) == sum(to)
	}
	edit, err := Restart(from, pod.Swap.RestartedAt)
	return err == nil && sum(edit.Manifest) == sum(to)
}

// swapOf reports whether a pod is the given manifest plus the pod's swap, and nothing else.
func swapOf(manifest []byte, pod *Pod) bool {
	edit, err := Apply(manifest, pod.Swap)
	if err != nil {
		return false
	}
	expected, err := Describe(edit.Manifest)
	return err == nil && equality.Semantic.DeepEqual(expected.Object, pod.Object)
}

// inWords describes a manifest's image and configuration for output.
func inWords(manifest []byte) string {
	pod, err := Describe(manifest)
	if err != nil {
		return "a manifest that cannot be read"
	}
	text := "the image " + pod.Image
	if pod.Swapped {
		text += " (" + version(pod.Swap.Version) + ")"
	}
	inside := pod.ConfigFile()
	if inside == "" {
		return text + " and no configuration"
	}
	if host, mounted := pod.HostPath(inside); mounted {
		inside = host
	}
	return text + " and the configuration " + inside
}

// version returns an image's version for output.
func version(label string) string {
	if label == "" {
		return "of unknown version"
	}
	return label
}
