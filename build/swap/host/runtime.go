// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kube-scheduler-fork/build/nextstep"
)

// Runtime is kubelet's container runtime, used through the same interface (CRI).
type Runtime struct {
	Containers cri.RuntimeServiceClient
	Images     cri.ImageServiceClient
	connection *grpc.ClientConn
	Endpoint   string
	Docker     bool
	// Name is the runtime's own name: containerd, docker, cri-o.
	Name string
}

// Labels that kubelet sets on containers and sandboxes.
const (
	PodNameLabel       = "io.kubernetes.pod.name"
	PodNamespaceLabel  = "io.kubernetes.pod.namespace"
	podUIDLabel        = "io.kubernetes.pod.uid"
	ContainerNameLabel = "io.kubernetes.container.name"
)

// ConnectRuntime connects with the CRI version that the runtime serves. Both versions have the same messages on the
// wire; only the service name differs.
func ConnectRuntime(ctx context.Context, endpoint string, docker bool) (*Runtime, error) {
	var failures []error
	for _, version := range []string{"v1", "v1alpha2"} {
		connection, err := grpc.NewClient("unix://"+endpoint,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			// Without this, a proxy from the environment would be used for the socket.
			grpc.WithNoProxy(),
			grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn,
				invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
				// A runtime that hangs must not block a rollback.
				if !strings.HasSuffix(method, "/PullImage") {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeout(ctx, LookTime)
					defer stop()
				}
				return invoke(ctx, strings.Replace(method, "/runtime.v1.", "/runtime."+version+".", 1), request, reply, connection, options...)
			}))
		if err != nil {
			return nil, err
		}
		r := &Runtime{
			Containers: cri.NewRuntimeServiceClient(connection),
			Images:     cri.NewImageServiceClient(connection),
			connection: connection,
			Endpoint:   endpoint,
		}
		answer, err := r.Containers.Version(ctx, &cri.VersionRequest{})
		if err == nil {
			r.Name = answer.RuntimeName
			// Docker is used either by kubelet itself, or through cri-dockerd.
			r.Docker = docker || r.Name == "docker"
			return r, nil
		}
		failures = append(failures, err)
		connection.Close()
		if status.Code(err) != codes.Unimplemented {
			break
		}
	}
	return nil, nextstep.With(
		fmt.Errorf("the container runtime at %s does not answer: %w", endpoint, errors.Join(failures...)),
		"systemctl status containerd docker")
}

// Close closes the connection.
func (r *Runtime) Close() { r.connection.Close() }

// ImageID returns the ID of a loaded image, sha256:…; empty if the runtime does not have it.
func (r *Runtime) ImageID(ctx context.Context, name string) (string, error) {
	answer, err := r.Images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
	if err != nil {
		return "", doesNot("return the status of the image "+name, err)
	}
	return answer.GetImage().GetId(), nil
}

// Pull pulls an image from its registry.
func (r *Runtime) Pull(ctx context.Context, name string) error {
	_, err := r.Images.PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: name}})
	return err
}

// Tool returns the command that loads and saves images of this runtime, with its global arguments.
func (r *Runtime) Tool() []string {
	if r.Docker {
		return []string{"docker"}
	}
	return []string{"ctr", "--address", r.Endpoint, "--namespace", "k8s.io"}
}

// Load loads an archive into the runtime, for kubelet to use.
func (r *Runtime) Load(ctx context.Context, archive string) error {
	if r.Docker {
		return r.run(ctx, "load", "--input", archive)
	}
	return r.run(ctx, "images", "import", archive)
}

// Save writes a loaded image to an archive in a temporary directory.
func (r *Runtime) Save(ctx context.Context, name, archive string) error {
	arguments := []string{"images", "export", archive, name}
	if r.Docker {
		arguments = []string{"save", "--output", archive, name}
	}
	err := r.run(ctx, arguments...)
	// Docker first writes the image to its own disk.
	if err == nil || !strings.Contains(err.Error(), unix.ENOSPC.Error()) || strings.Contains(err.Error(), "response from daemon") {
		return err
	}
	where, room := filepath.Dir(filepath.Dir(archive)), ""
	asked := &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}}
	if answer, unknown := r.Images.ImageStatus(ctx, asked); unknown == nil {
		room = fmt.Sprintf(" for %d MB", answer.GetImage().GetSize_()>>20+1)
	}
	what, _ := nextstep.Split(err, "")
	return nextstep.With(fmt.Errorf("cannot export the image %s into %s: %s", name, where, what),
		"df -h %s; make room%s there, then run this again", where, room)
}

// drop removes a name from an image; its other names stay.
func (r *Runtime) drop(ctx context.Context, name string) error {
	if r.Docker {
		return r.run(ctx, "rmi", "--no-prune", name)
	}
	return r.run(ctx, "images", "rm", name)
}

// Remove removes an image with all of its names.
func (r *Runtime) Remove(ctx context.Context, id string) error {
	if r.Docker {
		if err := r.removeExited(ctx, id); err != nil {
			return err
		}
	}
	_, err := r.Images.RemoveImage(ctx, &cri.RemoveImageRequest{Image: &cri.ImageSpec{Image: id}})
	return err
}

// removeExited removes the exited containers of an image, as kubelet does later. Docker keeps an image that has one.
func (r *Runtime) removeExited(ctx context.Context, imageID string) error {
	exited := &cri.ListContainersRequest{Filter: &cri.ContainerFilter{State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_EXITED}}}
	answer, err := r.Containers.ListContainers(ctx, exited)
	if err != nil {
		return err
	}
	for _, c := range answer.Containers {
		if c.ImageRef != imageID {
			continue
		}
		if _, err := r.Containers.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: c.Id}); err != nil {
			return err
		}
	}
	return nil
}

// RemoveCommand returns the command line that removes an image with all of its names.
func (r *Runtime) RemoveCommand(ctx context.Context, name, id string) string {
	names := []string{name}
	if status, err := r.Images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: id}}); err == nil && status.Image != nil {
		names = slices.Concat(status.Image.RepoTags, status.Image.RepoDigests)
	}
	command := append(r.Tool(), "rmi")
	if !r.Docker {
		// containerd also has a name equal to the ID, for kubelet.
		command, names = append(r.Tool(), "images", "rm"), append(names, id)
	}
	return strings.Join(append(command, names...), " ")
}

// MissingTool returns an error if the tool that loads images is missing.
func (r *Runtime) MissingTool() error {
	tool := r.Tool()[0]
	if r.Name == "cri-o" {
		return nextstep.With(
			errors.New("this node's container runtime is CRI-O, which this tool does not support: it loads images with ctr or docker"),
			"podman load --input kube-scheduler.tar, and the manifest by hand: docs/operations.md, \"Without the tool\"")
	}
	if _, err := exec.LookPath(tool); err != nil {
		return nextstep.With(
			fmt.Errorf("%s, which loads images into the container runtime at %s, is not installed", tool, r.Endpoint),
			"install it (Debian: containerd or docker.io), or check that it is in sudo's PATH")
	}
	return nil
}

func (r *Runtime) run(ctx context.Context, arguments ...string) error {
	arguments = append(r.Tool(), arguments...)
	line := strings.Join(arguments, " ")
	if err := r.MissingTool(); err != nil {
		return err
	}
	var output bytes.Buffer
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		next := "fix what it reports, then run this again"
		if strings.Contains(output.String(), unix.ENOSPC.Error()) {
			next = "df -h; make room on the disk of the container runtime, then run this again"
		}
		return nextstep.With(fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(output.String())), "%s", next)
	}
	return nil
}
