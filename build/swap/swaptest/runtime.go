// SPDX-License-Identifier: Apache-2.0

package swaptest

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// FakeRuntime is a container runtime with image IDs by name, and containers.
type FakeRuntime struct {
	cri.RuntimeServiceClient
	cri.ImageServiceClient
	Images map[string]string
	// Broken makes it fail for every image: a rollback then stops before it changes anything.
	Broken     bool
	Containers []*cri.Container
	Removed    []string
	// Created is when the sandbox of the scheduler was created, and Runs when its container starts. They replace Containers.
	Created, Runs time.Time
}

// ListContainers returns Containers, or that of the scheduler.
func (f *FakeRuntime) ListContainers(
	context.Context, *cri.ListContainersRequest, ...grpc.CallOption,
) (*cri.ListContainersResponse, error) {
	if f.Runs.IsZero() {
		return &cri.ListContainersResponse{Containers: f.Containers}, nil
	}
	state := cri.ContainerState_CONTAINER_EXITED
	if !time.Now().Before(f.Runs) {
		state = cri.ContainerState_CONTAINER_RUNNING
	}
	return &cri.ListContainersResponse{Containers: []*cri.Container{{Id: "c", PodSandboxId: "s", State: state}}}, nil
}

// ListPodSandbox returns the sandbox of the scheduler.
func (f *FakeRuntime) ListPodSandbox(
	context.Context, *cri.ListPodSandboxRequest, ...grpc.CallOption,
) (*cri.ListPodSandboxResponse, error) {
	return &cri.ListPodSandboxResponse{Items: []*cri.PodSandbox{{Id: "s", CreatedAt: f.Created.UnixNano()}}}, nil
}

// Status fails: the network is unknown.
func (f *FakeRuntime) Status(context.Context, *cri.StatusRequest, ...grpc.CallOption) (*cri.StatusResponse, error) {
	return nil, errors.New("no status")
}

// ImageStatus returns the ID of one of Images.
func (f *FakeRuntime) ImageStatus(
	_ context.Context, asked *cri.ImageStatusRequest, _ ...grpc.CallOption,
) (*cri.ImageStatusResponse, error) {
	if f.Broken {
		return nil, errors.New("no images")
	}
	if id := f.Images[asked.Image.Image]; id != "" {
		return &cri.ImageStatusResponse{Image: &cri.Image{Id: id, Size_: 20 << 20}}, nil
	}
	return &cri.ImageStatusResponse{}, nil
}

// RemoveImage records the removed image.
func (f *FakeRuntime) RemoveImage(
	_ context.Context, asked *cri.RemoveImageRequest, _ ...grpc.CallOption,
) (*cri.RemoveImageResponse, error) {
	f.Removed = append(f.Removed, asked.Image.Image)
	return &cri.RemoveImageResponse{}, nil
}

// Container returns a container of a pod.
func Container(namespace, pod, image string, state cri.ContainerState) *cri.Container {
	return &cri.Container{ImageRef: image, State: state, Labels: map[string]string{
		"io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.name": pod, "io.kubernetes.container.name": "kube-scheduler"}}
}
