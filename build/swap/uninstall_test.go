// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kube-scheduler-fork/build/nextstep"
)

// fakeRuntime is a container runtime with image IDs by name, and containers.
type fakeRuntime struct {
	cri.RuntimeServiceClient
	cri.ImageServiceClient
	images     map[string]string
	containers []*cri.Container
	removed    []string
}

func (f *fakeRuntime) ListContainers(
	context.Context, *cri.ListContainersRequest, ...grpc.CallOption,
) (*cri.ListContainersResponse, error) {
	return &cri.ListContainersResponse{Containers: f.containers}, nil
}

func (f *fakeRuntime) ImageStatus(
	_ context.Context, asked *cri.ImageStatusRequest, _ ...grpc.CallOption,
) (*cri.ImageStatusResponse, error) {
	if id := f.images[asked.Image.Image]; id != "" {
		return &cri.ImageStatusResponse{Image: &cri.Image{Id: id, Size_: 20 << 20}}, nil
	}
	return &cri.ImageStatusResponse{}, nil
}

func (f *fakeRuntime) RemoveImage(
	_ context.Context, asked *cri.RemoveImageRequest, _ ...grpc.CallOption,
) (*cri.RemoveImageResponse, error) {
	f.removed = append(f.removed, asked.Image.Image)
	return &cri.RemoveImageResponse{}, nil
}

func containerOfPod(namespace, pod, image string, state cri.ContainerState) *cri.Container {
	return &cri.Container{ImageRef: image, State: state, Labels: map[string]string{
		podNamespaceLabel: namespace, podNameLabel: pod, containerNameLabel: "kube-scheduler"}}
}

func TestAnImageThatIsInUseIsNotRemoved(t *testing.T) {
	const image, tagged, id = "registry.k8s.io/kube-scheduler:v1.23.17-fork", "example.com/second:1", "sha256:1"
	own := containerOfPod("kube-system", "kube-scheduler-cp1", id, cri.ContainerState_CONTAINER_EXITED)
	pod := func(name, node, image string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Image: image}}}}
	}
	for name, c := range map[string]struct {
		containers []*cri.Container
		pod        *corev1.Pod
		user       string
	}{
		"the scheduler's own container that ended": {containers: []*cri.Container{own}},
		"its own mirror, which is not up to date":  {pod: pod("kube-scheduler-cp1", "cp1", image)},
		"another image": {containers: []*cri.Container{containerOfPod("kube-system", "second", "sha256:2", cri.ContainerState_CONTAINER_RUNNING)},
			pod: pod("second", "cp1", "another")},
		"a second scheduler": {user: "the container kube-scheduler of the pod kube-system/second",
			containers: []*cri.Container{own, containerOfPod("kube-system", "second", id, cri.ContainerState_CONTAINER_RUNNING)}},
		"a container that ended": {user: "the container kube-scheduler of the pod kube-system/second",
			containers: []*cri.Container{containerOfPod("kube-system", "second", id, cri.ContainerState_CONTAINER_EXITED)}},
		"a pod without a container":             {user: "the pod kube-system/second", pod: pod("second", "cp1", image)},
		"a pod with another name of that image": {user: "the pod kube-system/second", pod: pod("second", "cp1", tagged)},
	} {
		t.Run(name, func(t *testing.T) {
			tool := toolFor(t, stock)
			fakes := &fakeRuntime{images: map[string]string{image: id, tagged: id}, containers: c.containers}
			tool.node.runtime = &runtime{containers: fakes, images: fakes, endpoint: "/run/it.sock"}
			client := fake.NewSimpleClientset()
			if c.pod != nil {
				client = fake.NewSimpleClientset(c.pod)
			}
			tool.node.cluster = &cluster{client: client}
			_, scheduler, err := tool.readManifest()
			if err != nil {
				t.Fatal(err)
			}
			tool.removeImages(t.Context(), scheduler, map[string]string{image: id})
			said := tool.options.Output.(*strings.Builder).String()
			if kept := len(fakes.removed) == 0; kept != (c.user != "") {
				t.Errorf("kept %v, want it for %q:\n%s", kept, c.user, said)
			}
			want := c.user + " uses it; once nothing needs it: ctr --address /run/it.sock --namespace k8s.io images rm " +
				image + " " + id
			if c.user != "" && !strings.Contains(said, want) {
				t.Errorf("want %q in:\n%s", want, said)
			}
		})
	}
}

