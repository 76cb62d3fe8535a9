// SPDX-License-Identifier: Apache-2.0

// Package staticpod reads and edits the static-pod manifest of a kube-scheduler, as text: everything that an edit does not
// change stays as its author wrote it. The functions are pure: bytes in, bytes out; no files, no cluster.
//
// An edit is planned as a few steps on the tree of the manifest. The steps are carried out on the tree, which says what the
// result has to mean, and in the text, guided by the places of the nodes. Only when both mean the same is the text taken;
// and only when nothing but the intended fields differs from the original is anything returned.
package staticpod

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	kubernetesyaml "sigs.k8s.io/yaml"
)

const (
	// ContainerConfigFolder is where the container sees the folder with its configuration.
	ContainerConfigFolder = "/etc/kubernetes/kube-scheduler-swap"
	// ConfigFileName is the configuration's file name in that folder, on the host too.
	ConfigFileName = "config.yaml"
	// ContainerConfigPath is the value of --config. It never changes, so that kubeadm's ClusterConfiguration can hold it; what
	// changes from install to install is the host folder behind it.
	ContainerConfigPath = ContainerConfigFolder + "/" + ConfigFileName
	// VolumeName is the name of the volume that brings the configuration into the container.
	VolumeName = "kube-scheduler-swap"

	// ConfigSHA256Annotation holds the SHA-256 of the configuration, 64 hexadecimal digits.
	ConfigSHA256Annotation = "kube-scheduler-swap/config-sha256"
	// VersionAnnotation holds the version label of the image.
	VersionAnnotation = "kube-scheduler-swap/version"
	// RestartedAtAnnotation holds a time, RFC 3339 with nanoseconds. Nobody reads it; a new value makes kubelet start a new pod.
	RestartedAtAnnotation = "kube-scheduler-swap/restarted-at"

	// MaxSize is how many bytes kubelet reads of a manifest; it refuses a longer one.
	MaxSize = 10 << 20
)

// Swap is what a swapped manifest has and the original one has not.
type Swap struct {
	// Image is the image that the container runs.
	Image string
	// ConfigFolder is the folder on the host that holds ConfigFileName, an absolute path. Empty: the image alone is swapped.
	// The path has to change with the content (the manifest alone then decides what runs).
	ConfigFolder string
	// ConfigSHA256 is the SHA-256 of the configuration, 64 hexadecimal digits; empty just when ConfigFolder is.
	ConfigSHA256 string
	// Version is the image's version label; empty: the annotation is left out.
	Version string
	// RestartedAt becomes RestartedAtAnnotation; the zero time leaves that annotation as it is.
	RestartedAt time.Time
}

// Edit is an edited manifest.
type Edit struct {
	Manifest []byte
	// Reformatted is empty when every line outside the change is byte for byte as it was. Otherwise it is a sentence, without
	// its full stop, that says why the whole file had to be written anew: the meaning and the comments are kept, but
	// indentation, blank lines, quotes and anchors may differ (in JSON the order of keys, too).
	Reformatted string
}

// Apply swaps a manifest: the image, --config, a volume and its mount, and the annotations. It proves on the decoded objects
// that nothing else changed. Applied twice it changes nothing the second time; on a manifest that is swapped already, it
// replaces the values in place. An existing --config of the operator is replaced in place, too; other volumes of theirs stay.
// Without Swap.ConfigFolder, what an earlier swap added for its configuration is taken out, and an operator's --config stays.
//
// An error says what about the manifest is wrong and ends with what to do next.
func Apply(manifest []byte, swap Swap) (Edit, error) {
	if err := swap.check(); err != nil {
		return Edit{}, err
	}
	return edit(manifest, swap.plan, swap.proof, withoutSwap)
}

