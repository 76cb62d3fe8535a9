// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kube-scheduler-fork/build/nextstep"
)

// runtime is kubelet's container runtime, used through the same interface (CRI).
type runtime struct {
	containers cri.RuntimeServiceClient
	images     cri.ImageServiceClient
	connection *grpc.ClientConn
	endpoint   string
	docker     bool
	// name is the runtime's own name: containerd, docker, cri-o.
	name string
}

// Labels that kubelet sets on containers and sandboxes.
const (
	podNameLabel       = "io.kubernetes.pod.name"
	podNamespaceLabel  = "io.kubernetes.pod.namespace"
	podUIDLabel        = "io.kubernetes.pod.uid"
	containerNameLabel = "io.kubernetes.container.name"
)

// connectRuntime connects with the CRI version that the runtime serves. Both versions have the same messages on the
// wire; only the service name differs.
func connectRuntime(ctx context.Context, endpoint string, docker bool) (*runtime, error) {
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
					ctx, stop = context.WithTimeout(ctx, lookTime)
					defer stop()
				}
				return invoke(ctx, strings.Replace(method, "/runtime.v1.", "/runtime."+version+".", 1), request, reply, connection, options...)
			}))
		if err != nil {
			return nil, err
		}
		r := &runtime{
			containers: cri.NewRuntimeServiceClient(connection),
			images:     cri.NewImageServiceClient(connection),
			connection: connection,
			endpoint:   endpoint,
			docker:     docker,
		}
		if err = ping(ctx, r); err == nil {
			// Docker is used either by kubelet itself, or through cri-dockerd.
			r.docker = docker || r.name == "docker"
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

func ping(ctx context.Context, r *runtime) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, err := r.containers.Version(ctx, &cri.VersionRequest{})
	if err == nil {
		r.name = answer.RuntimeName
	}
	return err
}

func (r *runtime) close() { r.connection.Close() }

// imageID returns the ID of a loaded image, sha256:…; empty if the runtime does not have it.
func (r *runtime) imageID(ctx context.Context, name string) (string, error) {
	answer, err := r.images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
	if err != nil {
		return "", nextstep.With(
			fmt.Errorf("the container runtime does not return the status of the image %s: %w", name, err),
			"systemctl status containerd docker")
	}
	if answer.Image == nil {
		return "", nil
	}
	return answer.Image.Id, nil
}

// pull pulls an image from its registry.
func (r *runtime) pull(ctx context.Context, name string) error {
	_, err := r.images.PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: name}})
	return err
}

// tool returns the command that loads and saves images of this runtime, with its global arguments.
func (r *runtime) tool() []string {
	if r.docker {
		return []string{"docker"}
	}
	return []string{"ctr", "--address", r.endpoint, "--namespace", "k8s.io"}
}

// load loads an archive into the runtime, for kubelet to use.
func (r *runtime) load(ctx context.Context, archive string) error {
	if r.docker {
		return r.run(ctx, "load", "--input", archive)
	}
	return r.run(ctx, "images", "import", archive)
}

// save writes a loaded image to an archive in a temporary directory.
func (r *runtime) save(ctx context.Context, name, archive string) error {
	arguments := []string{"images", "export", archive, name}
	if r.docker {
		arguments = []string{"save", "--output", archive, name}
	}
	err := r.run(ctx, arguments...)
	// Docker first writes the image to its own disk.
	if err == nil || !strings.Contains(err.Error(), unix.ENOSPC.Error()) || strings.Contains(err.Error(), "response from daemon") {
		return err
	}
	where, room := filepath.Dir(filepath.Dir(archive)), ""
	asked := &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}}
	if answer, unknown := r.images.ImageStatus(ctx, asked); unknown == nil {
		room = fmt.Sprintf(" for %d MB", answer.GetImage().GetSize_()>>20+1)
	}
	what, _ := nextstep.Split(err, "")
	return nextstep.With(fmt.Errorf("cannot export the image %s into %s: %s", name, where, what),
		"df -h %s; make room%s there, then run this again", where, room)
}

// drop removes a name from an image; its other names stay.
func (r *runtime) drop(ctx context.Context, name string) error {
	if r.docker {
		return r.run(ctx, "rmi", "--no-prune", name)
	}
	return r.run(ctx, "images", "rm", name)
}

