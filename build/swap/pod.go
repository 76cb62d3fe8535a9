// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	jsonnumbers "k8s.io/apimachinery/pkg/util/json"
	kubernetesyaml "sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// program is the name of the executable that the tool looks for.
const program = "kube-scheduler"

// nextManifest is what to do when a manifest is not the scheduler's.
const nextManifest = "give the path of the scheduler's manifest, usually /etc/kubernetes/manifests/kube-scheduler.yaml"

// Pod is what a manifest says about the scheduler.
type Pod struct {
	// Name is the name in the manifest; kubelet appends "-" and the node's name to it.
	Name string
	// Namespace is where kubelet runs it ("default" when the manifest names none).
	Namespace string
	// Container is the name of the container that runs kube-scheduler.
	Container string

	Image           string
	ImagePullPolicy corev1.PullPolicy
	// Command is the whole command line: the manifest's command followed by its args.
	Command []string
	Env     []corev1.EnvVar
	// HostNetwork tells whether the scheduler listens on the node's own addresses.
	HostNetwork bool
	// Liveness and Startup are nil when the container has no such HTTP probe.
	Liveness, Startup *Probe

	// Swapped tells whether a swap is in the manifest: one of its annotations or its volume. RestartedAtAnnotation
	// alone is none, since a rolled back manifest may have that, too.
	Swapped bool
	// Swap is the swap as it stands in the manifest. Image is always there; for a manifest that Apply wrote, Apply with
	// this value changes nothing.
	Swap Swap

	// Manifest is the decoded manifest.
	Manifest *corev1.Pod

	containerIndex int
	line           commandLine
}

// Probe is an HTTP probe, with kubelet's defaults filled in.
type Probe struct {
	Scheme string // "HTTP" or "HTTPS"
	Host   string // empty: the pod's address, with HostNetwork the node's
	Port   int
	Path   string
}

// Describe decodes a manifest as kubelet does and tells what it says about the scheduler. It is an error when the
// manifest is not the one of a kube-scheduler pod.
func Describe(manifest []byte) (Pod, error) {
	if len(manifest) > maxManifest {
		return Pod{}, nextstep.With(
			fmt.Errorf("the manifest has %d bytes and kubelet refuses more than %d", len(manifest), maxManifest), "restore it")
	}
	if _, err := parse(manifest); err != nil {
		return Pod{}, err
	}
	pod, err := decodePod(manifest)
	if err != nil {
		return Pod{}, err
	}
	index, line, err := chooseContainer(pod.Spec.Containers)
	if err != nil {
		return Pod{}, err
	}
	container := &pod.Spec.Containers[index]
	p := Pod{
		Name:            pod.Name,
		Namespace:       pod.Namespace,
		Container:       container.Name,
		Image:           container.Image,
		ImagePullPolicy: container.ImagePullPolicy,
		Command:         line.elements,
		Env:             container.Env,
		HostNetwork:     pod.Spec.HostNetwork,
		Liveness:        httpProbe(container, container.LivenessProbe),
		Startup:         httpProbe(container, container.StartupProbe),
		Manifest:        pod,
		containerIndex:  index,
		line:            line,
	}
	p.describeSwap()
	return p, nil
}

