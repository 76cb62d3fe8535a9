// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/signature"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// Request is a user's request. Empty fields leave the current values.
type Request struct {
	// Archive is an image archive to load. Image is the name of an image that the runtime already has.
	Archive, Image string
	// VerifyKey is the file of the SSH public key by which the archive must be signed, or empty.
	VerifyKey string
	// Config is the path of a KubeSchedulerConfiguration.
	Config string
	// Mounts are directories that the scheduler's container gets, read-only and at the same paths. NoMount alone means
	// none.
	Mounts []string
	// Hardened removes the rights that the scheduler does not need. Without, they stay as they are.
	Hardened bool
	// Probe lists the profiles that must bind a pod before the swap
	// counts as done. Empty means default-scheduler; NoProbe means none.
	Probe []string
	// AdoptFlags copies flags of the manifest that have no effect with a configuration into the configuration.
	AdoptFlags bool
	// Accept lists the kinds of problems, from Acceptable, that do not stop an install.
	Accept []string
	// Said receives what the new scheduler prints when it checks its configuration; nil drops it.
	Said io.Writer
}

// plan is a change that is fully computed, but not started.
type plan struct {
	// before is the current manifest; pod is its decoded form.
	before []byte
	pod    *manifest.Pod
	// archive is the archive to load; nil if the image is already in the runtime.
	archive *record.Archive
	imageID string
	swap    manifest.Swap
	// config is the content of the configuration to install; nil for
	// no change. adopted are the flags that were copied into it.
	config  []byte
	adopted []manifest.Setting
	// after is the new manifest, and afterPod its decoded form; reformatted reports whether other lines change, too.
	after       []byte
	afterPod    *manifest.Pod
	reformatted bool
	// accepted is the configuration as the new scheduler accepted it, and warnings are its messages. refusal is why it
	// rejected the configuration, or why its pod could not start.
	accepted *schedulerpod.Config
	warnings []string
	refusal  error
	// later reports whether the new scheduler supports newer API servers.
	later bool
	// rootOnly are the files because of which a hardened scheduler runs as root; unreadable are those that the user of a
	// hardened scheduler cannot read. Both are paths in the container.
	rootOnly, unreadable []string
}

// plan computes the changes for a request. It writes only into a temporary directory, which it removes.
func (t *Tool) plan(ctx context.Context, request Request) (*plan, error) {
	if request.Archive != "" && request.Image != "" {
		return nil, nextstep.With(errors.New("both --archive and --image are given"), "leave out one of them")
	}
	if request.VerifyKey != "" {
		if err := verifySignature(request); err != nil {
			return nil, err
		}
	}
	p := &plan{}
	var err error
	if p.before, p.pod, err = t.readManifest(); err != nil {
		return nil, err
	}
	scratch, err := record.CreateScratch(t.state.Path)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)

	root := filepath.Join(scratch, "image")
	// The scheduler may run as a user other than root and must be able to read it.
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	if err := t.planImage(ctx, p, request, scratch, root); err != nil {
		return nil, err
	}
	p.swap.Version = cmp.Or(p.swap.Version, unknownVersion)
	if err := t.planConfig(p, request); err != nil {
		return nil, err
	}
	if err := p.planMounts(request.Mounts); err != nil {
		return nil, err
	}
	// This time is only for display; install sets the time of the change.
	p.swap.RestartedAt = t.started
	p.swap.Hardened, p.swap.NonRoot = request.Hardened || p.pod.Swap.Hardened, p.pod.Swap.NonRoot
	if err := p.apply(); err != nil {
		return nil, fmt.Errorf("%s: %w", t.manifest, err)
	}
	return p, t.ask(ctx, p, request, scratch, root)
}

// apply computes the new manifest.
func (p *plan) apply() error {
	edit, err := manifest.Apply(p.before, p.swap)
	if err != nil {
		return err
	}
	after, err := manifest.Describe(edit.Manifest)
	p.after, p.afterPod, p.reformatted = edit.Manifest, &after, edit.Reformatted
	return err
}

// ask chooses the new scheduler's user, and checks whether it accepts its pod's command line and configuration.
func (t *Tool) ask(ctx context.Context, p *plan, request Request, scratch, root string) error {
	instead := map[string]string{}
	config, err := p.configAfter()
	if err != nil {
		p.refusal = fmt.Errorf("kubelet could not start the new pod: %w", err)
		return nil
	}
	staged := filepath.Join(scratch, "config")
	if p.swap.ConfigFolder != "" {
		err := errors.Join(os.Mkdir(staged, 0o700), os.WriteFile(filepath.Join(staged, manifest.ConfigFileName), config, 0o600))
		if err != nil {
			return nextstep.With(err, "make room on the disk")
		}
		instead[p.swap.ConfigFolder] = staged
	}
	view, err := host.NewView(root, p.afterPod, instead)
	if err != nil {
		p.refusal = fmt.Errorf("kubelet could not start the new pod: %w", err)
		return nil
	}
	if err := p.planUser(request, view, config); err != nil {
		return err
	}
	if p.swap.ConfigFolder != "" {
		// Set the owner as install does, even if the installed copy belongs to another user.
		if err := record.ChownConfig(staged, view.User); err != nil {
			return err
		}
	}
	asked := host.Scheduler{Binary: "/" + record.SchedulerInImage, Folder: scratch, Run: view.Run, Control: host.IsControl(p.swap.Version), Said: request.Said}
	if p.accepted, p.warnings, err = asked.Validate(ctx, p.afterPod, config); err != nil {
		p.refusal = fmt.Errorf("the new scheduler does not accept its command line or configuration: %w", err)
		return nil
	}
	p.later = asked.HasFlag(ctx, laterFlag)
	return nil
}

