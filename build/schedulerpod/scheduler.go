// SPDX-License-Identifier: Apache-2.0

package schedulerpod

import (
	"net"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DefaultPort is the port that kube-scheduler serves on unless --secure-port names another.
const DefaultPort = 10259

// Scheduler is a kube-scheduler in a pod.
type Scheduler struct {
	// Object is the pod.
	Object *corev1.Pod
	// Index is the index of the container among the pod's containers.
	Index int
	// Line is the container's command line.
	Line CommandLine
	// Sure is false if the container names kube-scheduler in a way that another program may, too: as the file that it
	// reads, or as the beginning of its image's name.
	Sure bool
}

// Find returns the schedulers in a pod. A sidecar may name kube-scheduler as well, so only the most certain containers
// count; there are several if they are equally certain.
func Find(pod *corev1.Pod) []Scheduler {
	var found []Scheduler
	best := none
	for i := range pod.Spec.Containers {
		line := CommandLineOf(&pod.Spec.Containers[i])
		now := certaintyOf(&pod.Spec.Containers[i], line)
		if now > best {
			found, best = nil, now
		}
		if now == best && now > none {
			found = append(found, Scheduler{Object: pod, Index: i, Line: line, Sure: now > mentioned})
		}
	}
	return found
}

// certainty ranks how surely a container runs kube-scheduler.
type certainty int

const (
	none certainty = iota
	// mentioned is the program's name after that of another program, or as the beginning of the image's name.
	mentioned
	// byImage is a container without a command whose image is kube-scheduler's.
	byImage
	// inShell is a shell command with the program in it.
	inShell
	// wrapped is the program after a wrapper, in a container or an image of that name.
	wrapped
	// direct is the program as the command.
	direct
)

func certaintyOf(container *corev1.Container, line CommandLine) certainty {
	repository, _, _ := strings.Cut(path.Base(container.Image), "@")
	repository, _, _ = strings.Cut(repository, ":")
	switch {
	case line.Shell:
		return inShell
	case line.Program == 0:
		return direct
	case line.Program > 0 && (container.Name == Program || repository == Program):
		return wrapped
	case line.Program > 0:
		return mentioned
	case len(container.Command) > 0 || !strings.HasPrefix(repository, Program):
		return none
	case repository == Program:
		return byImage
	}
	return mentioned
}

// Container returns the container that runs kube-scheduler.
func (s Scheduler) Container() *corev1.Container { return &s.Object.Spec.Containers[s.Index] }

// Flag returns the value of a flag of kube-scheduler, and whether it is set; see CommandLine.Flag.
func (s Scheduler) Flag(name string) (value string, set bool) { return s.Line.Flag(name) }

// Port returns the port that the scheduler serves on; 0 if --secure-port names none.
func (s Scheduler) Port() int {
	value, set := s.Flag("secure-port")
	if !set {
		return DefaultPort
	}
	port, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return 0
	}
	return int(port)
}

// HealthURL returns the address of kubelet's liveness probe, and without an HTTP probe the one that the flags say.
func (s Scheduler) HealthURL() string {
	scheme, host, port, at := "https", "127.0.0.1", s.Port(), "/healthz"
	if address, set := s.Flag("bind-address"); set && net.ParseIP(address) != nil && !net.ParseIP(address).IsUnspecified() {
		host = address
	}
	if port == 0 {
		port = DefaultPort
	}
	if probe := s.Container().LivenessProbe; probe != nil && probe.HTTPGet != nil {
		get := probe.HTTPGet
		// kubelet's defaults.
		if scheme, at = "http", "/"; get.Scheme != "" {
			scheme = strings.ToLower(string(get.Scheme))
		}
		if get.Path != "" {
			// Like kubelet, whose URL has a slash before a path without one.
			at = "/" + strings.TrimPrefix(get.Path, "/")
		}
		if get.Host != "" {
			host = get.Host
		}
		port = get.Port.IntValue()
		for _, named := range s.Container().Ports {
			if get.Port.Type == intstr.String && get.Port.StrVal == named.Name {
				port = int(named.ContainerPort)
			}
		}
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port)) + at
}

// HostPath translates a path in the container to the path on the host; false if no hostPath volume is mounted there.
func (s Scheduler) HostPath(containerPath string) (string, bool) {
	if volume, below := s.VolumeAt(containerPath); volume != nil && volume.HostPath != nil {
		return path.Join(volume.HostPath.Path, below), true
	}
	return "", false
}

// VolumeAt returns the volume that is mounted at a path of the container, and the path in that volume; nil if none is.
func (s Scheduler) VolumeAt(containerPath string) (volume *corev1.Volume, below string) {
	containerPath = path.Clean(containerPath)
	if !path.IsAbs(containerPath) || s.Object == nil {
		return nil, ""
	}
	// The deepest mount hides the others.
	var deepest *corev1.VolumeMount
	mounts := s.Container().VolumeMounts
	for i := range mounts {
		mountPath := path.Clean(mounts[i].MountPath)
		rest, inside := strings.CutPrefix(containerPath, strings.TrimSuffix(mountPath, "/"))
		if !inside || rest != "" && rest[0] != '/' {
			continue
		}
		if deepest == nil || len(mountPath) > len(path.Clean(deepest.MountPath)) {
			deepest, below = &mounts[i], rest
		}
	}
	if deepest == nil || deepest.SubPathExpr != "" {
		return nil, ""
	}
	return s.Volume(deepest.Name), path.Join(deepest.SubPath, below)
}

// Volume returns a volume of the pod by its name; nil if there is none.
func (s Scheduler) Volume(name string) *corev1.Volume {
	for i := range s.Object.Spec.Volumes {
		if volume := &s.Object.Spec.Volumes[i]; volume.Name == name {
			return volume
		}
	}
	return nil
}