// decodePod decodes a manifest as kubelet does, which of several documents or of equal keys takes one.
func decodePod(manifest []byte) (*corev1.Pod, error) {
	text := bytes.TrimPrefix(manifest, []byte(byteOrderMark))
	if !isJSON(text) {
		var err error
		if text, err = kubernetesyaml.YAMLToJSON(text); err != nil {
			return nil, nextstep.With(fmt.Errorf("the manifest is not YAML as kubelet reads it: %w", err), "correct it")
		}
	}
	pod := &corev1.Pod{}
	// Like kubelet, and unlike encoding/json, this tells upper case from lower case.
	if err := jsonnumbers.Unmarshal(text, pod); err != nil {
		return nil, nextstep.With(fmt.Errorf("the manifest cannot be decoded as a pod: %w", err), "correct it")
	}
	switch {
	case pod.APIVersion != "v1" || pod.Kind != "Pod":
		return nil, nextstep.With(
			fmt.Errorf("the manifest holds apiVersion %q, kind %q and not a v1 Pod", pod.APIVersion, pod.Kind),
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

// chooseContainer finds the container that runs kube-scheduler, and its command line.
func chooseContainer(containers []corev1.Container) (int, commandLine, error) {
	var direct, wrapped, named []int
	var names []string
	for i := range containers {
		line := newCommandLine(&containers[i])
		names = append(names, fmt.Sprintf("%q", containers[i].Name))
		switch {
		case line.program == 0:
			direct = append(direct, i)
		case containers[i].Name == program:
			named = append(named, i)
		case line.program > 0:
			wrapped = append(wrapped, i)
		}
	}
	// A path to something called kube-scheduler may stand in the command line of a sidecar as well: the one that runs
	// it itself comes first, then the name.
	for _, candidates := range [][]int{direct, named, wrapped} {
		switch {
		case len(candidates) > 1:
			return 0, commandLine{}, nextstep.With(
				fmt.Errorf("several containers of the pod run %s (of %s)", program, strings.Join(names, ", ")),
				"leave one in the manifest")
		case len(candidates) == 0:
			continue
		}
		index := candidates[0]
		line := newCommandLine(&containers[index])
		return index, line, line.check(containers[index].Name)
	}
	for i := range containers {
		if line := newCommandLine(&containers[i]); line.inShell() {
			return 0, commandLine{}, line.check(containers[i].Name)
		}
	}
	return 0, commandLine{}, nextstep.With(
		fmt.Errorf("no container of the pod runs %s (there is: %s)", program, strings.Join(names, ", ")),
		"%s", nextManifest)
}

// commandLine is a container's command followed by its args.
type commandLine struct {
	elements []string
	// command is how many of the elements are the manifest's command.
	command int
	// program is the index of kube-scheduler, behind which its flags begin; -1: it is not there.
	program int
}

func newCommandLine(container *corev1.Container) commandLine {
	line := commandLine{program: -1, command: len(container.Command)}
	line.elements = append(append(line.elements, container.Command...), container.Args...)
	for i, element := range line.elements {
		if !strings.HasPrefix(element, "-") && path.Base(element) == program {
			line.program = i
			break
		}
	}
	return line
}

// inShell tells whether kube-scheduler stands inside a shell command, where nothing can be added safely.
func (l commandLine) inShell() bool {
	for _, element := range l.elements {
		if strings.Contains(element, program+" ") {
			return true
		}
	}
	return false
}

// check tells why flags cannot be added to the command line.
func (l commandLine) check(container string) error {
	switch {
	case l.program < 0 && l.inShell():
		return nextstep.With(
			fmt.Errorf("container %q runs %s inside a shell command, in which no flag can be set safely",
				container, program),
			"write the command as a list, one flag an item")
	case l.program < 0:
		return nextstep.With(fmt.Errorf("the command of container %q does not name the program %s", container, program),
			"begin its command with %s, one flag an item", program)
	}
	for _, element := range l.elements[l.program+1:] {
		if element == "--" {
			return nextstep.With(
				fmt.Errorf(`the command of container %q holds "--", after which flags have no effect`, container),
				"delete that item")
		}
	}
	return nil
}

// flagPlace is where a flag with its value stands in a command line.
type flagPlace struct {
	first, last int
	value       string
}

// find gives every place where a flag is set.
func (l commandLine) find(name string) []flagPlace {
	name = flagName(name)
	var found []flagPlace
	for i := l.program + 1; i < len(l.elements); i++ {
		element := l.elements[i]
		if !strings.HasPrefix(element, "--") {
			continue
		}
		given, value, inside := strings.Cut(element, "=")
		place := flagPlace{first: i, last: i, value: value}
		switch {
		case inside:
		// Whether a flag takes the next item as its value depends on the flag. An item that is no flag can only be a
		// value.
		case i+1 < len(l.elements) && !strings.HasPrefix(l.elements[i+1], "-"):
			i++
			place.last, place.value = i, l.elements[i]
		default:
			place.value = "true"
		}
		if flagName(given) == name {
			found = append(found, place)
		}
	}
	return found
}

// flagName is the name without dashes before it; kube-scheduler takes an underscore for a dash.
func flagName(flag string) string {
	return strings.ReplaceAll(strings.TrimLeft(flag, "-"), "_", "-")
}

// Flag gives the value of a flag of kube-scheduler, by its name with or without the dashes, from both --name=value and
// --name value. As for kube-scheduler the last one counts, and a flag without a value is "true". False: it is not
// there.
func (p Pod) Flag(name string) (string, bool) {
	found := p.line.find(name)
	if len(found) == 0 {
		return "", false
	}
	return found[len(found)-1].value, true
}

// HostPath translates a path that the container sees to the path on the host. False: no hostPath volume is mounted
// there.
func (p Pod) HostPath(containerPath string) (string, bool) {
	if volume, below := p.volumeAt(containerPath); volume != nil && volume.HostPath != nil {
		return path.Join(volume.HostPath.Path, below), true
	}
	return "", false
}

// volumeAt gives the volume that the container sees at a path, and the path in that volume; nil: none is mounted there.
func (p Pod) volumeAt(containerPath string) (volume *corev1.Volume, below string) {
	containerPath = path.Clean(containerPath)
	if !path.IsAbs(containerPath) || p.Manifest == nil {
		return nil, ""
	}
	// The deepest mount hides the others.
	var deepest *corev1.VolumeMount
	mounts := p.container().VolumeMounts
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
	return p.volume(deepest.Name), path.Join(deepest.SubPath, below)
}

// volume gives a volume by its name; nil: there is none.
func (p Pod) volume(name string) *corev1.Volume {
	for i := range p.Manifest.Spec.Volumes {
		if volume := &p.Manifest.Spec.Volumes[i]; volume.Name == name {
			return volume
		}
	}
	return nil
}

// container is the one that runs kube-scheduler.
func (p Pod) container() *corev1.Container { return &p.Manifest.Spec.Containers[p.containerIndex] }

// pulls tells whether kubelet asks the registry for the image at every start, though it is on the node.
func (p Pod) pulls() bool {
	if p.ImagePullPolicy != "" {
		return p.ImagePullPolicy == corev1.PullAlways
	}
	// kubelet's default.
	tag, err := parseTag(p.Image)
	return err == nil && tag.TagStr() == name.DefaultTag
}

func (p *Pod) describeSwap() {
	annotations := p.Manifest.Annotations
	p.Swap = Swap{
		Image:        p.Image,
		ConfigSHA256: annotations[ConfigSHA256Annotation],
		Version:      annotations[VersionAnnotation],
	}
	if at, err := time.Parse(time.RFC3339Nano, annotations[RestartedAtAnnotation]); err == nil {
		p.Swap.RestartedAt = at.UTC()
	}
	for _, volume := range p.Manifest.Spec.Volumes {
		if volume.Name != VolumeName {
			continue
		}
		p.Swapped = true
		if volume.HostPath != nil {
			p.Swap.ConfigFolder = volume.HostPath.Path
		}
	}
	p.Swapped = p.Swapped || p.Swap.ConfigSHA256 != "" || p.Swap.Version != ""
}

// httpProbe gives a probe over HTTP; nil for none and for another kind.
func httpProbe(container *corev1.Container, probe *corev1.Probe) *Probe {
	if probe == nil || probe.HTTPGet == nil {
		return nil
	}
	get := probe.HTTPGet
	described := &Probe{Scheme: string(get.Scheme), Host: get.Host, Port: get.Port.IntValue(), Path: get.Path}
	if described.Scheme == "" {
		described.Scheme = string(corev1.URISchemeHTTP)
	}
	if described.Path == "" {
		described.Path = "/"
	}
	for _, port := range container.Ports {
		if get.Port.Type == intstr.String && get.Port.StrVal == port.Name {
			described.Port = int(port.ContainerPort)
		}
	}
	return described
}
