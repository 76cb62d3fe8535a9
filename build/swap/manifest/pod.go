// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jsonnumbers "k8s.io/apimachinery/pkg/util/json"
	kubernetesyaml "sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

// program is the name of the scheduler's executable.
const program = schedulerpod.Program

// nextManifest is the next step for a manifest that is not the scheduler's.
const nextManifest = "give the path of the scheduler's manifest, usually /etc/kubernetes/manifests/kube-scheduler.yaml"

// Pod is the decoded manifest of the scheduler.
type Pod struct {
	schedulerpod.Scheduler

	// Image is that of the container that runs kube-scheduler.
	Image string

	// Swapped reports whether the manifest has a swap: one of its annotations or one of its volumes. RestartedAtAnnotation
	// alone does not count, since a manifest may have it after a rollback.
	Swapped bool
	// Swap is the swap in the manifest. Image is always set. For a
	// manifest that Apply wrote, Apply with this value changes nothing.
	Swap Swap
}

// Describe decodes a manifest as kubelet does. It returns an error if the manifest is not that of a kube-scheduler pod.
func Describe(manifest []byte) (Pod, error) {
	if len(manifest) > maxManifest {
		return Pod{}, nextstep.With(
			fmt.Errorf("the manifest has %d bytes, but kubelet rejects more than %d", len(manifest), maxManifest), "restore it")
	}
	if _, err := parse(manifest); err != nil {
		return Pod{}, err
	}
	object, err := decodePod(manifest)
	if err != nil {
		return Pod{}, err
	}
	found, err := chooseContainer(object)
	if err != nil {
		return Pod{}, err
	}
	p := Pod{Scheduler: found, Image: found.Container().Image}
	p.describeSwap()
	return p, nil
}

// decodePod decodes a manifest as kubelet does: of several documents or repeated keys, it uses one.
func decodePod(manifest []byte) (*corev1.Pod, error) {
	text := bytes.TrimPrefix(manifest, []byte(byteOrderMark))
	if !isJSON(text) {
		var err error
		if text, err = kubernetesyaml.YAMLToJSON(text); err != nil {
			return nil, nextstep.With(fmt.Errorf("the manifest is not YAML as kubelet reads it: %w", err), "correct it")
		}
	}
	pod := &corev1.Pod{}
	// This is case-sensitive like kubelet, and unlike encoding/json.
	if err := jsonnumbers.Unmarshal(text, pod); err != nil {
		return nil, nextstep.With(fmt.Errorf("the manifest cannot be decoded as a pod: %w", err), "correct it")
	}
	switch {
	case pod.APIVersion != "v1" || pod.Kind != "Pod":
		return nil, nextstep.With(
			fmt.Errorf("the manifest has apiVersion %q and kind %q instead of a v1 Pod", pod.APIVersion, pod.Kind),
			"%s", nextManifest)
	case pod.Name == "":
		return nil, nextstep.With(errors.New("the manifest has no metadata.name, so kubelet does not accept it"),
			"correct it")
	}
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	return pod, nil
}

// chooseContainer returns the scheduler of a manifest.
func chooseContainer(pod *corev1.Pod) (schedulerpod.Scheduler, error) {
	found := schedulerpod.Find(pod)
	var names []string
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		names = append(names, fmt.Sprintf("%q", container.Name))
		if len(found) == 0 && container.Name == program {
			return schedulerpod.Scheduler{}, checkLine(program, schedulerpod.CommandLineOf(container))
		}
	}
	switch len(found) {
	case 0:
		return schedulerpod.Scheduler{}, nextstep.With(
			fmt.Errorf("no container of the pod runs %s (containers: %s)", program, strings.Join(names, ", ")),
			"%s", nextManifest)
	case 1:
		return found[0], checkLine(found[0].Container().Name, found[0].Line)
	}
	return schedulerpod.Scheduler{}, nextstep.With(
		fmt.Errorf("several containers of the pod run %s (containers: %s)", program, strings.Join(names, ", ")),
		"leave one in the manifest")
}

// checkLine returns an error if flags cannot be added to a command line.
func checkLine(container string, line schedulerpod.CommandLine) error {
	switch {
	case line.Shell:
		return nextstep.With(
			fmt.Errorf("container %q runs %s inside a shell command, where no flag can be set safely",
				container, program),
			"write the command as a list, one flag per item")
	case line.Program < 0:
		return nextstep.With(fmt.Errorf("the command of container %q does not name the program %s", container, program),
			"begin its command with %s, one flag per item", program)
	case slices.Contains(line.Arguments(), "--"):
		return nextstep.With(
			fmt.Errorf(`the command of container %q contains "--", after which flags have no effect`, container),
			"delete that item")
	}
	return nil
}

// Pulls reports whether kubelet pulls the image at every start, even if it is on the node.
func (p Pod) Pulls() bool { return pulls(p.Image, p.Container().ImagePullPolicy) }

func pulls(image string, policy corev1.PullPolicy) bool {
	if policy != "" {
		return policy == corev1.PullAlways
	}
	// This is kubelet's default.
	tag, err := ParseTag(image)
	return err == nil && tag.TagStr() == name.DefaultTag
}

func (p *Pod) describeSwap() {
	annotations := p.Object.Annotations
	p.Swap = Swap{
		Image:        p.Image,
		ConfigSHA256: annotations[ConfigSHA256Annotation],
		Version:      annotations[VersionAnnotation],
	}
	if at, err := time.Parse(time.RFC3339Nano, annotations[RestartedAtAnnotation]); err == nil {
		p.Swap.RestartedAt = at.UTC()
	}
	var mounts []string
	for _, volume := range p.Object.Spec.Volumes {
		if !IsOurs(volume.Name) {
			continue
		}
		p.Swapped = true
		switch {
		case volume.HostPath == nil:
		case volume.Name == VolumeName:
			p.Swap.ConfigFolder = volume.HostPath.Path
		default:
			mounts = append(mounts, volume.HostPath.Path)
		}
	}
	slices.Sort(mounts)
	p.Swap.Mounts = strings.Join(mounts, ",")
	p.describeSecurity()
	p.Swapped = p.Swapped || p.Swap.ConfigSHA256 != "" || p.Swap.Version != ""
}

// HalfSwapped reports whether a manifest names this tool's configuration, but does not mount it. A kubeadm upgrade does
// that if the ClusterConfiguration has our lines and the patch is missing.
func HalfSwapped(pod *Pod) bool {
	path, _ := pod.Flag("config")
	_, mounted := pod.HostPath(ContainerConfigPath)
	return path == ContainerConfigPath && !mounted
}

// UsesConfig reports whether the scheduler reads the configuration that its manifest mounts.
func UsesConfig(pod *Pod) bool {
	path, _ := pod.Flag("config")
	host, mounted := pod.HostPath(ContainerConfigPath)
	return path == ContainerConfigPath && mounted && host == filepath.Join(pod.Swap.ConfigFolder, ConfigFileName)
}

// ParseTag parses the name of an image, with or without a tag.
func ParseTag(text string) (name.Tag, error) { return name.NewTag(text, name.WeakValidation) }
