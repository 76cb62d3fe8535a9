// SPDX-License-Identifier: Apache-2.0

// Package swaptest has the fixtures of the swap tool's tests.
package swaptest

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// FakeStart is a container runtime with one pod, whose container starts at a given time.
type FakeStart struct {
	cri.RuntimeServiceClient
	Created, Runs time.Time
}

func (r *FakeStart) ListContainers(context.Context, *cri.ListContainersRequest, ...grpc.CallOption) (
	*cri.ListContainersResponse, error) {
	state := cri.ContainerState_CONTAINER_EXITED
	if !time.Now().Before(r.Runs) {
		state = cri.ContainerState_CONTAINER_RUNNING
	}
	return &cri.ListContainersResponse{Containers: []*cri.Container{{Id: "c", PodSandboxId: "s", State: state}}}, nil
}

func (r *FakeStart) ListPodSandbox(context.Context, *cri.ListPodSandboxRequest, ...grpc.CallOption) (
	*cri.ListPodSandboxResponse, error) {
	return &cri.ListPodSandboxResponse{Items: []*cri.PodSandbox{{Id: "s", CreatedAt: r.Created.UnixNano()}}}, nil
}

// NoImages is a container runtime that fails for every image: a rollback then stops before it changes anything.
type NoImages struct{ cri.ImageServiceClient }

func (NoImages) ImageStatus(context.Context, *cri.ImageStatusRequest, ...grpc.CallOption) (*cri.ImageStatusResponse, error) {
	return nil, errors.New("no images")
}

// OneImage is a container runtime that has every image.
type OneImage struct{ cri.ImageServiceClient }

func (OneImage) ImageStatus(context.Context, *cri.ImageStatusRequest, ...grpc.CallOption) (*cri.ImageStatusResponse, error) {
	return &cri.ImageStatusResponse{Image: &cri.Image{}}, nil
}

// FakeRuntime is a container runtime with image IDs by name, and containers.
type FakeRuntime struct {
	cri.RuntimeServiceClient
	cri.ImageServiceClient
	Images     map[string]string
	Containers []*cri.Container
	Removed    []string
}

func (f *FakeRuntime) ListContainers(
	context.Context, *cri.ListContainersRequest, ...grpc.CallOption,
) (*cri.ListContainersResponse, error) {
	return &cri.ListContainersResponse{Containers: f.Containers}, nil
}

func (f *FakeRuntime) ImageStatus(
	_ context.Context, asked *cri.ImageStatusRequest, _ ...grpc.CallOption,
) (*cri.ImageStatusResponse, error) {
	if id := f.Images[asked.Image.Image]; id != "" {
		return &cri.ImageStatusResponse{Image: &cri.Image{Id: id, Size_: 20 << 20}}, nil
	}
	return &cri.ImageStatusResponse{}, nil
}

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