// Restart sets RestartedAtAnnotation and nothing else, in a swapped or in an original manifest.
func Restart(manifest []byte, at time.Time) (Edit, error) {
	plan := func(p *planner, _ Pod) {
		p.setEntries(place{"metadata", "annotations"}, entry{RestartedAtAnnotation, quoted(formatTime(at))})
	}
	proof := func(_, after Pod) error {
		if got := after.Manifest.Annotations[RestartedAtAnnotation]; got != formatTime(at) {
			return fmt.Errorf("the annotation %s would be %q", RestartedAtAnnotation, got)
		}
		return nil
	}
	without := func(object map[string]interface{}, _ Pod) { removeAnnotations(object, RestartedAtAnnotation) }
	return edit(manifest, plan, proof, without)
}

// nextDefect is for what only the calling program can get wrong.
const nextDefect = "next: report this as a defect of the program"

// check refuses a swap that would make a manifest that kubelet or the scheduler does not accept.
func (s Swap) check() error {
	switch {
	case !imageName.MatchString(s.Image):
		return fmt.Errorf("%q is not the name of an image; next: give one like kube-scheduler:v1.23.17", s.Image)
	case (s.ConfigFolder == "") != (s.ConfigSHA256 == ""):
		return errors.New("a swap needs both the folder of its configuration and the SHA-256, or neither; " + nextDefect)
	case s.ConfigFolder != "" && (!path.IsAbs(s.ConfigFolder) || path.Clean(s.ConfigFolder) != s.ConfigFolder):
		return fmt.Errorf("the folder of the configuration, %q, is not a clean absolute path; %s", s.ConfigFolder, nextDefect)
	case s.ConfigSHA256 != "" && !sha256Text.MatchString(s.ConfigSHA256):
		return fmt.Errorf("%q is not a SHA-256 in 64 hexadecimal digits; %s", s.ConfigSHA256, nextDefect)
	}
	return nil
}