// remove removes an image with all of its names.
func (r *runtime) remove(ctx context.Context, id string) error {
	if r.docker {
		if err := r.removeExited(ctx, id); err != nil {
			return err
		}
	}
	_, err := r.images.RemoveImage(ctx, &cri.RemoveImageRequest{Image: &cri.ImageSpec{Image: id}})
	return err
}

// removeExited removes the exited containers of an image, as kubelet does later. Docker keeps an image that has one.
func (r *runtime) removeExited(ctx context.Context, imageID string) error {
	exited := &cri.ContainerFilter{State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_EXITED}}
	answer, err := r.containers.ListContainers(ctx, &cri.ListContainersRequest{Filter: exited})
	if err != nil {
		return err
	}
	for _, c := range answer.Containers {
		if c.ImageRef != imageID {
			continue
		}
		if _, err := r.containers.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: c.Id}); err != nil {
			return err
		}
	}
	return nil
}

// removeCommand returns the command line that removes an image with all of its names.
func (r *runtime) removeCommand(ctx context.Context, name, id string) string {
	names := []string{name}
	if status, err := r.images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: id}}); err == nil && status.Image != nil {
		names = slices.Concat(status.Image.RepoTags, status.Image.RepoDigests)
	}
	command := append(r.tool(), "rmi")
	if !r.docker {
		// containerd also has a name equal to the ID, for kubelet.
		command, names = append(r.tool(), "images", "rm"), append(names, id)
	}
	return strings.Join(append(command, names...), " ")
}

// missingTool returns an error if the tool that loads images is missing.
func (r *runtime) missingTool() error {
	tool := r.tool()[0]
	if r.name == "cri-o" {
		return nextstep.With(
			errors.New("this node's container runtime is CRI-O, which this tool does not support: it loads images with ctr or docker"),
			"podman load --input kube-scheduler.tar, and the manifest by hand: docs/operations.md, \"Without the tool\"")
	}
	if _, err := exec.LookPath(tool); err != nil {
		return nextstep.With(
			fmt.Errorf("%s, which loads images into the container runtime at %s, is not installed", tool, r.endpoint),
			"install it (Debian: containerd or docker.io), or check that it is in sudo's PATH")
	}
	return nil
}

func (r *runtime) run(ctx context.Context, arguments ...string) error {
	arguments = append(r.tool(), arguments...)
	line := strings.Join(arguments, " ")
	if err := r.missingTool(); err != nil {
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

// container is one container of a static pod; each restart creates another.
type container struct {
	id      string
	sandbox string
	imageID string
	created time.Time
	running bool
}

// containersOf returns the containers with a name in a pod, for every UID of the pod: a static pod with a changed
// manifest is another pod with the same name.
func (r *runtime) containersOf(ctx context.Context, namespace, pod, name string) ([]container, error) {
	answer, err := r.containers.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{LabelSelector: map[string]string{
		podNamespaceLabel: namespace, podNameLabel: pod, containerNameLabel: name,
	}}})
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the container runtime does not list its containers: %w", err),
			"systemctl status containerd docker")
	}
	var found []container
	for _, c := range answer.Containers {
		found = append(found, container{
			id:      c.Id,
			sandbox: c.PodSandboxId,
			imageID: c.ImageRef,
			created: time.Unix(0, c.CreatedAt),
			// Count a created container that has not started yet: it will run.
			running: c.State == cri.ContainerState_CONTAINER_RUNNING || c.State == cri.ContainerState_CONTAINER_CREATED,
		})
	}
	return found, nil
}

// containerOf returns the name of a container, running or not, that
// was created from an image and is not in the pod except; empty: none.
func (r *runtime) containerOf(ctx context.Context, imageID string, except metav1.ObjectMeta) (string, error) {
	answer, err := r.containers.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return "", nextstep.With(fmt.Errorf("the container runtime does not list its containers: %w", err),
			"systemctl status containerd docker")
	}
	for _, c := range answer.Containers {
		if c.ImageRef != imageID && c.GetImage().GetImage() != imageID ||
			c.Labels[podNamespaceLabel] == except.Namespace && c.Labels[podNameLabel] == except.Name {
			continue
		}
		return fmt.Sprintf("the container %s of the pod %s/%s", c.Labels[containerNameLabel],
			c.Labels[podNamespaceLabel], c.Labels[podNameLabel]), nil
	}
	return "", nil
}

// sandbox is the runtime's sandbox for one version of a static pod.
type sandbox struct {
	id     string
	podUID string
	// restartedAt is the annotation that distinguishes versions of the manifest; empty without one.
	restartedAt string
	created     time.Time
}

