// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// Runs reports whether a container runs, or was created and has not started yet: it will run.
func Runs(c *cri.Container) bool {
	return c.State == cri.ContainerState_CONTAINER_RUNNING || c.State == cri.ContainerState_CONTAINER_CREATED
}

// Containers returns the containers of the scheduler in a pod, for every UID of the pod: a static pod with a changed
// manifest is another pod with the same name.
func (n *Node) Containers(ctx context.Context, pod *manifest.Pod) ([]*cri.Container, error) {
	return n.Runtime.listContainers(ctx, &cri.ContainerFilter{LabelSelector: map[string]string{
		PodNamespaceLabel: pod.Object.Namespace, PodNameLabel: n.podName(pod), ContainerNameLabel: pod.Container().Name,
	}})
}

func (r *Runtime) listContainers(ctx context.Context, filter *cri.ContainerFilter) ([]*cri.Container, error) {
	answer, err := r.Containers.ListContainers(ctx, &cri.ListContainersRequest{Filter: filter})
	if err != nil {
		return nil, doesNot("list its containers", err)
	}
	return answer.Containers, nil
}

// doesNot adds to an error what the container runtime does not do, and the next step.
func doesNot(what string, err error) error {
	return nextstep.With(fmt.Errorf("the container runtime does not %s: %w", what, err), "systemctl status containerd docker")
}

// containerOf returns the name of a container, running or not, that
// was created from an image and is not in the pod except; empty: none.
func (r *Runtime) containerOf(ctx context.Context, imageID string, except metav1.ObjectMeta) (string, error) {
	containers, err := r.listContainers(ctx, nil)
	if err != nil {
		return "", err
	}
	for _, c := range containers {
		if c.ImageRef != imageID && c.GetImage().GetImage() != imageID ||
			c.Labels[PodNamespaceLabel] == except.Namespace && c.Labels[PodNameLabel] == except.Name {
			continue
		}
		return fmt.Sprintf("the container %s of the pod %s/%s", c.Labels[ContainerNameLabel],
			c.Labels[PodNamespaceLabel], c.Labels[PodNameLabel]), nil
	}
	return "", nil
}

// sandboxes returns the sandboxes of a pod, one for each version of its manifest.
func (n *Node) sandboxes(ctx context.Context, pod *manifest.Pod) ([]*cri.PodSandbox, error) {
	answer, err := n.Runtime.Containers.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: map[string]string{
		PodNamespaceLabel: pod.Object.Namespace, PodNameLabel: n.podName(pod),
	}}})
	if err != nil {
		return nil, doesNot("list its pods", err)
	}
	return answer.Items, nil
}

// ending describes a container's exit and its last log lines.
func (r *Runtime) ending(ctx context.Context, id string) string {
	answer, err := r.Containers.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id})
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

// Short returns the first 12 digits of an image ID.
func Short(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}
