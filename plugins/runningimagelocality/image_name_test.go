// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"fmt"
	"strings"
	"testing"
)

var (
	digestA = "sha256:" + strings.Repeat("a", 64)
	digestB = "sha256:" + strings.Repeat("b", 64)
)

func TestNormalise(t *testing.T) {
	tests := []struct {
		name  string
		image string
		// want is the normalised name; none means that it is no name.
		want string
	}{
		{name: "no registry, no folder, no tag", image: "busybox", want: "docker.io/library/busybox:latest"},
		{name: "no registry, no folder", image: "busybox:1.35", want: "docker.io/library/busybox:1.35"},
		{name: "no registry", image: "grafana/grafana:8", want: "docker.io/grafana/grafana:8"},
		{name: "Docker's registry and no folder", image: "docker.io/busybox:1", want: "docker.io/library/busybox:1"},
		{name: "Docker's registry by its old name", image: "index.docker.io/library/busybox:1", want: "docker.io/library/busybox:1"},
		{name: "the full name", image: "docker.io/library/busybox:latest", want: "docker.io/library/busybox:latest"},
		{name: "another registry, no tag", image: "registry.k8s.io/pause", want: "registry.k8s.io/pause:latest"},
		{name: "a registry's port is no tag", image: "registry:5000/pause", want: "registry:5000/pause:latest"},
		{name: "this machine's registry", image: "localhost/pause:3", want: "localhost/pause:3"},
		{name: "a digest", image: "busybox@" + digestA, want: "docker.io/library/busybox@" + digestA},
		{name: "a digest and a tag", image: "busybox:1@" + digestA, want: "docker.io/library/busybox@" + digestA},
		{name: "nothing", image: ""},
		{name: "upper case", image: "BusyBox"},
		{name: "two tags", image: "busybox:1:2"},
		{name: "the id of an image", image: strings.Repeat("a", 64)},
		{name: "the digest alone", image: digestA, want: "docker.io/library/sha256:" + strings.Repeat("a", 64)},
		{name: "a digest that is too short", image: "busybox@sha256:abc"},
		{name: "what Docker reports of an image without a name", image: "<none>@<none>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			names := newNames()
			// The second time the name is known.
			for i := 0; i < 2; i++ {
				if got, ok := names.normalise(tt.image); got != tt.want || ok != (tt.want != "") {
					t.Errorf("normalise(%q) = %q, %t, want %q", tt.image, got, ok, tt.want)
				}
			}
		})
	}
}

func TestDigestOfAnImageID(t *testing.T) {
	tests := []struct {
		name    string
		imageID string
		want    string
	}{
		{name: "containerd", imageID: "docker.io/library/busybox@" + digestA, want: "docker.io/library/busybox@" + digestA},
		{name: "dockershim, pulled", imageID: "docker-pullable://busybox@" + digestA, want: "docker.io/library/busybox@" + digestA},
		{name: "dockershim, built on the node", imageID: "docker://" + digestA},
		{name: "the id of the configuration", imageID: digestA},
		{name: "a container that has no image yet", imageID: ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := newNames().digest(tt.imageID)
			if ok != (tt.want != "") || ok && got != tt.want {
				t.Errorf("digest(%q) = %q, %t, want %q", tt.imageID, got, ok, tt.want)
			}
		})
	}
}

func TestNamesCacheIsBounded(t *testing.T) {
	names := newNames()
	for i := 0; i < 2*nameCacheSize; i++ {
		names.normalise(fmt.Sprintf("image-%d", i))
	}
	if got := names.cache.Len(); got != nameCacheSize {
		t.Errorf("%d names are kept, want %d", got, nameCacheSize)
	}
}