func TestAPatchThatThisToolWroteIsNoEdit(t *testing.T) {
	tool := toolFor(t, stock)
	said := tool.options.Output.(*strings.Builder)
	folder := filepath.Join(t.TempDir(), "patches")
	swapped := Swap{Image: "registry.k8s.io/kube-scheduler:v1.23.17-fork", Version: "v1.23.17+fork"}
	if err := tool.state.writePatch(folder, swapped); err != nil {
		t.Fatal(err)
	}
	// This patch is computed after a rollback, so it differs from the one on disk.
	ours, err := KubeadmPatch(Swap{Image: "registry.k8s.io/kube-scheduler:v1.23.17"})
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(tool.state.folder, "edited-kubeadm-patch-*")
	keptFiles := func() int {
		t.Helper()
		found, err := filepath.Glob(kept)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if err := tool.state.removePatches(ours); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, KubeadmPatchFile)
	if !strings.Contains(said.String(), "removed "+file) || keptFiles() != 0 {
		t.Errorf("our own patch: %d are kept:\n%s", keptFiles(), said)
	}
	// An update does not mistake its own patch for an edited one either.
	for _, version := range []string{"v1.23.17+fork", "v1.23.17+other"} {
		swapped.Version = version
		if err := tool.state.writePatch(folder, swapped); err != nil {
			t.Fatal(err)
		}
	}
	if keptFiles() != 0 {
		t.Errorf("an update keeps its own patch as an edit:\n%s", said)
	}
	for what, change := range map[string]func() error{
		"uninstall": func() error { return tool.state.removePatches(ours) },
		"install":   func() error { return tool.state.writePatch(folder, swapped) },
	} {
		if err := tool.state.writePatch(folder, swapped); err != nil {
			t.Fatal(err)
		}
		put(t, file, get(t, file)+"# of a person\n")
		if err := change(); err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob(kept)
		if err != nil || len(found) != 1 || !strings.HasSuffix(get(t, found[0]), "# of a person\n") {
			t.Fatalf("%s: an edit is lost: %q, %v", what, found, err)
		}
		if err := os.Remove(found[0]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFullDiskIsNamedWithTheRoomThatIsNeeded(t *testing.T) {
	folder := t.TempDir()
	put(t, filepath.Join(folder, "bin", "ctr"), "#!/bin/sh\necho 'ctr: write x: no space left on device'\nexit 1\n")
	put(t, filepath.Join(folder, "bin", "docker"), "#!/bin/sh\necho 'Error response from daemon: write x: no space left on device'\nexit 1\n")
	t.Setenv("PATH", filepath.Join(folder, "bin")+":"+os.Getenv("PATH"))
	r := &runtime{images: &fakeRuntime{images: map[string]string{"a": "sha256:1"}}}
	err := r.save(t.Context(), "a", filepath.Join(folder, ".scratch-1", "image.tar"))
	if err == nil {
		t.Fatal("no error")
	}
	what, next := nextstep.Split(err, "")
	if !strings.Contains(what, "cannot export the image a into "+folder+":") || !strings.Contains(next, "df -h "+folder+"; make room for 21 MB there") {
		t.Errorf("%s\nnext: %s", what, next)
	}
	r.docker = true
	if what, next = nextstep.Split(r.save(t.Context(), "a", filepath.Join(folder, "image.tar")), ""); !strings.Contains(next, "the disk of the container runtime") {
		t.Errorf("%s\nnext: %s", what, next)
	}
}
