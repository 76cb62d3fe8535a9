// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

const (
	// ContainerConfigFolder is the mount path of the configuration directory in the container.
	ContainerConfigFolder = "/etc/kubernetes/kube-scheduler-swap"
	// ConfigFileName is the name of the configuration file in that directory, also on the host.
	ConfigFileName = "config.yaml"
	// ContainerConfigPath is the value of --config. It is constant, so that kubeadm's ClusterConfiguration can hold it;
	// each install changes the host directory behind it.
	ContainerConfigPath = ContainerConfigFolder + "/" + ConfigFileName
	// VolumeName is the name of the volume with the configuration. The names of the volumes with Swap.Mounts append a
	// number to it.
	VolumeName = "kube-scheduler-swap"

	// ConfigSHA256Annotation holds the SHA-256 of the configuration, 64 hexadecimal digits.
	ConfigSHA256Annotation = "kube-scheduler-swap/config-sha256"
	// VersionAnnotation holds the version label of the image.
	VersionAnnotation = "kube-scheduler-swap/version"
	// RestartedAtAnnotation holds a time in RFC 3339 with nanoseconds. Kubelet does not interpret it; a new value makes
	// kubelet start a new pod.
	RestartedAtAnnotation = "kube-scheduler-swap/restarted-at"
)

// Swap is the difference between a swapped manifest and the original.
type Swap struct {
	// Image is the container's image.
	Image string
	// ConfigFolder is the absolute path of the host directory with ConfigFileName. Empty: only the image is swapped.
	// The path must change with the content, so that the manifest alone decides what runs.
	ConfigFolder string
	// ConfigSHA256 is the SHA-256 of the configuration, 64 hexadecimal digits; empty if and only if ConfigFolder is.
	ConfigSHA256 string
	// Mounts are the absolute paths of host directories that the container also gets, read-only and at the same paths,
	// for files that the configuration names. They are sorted, unique, and separated by commas.
	Mounts string
	// Hardened removes the container's capabilities, privilege escalation, and write access to the image's files. Without,
	// they stay as they are. NonRoot makes a hardened container run as NonRootUser.
	Hardened, NonRoot bool
	// Version is the image's version label; empty: no annotation.
	Version string
	// RestartedAt is the value of RestartedAtAnnotation; the zero time leaves the annotation unchanged.
	RestartedAt time.Time
}

// nextDefect is the next step for errors that only a bug in the caller can cause.
const nextDefect = "report this as a bug"

// check returns an error for a swap whose manifest kubelet or the scheduler would reject.
func (s Swap) check() error {
	switch {
	case !imageName.MatchString(s.Image):
		return nextstep.With(fmt.Errorf("%q is not the name of an image", s.Image),
			"use one like kube-scheduler:v1.23.17")
	case (s.ConfigFolder == "") != (s.ConfigSHA256 == ""):
		return nextstep.With(
			errors.New("a swap needs both the directory of its configuration and the SHA-256, or neither"), nextDefect)
	case s.ConfigFolder != "" && (!path.IsAbs(s.ConfigFolder) || path.Clean(s.ConfigFolder) != s.ConfigFolder):
		return nextstep.With(
			fmt.Errorf("the directory of the configuration, %q, is not a clean absolute path", s.ConfigFolder), nextDefect)
	case s.ConfigSHA256 != "" && !sha256Text.MatchString(s.ConfigSHA256):
		return nextstep.With(fmt.Errorf("%q is not a SHA-256 in 64 hexadecimal digits", s.ConfigSHA256), nextDefect)
	case slices.ContainsFunc(s.MountList(), func(folder string) bool { return !path.IsAbs(folder) || path.Clean(folder) != folder }):
		return nextstep.With(fmt.Errorf("one of the directories to mount, %q, is not a clean absolute path", s.Mounts), nextDefect)
	}
	return nil
}

var (
	imageName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)
	sha256Text = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func formatTime(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// volume is a directory of the host that the container gets read-only.
type volume struct{ name, host, target string }

// volumes returns the volumes of a swap: the configuration, and Mounts.
func (s Swap) volumes() []volume {
	var all []volume
	if s.ConfigFolder != "" {
		all = append(all, volume{VolumeName, s.ConfigFolder, ContainerConfigFolder})
	}
	for i, folder := range s.MountList() {
		all = append(all, volume{fmt.Sprintf("%s-%d", VolumeName, i+1), folder, folder})
	}
	return all
}

// MountList returns Mounts as a list.
func (s Swap) MountList() []string {
	return strings.FieldsFunc(s.Mounts, func(r rune) bool { return r == ',' })
}

func (v volume) mountNode() *yaml.Node {
	return mapping(
		entry{"mountPath", scalar(v.target)},
		entry{"name", scalar(v.name)},
		entry{"readOnly", &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagBool, Value: "true"}},
	)
}

func (v volume) node() *yaml.Node {
	host := mapping(entry{"path", scalar(v.host)}, entry{"type", scalar("Directory")})
	return mapping(entry{"hostPath", host}, entry{"name", scalar(v.name)})
}