// planImage chooses the image and unpacks its scheduler.
func (t *Tool) planImage(ctx context.Context, p *plan, request Request, scratch, root string) error {
	file, name := request.Archive, request.Image
	if file == "" && name == "" {
		if !p.pod.Swapped {
			return nextstep.With(errors.New("this node runs kubeadm's scheduler, and neither --archive nor --image is given"), nextArchive)
		}
		name = p.pod.Image
	}
	if file != "" {
		loaded, err := record.OpenArchive(file)
		if err != nil {
			return err
		}
		p.archive, p.imageID, p.swap.Image, p.swap.Version = loaded, loaded.ID, loaded.Name, loaded.Version
		return unpackScheduler(loaded, root)
	}
	id, err := t.node.Runtime.ImageID(ctx, name)
	if err == nil && id == "" {
		err = nextstep.With(fmt.Errorf("the image %s is not in the container runtime at %s", name, t.node.Runtime.Endpoint), nextArchive)
	}
	if err != nil {
		return err
	}
	file = filepath.Join(scratch, "image.tar")
	if err := t.node.Runtime.Save(ctx, name, file); err != nil {
		return err
	}
	saved, err := record.OpenArchive(file)
	if err != nil {
		return nextstep.With(fmt.Errorf("the image %s is incomplete in the container runtime: %w", name, err), nextArchive)
	}
	p.imageID, p.swap.Image, p.swap.Version = id, name, saved.Version
	return unpackScheduler(saved, root)
}

// nextArchive is the next step where no image can be used.
const nextArchive = "kube-scheduler-swap install --archive kube-scheduler.tar"

// unknownVersion is the version annotation for an image without a version label. The annotation itself marks a swap.
const unknownVersion = "unknown"

func unpackScheduler(a *record.Archive, root string) error {
	if a.Architecture != goruntime.GOARCH {
		return nextstep.With(fmt.Errorf("%s is for %s, this node is %s", a.Path, a.Architecture, goruntime.GOARCH),
			"use the bundle for linux-%s (make release ARCH=%s)", goruntime.GOARCH, goruntime.GOARCH)
	}
	return a.Unpack(root)
}

// planConfig chooses the configuration: the requested one, or that of the current swap.
func (t *Tool) planConfig(p *plan, request Request) error {
	if request.Config != "" {
		content, err := record.ReadRegular(request.Config)
		if err != nil {
			return nextstep.With(fmt.Errorf("the configuration: %w", err), "name a KubeSchedulerConfiguration with --config")
		}
		return t.useConfig(p, content, request.AdoptFlags)
	}
	if p.pod.Swapped {
		p.swap.ConfigFolder, p.swap.ConfigSHA256 = p.pod.Swap.ConfigFolder, p.pod.Swap.ConfigSHA256
	}
	if p.swap.ConfigFolder == "" {
		return nil
	}
	file := filepath.Join(p.swap.ConfigFolder, manifest.ConfigFileName)
	if content, err := record.ReadRegular(file); err != nil {
		return nextstep.With(fmt.Errorf("the configuration of the current swap: %w", err), "name one with --config")
	} else if manifest.Sum(content) != p.swap.ConfigSHA256 {
		return nextstep.With(fmt.Errorf("%s was changed since it was installed", file),
			"copy it to another directory, and give the copy with --config")
	} else if request.AdoptFlags {
		return t.useConfig(p, content, true)
	}
	return nil
}

// useConfig sets the configuration that a plan installs.
func (t *Tool) useConfig(p *plan, content []byte, adoptFlags bool) error {
	if adoptFlags {
		var err error
		if content, p.adopted, err = manifest.Adopt(p.pod, content); err != nil {
			return err
		}
	}
	p.config = content
	p.swap.ConfigSHA256 = manifest.Sum(content)
	p.swap.ConfigFolder = t.state.ConfigFolder(p.swap.ConfigSHA256)
	return nil
}

// NoMount, as the only one of Request.Mounts, removes the directories of the current swap.
const NoMount = "none"