var (
	imageName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)
	sha256Text = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func formatTime(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// mount and volume are what a swap adds for its configuration.
func (s Swap) mount() *yaml.Node {
	return mapping(
		entry{"mountPath", text(ContainerConfigFolder)},
		entry{"name", text(VolumeName)},
		entry{"readOnly", boolean(true)},
	)
}

func (s Swap) volume() *yaml.Node {
	host := mapping(entry{"path", text(s.ConfigFolder)}, entry{"type", text("Directory")})
	return mapping(entry{"hostPath", host}, entry{"name", text(VolumeName)})
}

// annotations are those of the swap; an empty value is for one that is not wanted. The one of the restart comes only when a
// time is given.
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

// plan makes the tree of a manifest a swapped one.
func (s Swap) plan(p *planner, pod Pod) {
	annotations := place{"metadata", "annotations"}
	var wanted []entry
	for _, e := range s.annotations() {
		if e.value.Value != "" {
			wanted = append(wanted, e)
		}
	}
	p.setEntries(annotations, wanted...)
	for _, e := range s.annotations() {
		if e.value.Value == "" {
			p.drop(annotations.with(e.key))
		}
	}

	container := place{"spec", "containers", pod.containerIndex}
	s.planConfig(p, container, pod.line)
	p.set(container.with("image"), text(s.Image))
	mounts, volumes := container.with("volumeMounts"), place{"spec", "volumes"}
	if s.ConfigFolder == "" {
		p.dropItems(mounts, hasName)
		p.dropItems(volumes, hasName)
		return
	}
	p.setItem(mounts, func(mount *yaml.Node) bool {
		// kubelet refuses two mounts at one path.
		at := find(mount, place{"mountPath"})
		return hasName(mount) || at != nil && path.Clean(at.Value) == ContainerConfigFolder
	}, s.mount())
	p.setItem(volumes, hasName, s.volume())
}

// planConfig brings --config into the command line, or takes ours out of it.
func (s Swap) planConfig(p *planner, container place, line commandLine) {
	existing := line.find("config")
	at := func(index int) place {
		if index < line.command {
			return container.with("command", index)
		}
		return container.with("args", index-line.command)
	}
	remove := func(f flagPlace) {
		// From the end, since each removal moves what follows.
		for index := f.last; index >= f.first; index-- {
			p.drop(at(index))
		}
	}
	if s.ConfigFolder == "" {
		for i := len(existing) - 1; i >= 0; i-- {
			if path.Clean(existing[i].value) == ContainerConfigPath {
				remove(existing[i])
			}
		}
		return
	}
	argument := "--config=" + ContainerConfigPath
	if len(existing) == 0 {
		// Where the flags are: a command line in both keys has them in args.
		end := container.with("command")
		if len(line.elements) > line.command {
			end = container.with("args")
		}
		p.do(step{kind: add, at: end, value: text(argument)})
		return
	}
	for i := len(existing) - 1; i > 0; i-- {
		remove(existing[i])
	}
	// "--config" and the path in two elements stay two elements.
	if f := existing[0]; f.first == f.last {
		p.set(at(f.first), text(argument))
	} else {
		p.set(at(f.last), text(ContainerConfigPath))
	}
}

func hasName(node *yaml.Node) bool {
	name := find(node, place{"name"})
	return name != nil && name.Value == VolumeName
}

// proof tells whether a manifest says what the swap wants.
func (s Swap) proof(before, after Pod) error {
	config, found := after.Flag("config")
	folder, mounted := after.HostPath(ContainerConfigPath)
	before.Swap.RestartedAt, after.Swap.RestartedAt = before.Swap.RestartedAt.UTC(), after.Swap.RestartedAt.UTC()
	wanted := s
	if wanted.RestartedAt = s.RestartedAt.UTC(); s.RestartedAt.IsZero() {
		wanted.RestartedAt = before.Swap.RestartedAt
	}
	switch formerConfig, hadConfig := before.Flag("config"); {
	case after.Swap != wanted:
		return fmt.Errorf("it would say %+v", after.Swap)
	case s.ConfigFolder != "" && (!found || config != ContainerConfigPath):
		return fmt.Errorf("--config would be %q", config)
	case s.ConfigFolder != "" && (!mounted || folder != path.Join(s.ConfigFolder, ConfigFileName)):
		return fmt.Errorf("the container would see %q at %s", folder, ContainerConfigPath)
	case s.ConfigFolder == "" && found && path.Clean(config) == ContainerConfigPath:
		return errors.New("--config would stay")
	case s.ConfigFolder == "" && hadConfig && path.Clean(formerConfig) != ContainerConfigPath && config != formerConfig:
		return fmt.Errorf("--config would change to %q", config)
	}
	return nil
}

// withoutSwap takes out of an object everything that a swap may change. What is left has to stay the same.
func withoutSwap(object map[string]interface{}, pod Pod) {
	removeAnnotations(object, ConfigSHA256Annotation, VersionAnnotation, RestartedAtAnnotation)
	spec, _ := object["spec"].(map[string]interface{})
	isVolume := func(item map[string]interface{}) bool { return item["name"] == VolumeName }
	removeItems(spec, "volumes", isVolume)
	containers, _ := spec["containers"].([]interface{})
	container, _ := containers[pod.containerIndex].(map[string]interface{})
	delete(container, "image")
	removeItems(container, "volumeMounts", func(item map[string]interface{}) bool {
		mountPath, _ := item["mountPath"].(string)
		return isVolume(item) || path.Clean(mountPath) == ContainerConfigFolder
	})
	// The command line without --config, still split into command and args.
	gone := map[int]bool{}
	for _, f := range pod.line.find("config") {
		for index := f.first; index <= f.last; index++ {
			gone[index] = true
		}
	}
	var command, args []interface{}
	for index, element := range pod.line.elements {
		switch {
		case gone[index]:
		case index < pod.line.command:
			command = append(command, element)
		default:
			args = append(args, element)
		}
	}
	container["command"], container["args"] = command, args
}

func removeAnnotations(object map[string]interface{}, names ...string) {
	metadata, _ := object["metadata"].(map[string]interface{})
	annotations, _ := metadata["annotations"].(map[string]interface{})
	for _, name := range names {
		delete(annotations, name)
	}
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

func removeItems(object map[string]interface{}, key string, matches func(map[string]interface{}) bool) {
	list, _ := object[key].([]interface{})
	var kept []interface{}
	for _, item := range list {
		if fields, ok := item.(map[string]interface{}); !ok || !matches(fields) {
			kept = append(kept, item)
		}
	}
	if object[key] = kept; len(kept) == 0 {
		delete(object, key)
	}
}

// edit plans a change, carries it out and proves it: proof says whether the result is what is wanted, and what without leaves of
// the object before and after has to be equal.
func edit(
	manifest []byte,
	plan func(*planner, Pod),
	proof func(before, after Pod) error,
	without func(map[string]interface{}, Pod),
) (Edit, error) {
	d, mark, err := read(manifest)
	if err != nil {
		return Edit{}, err
	}
	before, err := d.describe()
	if err != nil {
		return Edit{}, err
	}
	root, err := d.withoutAliases()
	if err != nil {
		return Edit{}, err
	}
	p := &planner{root: root}
	plan(p, before)
	if len(p.steps) == 0 {
		return Edit{Manifest: manifest}, nil
	}
	meant, err := writeAnew(p.root, d.json)
	if err != nil {
		return Edit{}, err
	}
	meaning, err := meant.decode()
	if err != nil {
		return Edit{}, err
	}

	result, reason := d.inPlace(p.steps, meaning)
	if reason != nil {
		result = meant
	}
	if err := prove(d, result, before, proof, without); err != nil {
		return Edit{}, fmt.Errorf("the manifest is written in a way that cannot be changed safely: %w; "+
			"next: write its anchors out and its lists one item a line, then run again", err)
	}
	if len(mark)+len(result.text) > MaxSize {
		return Edit{}, fmt.Errorf("the changed manifest would have more than %d bytes, which kubelet refuses; next: shorten it",
			MaxSize)
	}
	edited := Edit{Manifest: append(bytes.Clone(mark), result.text...)}
	if reason != nil {
		edited.Reformatted = fmt.Sprintf(
			"the whole manifest was written anew, since the change could not be made between its lines (%v)", reason)
	}
	return edited, nil
}

// inPlace carries out steps in the text. An error says why that gives nothing with the intended meaning.
func (d *document) inPlace(steps []step, meaning map[string]interface{}) (*document, error) {
	result := d
	for _, s := range steps {
		var err error
		if result, err = result.operate(s); err != nil {
			return nil, err
		}
	}
	got, err := result.decode()
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(got, meaning) {
		if hasAlias(d.root) {
			return nil, errors.New("values that are shared by anchors would change elsewhere, too")
		}
		return nil, errors.New("the lines around the change would mean something else")
	}
	return result, nil
}

// prove compares the manifests before and after an edit as kubelet decodes them.
func prove(
	d, result *document, before Pod, proof func(before, after Pod) error, without func(map[string]interface{}, Pod),
) error {
	after, err := result.describe()
	if err != nil {
		return err
	}
	if err := proof(before, after); err != nil {
		return err
	}
	was, err := d.decode()
	if err != nil {
		return err
	}
	is, err := result.decode()
	if err != nil {
		return err
	}
	without(was, before)
	without(is, after)
	if !reflect.DeepEqual(was, is) {
		return errors.New("something else would change, too")
	}
	return nil
}

// writeAnew gives a document from a tree, in kyaml's formatting; JSON in that of encoding/json, with sorted keys.
func writeAnew(root *yaml.Node, asJSON bool) (*document, error) {
	written, err := yaml.String(root)
	if err != nil {
		return nil, err
	}
	if !asJSON {
		return parse([]byte(yamlStart(root) + written))
	}
	compact, err := kubernetesyaml.YAMLToJSON([]byte(written))
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, compact, "", strings.Repeat(" ", yaml.DefaultIndent)); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return parse(indented.Bytes())
}

// yamlStart is what has to stand before a tree in braces, which kubelet would take for JSON.
func yamlStart(root *yaml.Node) string {
	if root.Style&yaml.FlowStyle != 0 {
		return "---\n"
	}
	return ""
}
