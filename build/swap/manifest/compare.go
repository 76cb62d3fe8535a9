// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Sum returns the SHA-256 sum of a content, in hexadecimal digits.
func Sum(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// Identity returns the sum of a manifest without its restart time, which changes with every write.
func Identity(manifest []byte) string {
	edit, err := Restart(manifest, time.Unix(0, 0))
	if err != nil {
		return Sum(manifest)
	}
	return Sum(edit.Manifest)
}

// OnlyRestarted reports whether two manifests differ at most by the second's restart time, which a rollback may leave.
func OnlyRestarted(from, to []byte) bool {
	pod, err := Describe(to)
	if err != nil || pod.Swap.RestartedAt.IsZero() {
		return Sum(from) == Sum(to)
	}
	edit, err := Restart(from, pod.Swap.RestartedAt)
	return err == nil && Sum(edit.Manifest) == Sum(to)
}

// SwapOf reports whether a pod is the given manifest plus the pod's swap, and nothing else.
func SwapOf(manifest []byte, pod *Pod) bool {
	edit, err := Apply(manifest, pod.Swap)
	if err != nil {
		return false
	}
	expected, err := Describe(edit.Manifest)
	return err == nil && equality.Semantic.DeepEqual(expected.Object, pod.Object)
}

// InWords describes a manifest's image and configuration for output.
func InWords(manifest []byte) string {
	pod, err := Describe(manifest)
	if err != nil {
		return "a manifest that cannot be read"
	}
	text := "the image " + pod.Image
	if pod.Swapped {
		text += " (" + Version(pod.Swap.Version) + ")"
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

// Version returns an image's version for output.
func Version(label string) string { return cmp.Or(label, "of unknown version") }