// planMounts chooses the directories to mount: the requested ones, or those of the current swap.
func (p *plan) planMounts(requested []string) error {
	if len(requested) == 0 {
		p.swap.Mounts = p.pod.Swap.Mounts
		for _, folder := range p.swap.MountList() {
			if _, err := os.Stat(folder); err != nil {
				return nextstep.With(fmt.Errorf("a directory of the current swap: %w", err),
					"mkdir %s; or add --mount with the directories that are still needed, or --mount %s", folder, NoMount)
			}
		}
		return nil
	}
	if slices.Equal(requested, []string{NoMount}) {
		return nil
	}
	var folders []string
	for _, folder := range requested {
		if err := p.checkMount(folder); err != nil {
			return err
		}
		folders = append(folders, filepath.Clean(folder))
	}
	slices.Sort(folders)
	p.swap.Mounts = strings.Join(slices.Compact(folders), ",")
	return nil
}

// checkMount returns an error for a directory that cannot be mounted at its own path.
func (p *plan) checkMount(folder string) error {
	if !filepath.IsAbs(folder) {
		return nextstep.With(fmt.Errorf("--mount %q is not an absolute path", folder),
			"name each directory by its absolute path; --mount %s alone removes all", NoMount)
	}
	taken := []string{manifest.ContainerConfigFolder}
	for _, mount := range p.pod.Container().VolumeMounts {
		if !manifest.IsOurs(mount.Name) {
			taken = append(taken, mount.MountPath)
		}
	}
	for _, other := range taken {
		if record.Inside(folder, other) || record.Inside(other, folder) {
			return nextstep.With(fmt.Errorf("--mount %s: the scheduler's pod already has a volume at %s", folder, other),
				"put the files that the configuration names into another directory, such as /etc/kubernetes/kube-scheduler")
		}
	}
	if info, err := os.Stat(folder); err != nil {
		return nextstep.With(fmt.Errorf("--mount: %w", err), "ls -ld %s", folder)
	} else if !info.IsDir() {
		return nextstep.With(fmt.Errorf("--mount %s is not a directory", folder), "name the directory that contains it")
	}
	return nil
}

// unchanged reports whether the current manifest already matches the request.
func (p *plan) unchanged() bool {
	now, then := p.pod.Swap, p.afterPod.Swap
	now.RestartedAt, then.RestartedAt = time.Time{}, time.Time{}
	return p.pod.Swapped && now == then && slices.Equal(p.pod.Line.Elements, p.afterPod.Line.Elements)
}

// wouldReformat returns the warning that a manifest will be reformatted.
// install first saves its exact text in the state directory.
func wouldReformat(manifest string) string {
	return fmt.Sprintf("%s is not formatted as this tool writes it, so install rewrites the whole file: indentation, blank "+
		"lines, line ends, breaks in long values and anchors may change, its content and its comments stay", manifest)
}

// Diff returns the exact change that install would make to the manifest; empty if there is none.
func (t *Tool) Diff(ctx context.Context, request Request) ([]byte, error) {
	p, err := t.plan(ctx, request)
	if err != nil {
		return nil, err
	}
	if p.refusal != nil {
		fmt.Fprintf(t.options.Output, "install would reject this: %v\n", p.refusal)
	}
	if p.unchanged() {
		return nil, nil
	}
	if p.reformatted {
		fmt.Fprintf(t.options.Output, "%s\n", wouldReformat(t.manifest))
	}
	return manifest.Diff(t.manifest, p.before, t.manifest+" (after install)", p.after), nil
}

// planUser makes a hardened scheduler run as NonRootUser if that user can read all its files, and lists the files that
// the scheduler's user cannot read: without capabilities, even root cannot read every file.
func (p *plan) planUser(request Request, v *host.View, config []byte) (err error) {
	if !p.swap.Hardened {
		return nil
	}
	files := host.FilesOf(p.afterPod, config)
	if v.User == nil && request.Hardened {
		nonRoot := syscall.Credential{Uid: manifest.NonRootUser, Gid: manifest.NonRootUser}
		if p.rootOnly, err = v.Unreadable(nonRoot, files); err != nil {
			return err
		}
		if len(p.rootOnly) == 0 {
			p.swap.NonRoot, v.User = true, &nonRoot
			return p.apply()
		}
	}
	user := syscall.Credential{}
	if v.User != nil {
		user = *v.User
	}
	p.unreadable, err = v.Unreadable(user, files)
	return err
}

// verifySignature returns an error for an archive without a good signature by the request's key.
func verifySignature(request Request) error {
	if request.Archive == "" {
		return nextstep.With(errors.New("--verify-key is given without --archive: an image in the container runtime has no signature"),
			"add --archive kube-scheduler.tar, or leave out --verify-key")
	}
	if err := record.RefuseSpecial(request.Archive); err != nil {
		return fmt.Errorf("the image archive: %w", err)
	}
	return signature.Verify(request.VerifyKey, request.Archive)
}