// annotations returns the annotations of the swap. An empty value means: remove it. RestartedAtAnnotation is included
// only if RestartedAt is set.
func (s Swap) annotations() []entry {
	entries := []entry{
		{ConfigSHA256Annotation, quoted(s.ConfigSHA256)},
		{VersionAnnotation, quoted(s.Version)},
	}
	if !s.RestartedAt.IsZero() {
		entries = append(entries, entry{RestartedAtAnnotation, quoted(formatTime(s.RestartedAt))})
	}
	return entries
}

// plan edits the tree of a manifest to make the swap.
func (s Swap) plan(t tree, pod Pod) {
	annotations := place{"metadata", "annotations"}
	for _, e := range s.annotations() {
		if e.value.Value != "" {
			t.setEntries(annotations, e)
		} else {
			t.drop(annotations.with(e.key))
		}
	}
	container := place{"spec", "containers", pod.Index}
	s.planConfig(t, container, pod.Line)
	t.set(container.with("image"), scalar(s.Image))
	if pod.Pulls() || pulls(s.Image, pod.Container().ImagePullPolicy) {
		// Use the image on the node: a registry may not have it, or not answer.
		t.set(container.with("imagePullPolicy"), scalar(string(corev1.PullIfNotPresent)))
	}
	s.planVolumes(t, container.with("volumeMounts"), place{"spec", "volumes"})
	if s.Hardened {
		t.setEntries(container.with("securityContext"), s.securityContext()...)
	}
}

// planVolumes sets the volumes of the swap, and removes those of an earlier swap.
func (s Swap) planVolumes(t tree, mounts, volumes place) {
	wanted := s.volumes()
	former := func(node *yaml.Node) bool {
		name := nameOf(node)
		return IsOurs(name) && !slices.ContainsFunc(wanted, func(v volume) bool { return v.name == name })
	}
	t.dropItems(mounts, former)
	t.dropItems(volumes, former)
	for _, v := range wanted {
		named := func(node *yaml.Node) bool { return nameOf(node) == v.name }
		t.setItem(mounts, func(mount *yaml.Node) bool {
			// kubelet rejects two mounts at one path.
			at := find(mount, "mountPath")
			return named(mount) || at != nil && path.Clean(at.Value) == v.target
		}, v.mountNode())
		t.setItem(volumes, named, v.node())
	}
}

// planConfig adds --config to the command line, or removes it if it is from an earlier swap.
func (s Swap) planConfig(t tree, container place, line schedulerpod.CommandLine) {
	existing := line.Find("config")
	at := func(index int) place {
		if index < line.Command {
			return container.with("command", index)
		}
		return container.with("args", index-line.Command)
	}
	remove := func(f schedulerpod.FlagPlace) {
		// Backwards, because each removal shifts the elements after it.
		for index := f.Last; index >= f.First; index-- {
			t.drop(at(index))
		}
	}
	if s.ConfigFolder == "" {
		for _, f := range slices.Backward(existing) {
			if path.Clean(f.Value) == ContainerConfigPath {
				remove(f)
			}
		}
		return
	}
	argument := scalar("--config=" + ContainerConfigPath)
	if len(existing) == 0 {
		// Append to the key with the flags: if both keys are set, that is args.
		end := t.find(container.with("command"))
		if len(line.Elements) > line.Command {
			end = t.find(container.with("args"))
		}
		end.Content = append(end.Content, argument)
		return
	}
	for _, f := range slices.Backward(existing[1:]) {
		remove(f)
	}
	// If "--config" and the path are two elements, keep two.
	if f := existing[0]; f.First == f.Last {
		t.set(at(f.First), argument)
	} else {
		t.set(at(f.Last), scalar(ContainerConfigPath))
	}
}

// nameOf returns the name of a volume or mount; empty: none.
func nameOf(node *yaml.Node) string {
	if name := find(node, "name"); name != nil {
		return name.Value
	}
	return ""
}

// IsOurs reports whether a volume of that name belongs to a swap.
func IsOurs(name string) bool {
	number, numbered := strings.CutPrefix(name, VolumeName+"-")
	_, err := strconv.Atoi(number)
	return name == VolumeName || numbered && err == nil
}

// proof returns an error if the edited manifest does not match the swap.
func (s Swap) proof(before, after Pod) error {
	config, found := after.Flag("config")
	wanted := s
	if wanted.RestartedAt = s.RestartedAt.UTC(); s.RestartedAt.IsZero() {
		wanted.RestartedAt = before.Swap.RestartedAt
	}
	wanted.Hardened, wanted.NonRoot = s.Hardened || before.Swap.Hardened, s.NonRoot || before.Swap.NonRoot
	switch formerConfig, hadConfig := before.Flag("config"); {
	case after.Swap != wanted:
		return fmt.Errorf("it would say %+v", after.Swap)
	case after.Pulls():
		return errors.New("kubelet would still pull the image")
	case s.ConfigFolder != "" && (!found || config != ContainerConfigPath):
		return fmt.Errorf("--config would be %q", config)
	case s.ConfigFolder == "" && found && path.Clean(config) == ContainerConfigPath:
		return errors.New("--config would stay")
	case s.ConfigFolder == "" && hadConfig && path.Clean(formerConfig) != ContainerConfigPath && config != formerConfig:
		return fmt.Errorf("--config would change to %q", config)
	}
	for _, v := range s.volumes() {
		if host, _ := after.HostPath(v.target); host != v.host {
			return fmt.Errorf("the container would see %q at %s", host, v.target)
		}
	}
	return nil
}