// sandboxesOf returns the sandboxes of all pods with that name.
func (r *runtime) sandboxesOf(ctx context.Context, namespace, pod string) ([]sandbox, error) {
	answer, err := r.containers.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: map[string]string{
		podNamespaceLabel: namespace, podNameLabel: pod,
	}}})
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the container runtime does not list its pods: %w", err),
			"systemctl status containerd docker")
	}
	var found []sandbox
	for _, item := range answer.Items {
		found = append(found, sandbox{
			id:          item.Id,
			podUID:      item.Labels[podUIDLabel],
			restartedAt: item.Annotations[RestartedAtAnnotation],
			created:     time.Unix(0, item.CreatedAt),
		})
	}
	return found, nil
}

// ending describes a container's exit and its last log lines.
func (r *runtime) ending(ctx context.Context, id string) string {
	answer, err := r.containers.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		return fmt.Sprintf("(the container runtime does not return the status of the container: %v)", err)
	}
	var text strings.Builder
	if s := answer.Status; s.State == cri.ContainerState_CONTAINER_EXITED {
		fmt.Fprintf(&text, "the container exited with status %d", s.ExitCode)
		if s.Reason != "" && s.Reason != "Error" && s.Reason != "Completed" {
			fmt.Fprintf(&text, " (%s)", s.Reason)
		}
		if s.Message != "" {
			fmt.Fprintf(&text, ": %s", s.Message)
		}
	} else {
		text.WriteString("the container runs")
	}
	lines, err := logTail(answer.Status.LogPath)
	switch {
	case err != nil:
		fmt.Fprintf(&text, "; its log cannot be read: %v", err)
	case len(lines) == 0:
		text.WriteString("; it wrote nothing")
	default:
		fmt.Fprintf(&text, "; its last lines:\n    %s", strings.Join(lines, "\n    "))
	}
	return text.String()
}

// tailLines and tailBytes limit the excerpt of a container's log.
const (
	tailLines = 12
	tailBytes = 32 << 10
)

// logTail returns the text of the last lines in a container's log. The log is in the CRI format (time, stream, tag,
// text) or in Docker's (one JSON object a line).
func logTail(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	start := max(0, info.Size()-tailBytes)
	content, err := io.ReadAll(io.NewSectionReader(file, start, tailBytes))
	if err != nil {
		return nil, err
	}
	raw := strings.Split(strings.TrimSpace(string(content)), "\n")
	if start > 0 {
		// The first line may be incomplete.
		raw = raw[1:]
	}
	var lines []string
	for _, line := range raw[max(0, len(raw)-tailLines):] {
		var docker struct{ Log string }
		if json.Unmarshal([]byte(line), &docker) == nil {
			line = docker.Log
		} else if parts := strings.SplitN(line, " ", 4); len(parts) == 4 {
			line = parts[3]
		}
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// network is the state of the pod network, and the directories of its plugins.
type network struct {
	ready   bool
	message string
	// binaries are the plugin directories; configurations is the CNI configuration directory.
	binaries       []string
	configurations string
}

// network queries the runtime. With dockershim, kubelet manages the network: its flags have the directories.
func (r *runtime) network(ctx context.Context) (*network, error) {
	answer, err := r.containers.Status(ctx, &cri.StatusRequest{Verbose: true})
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the container runtime does not return its status: %w", err),
			"systemctl status containerd docker")
	}
	n := &network{binaries: []string{"/opt/cni/bin"}, configurations: "/etc/cni/net.d"}
	for _, condition := range answer.Status.Conditions {
		if condition.Type == cri.NetworkReady {
			n.ready, n.message = condition.Status, condition.Message
		}
	}
	var settings struct {
		CNI struct {
			BinDir  string   `json:"binDir"`
			BinDirs []string `json:"binDirs"`
			ConfDir string   `json:"confDir"`
		} `json:"cni"`
	}
	// containerd reports its settings; other runtimes may use another format, or report none.
	if text, found := answer.Info["config"]; found && json.Unmarshal([]byte(text), &settings) == nil {
		if settings.CNI.BinDir != "" {
			n.binaries = filepath.SplitList(settings.CNI.BinDir)
		}
		if len(settings.CNI.BinDirs) > 0 {
			n.binaries = settings.CNI.BinDirs
		}
		if settings.CNI.ConfDir != "" {
			n.configurations = settings.CNI.ConfDir
		}
	}
	return n, nil
}
