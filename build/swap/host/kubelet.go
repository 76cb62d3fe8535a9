// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// Kubelet holds the settings of this node's running kubelet.
type Kubelet struct {
	Process int
	// Manifests is the static pod directory; empty if there is none.
	Manifests string
	// Endpoint is the container runtime's socket.
	Endpoint string
	// Docker reports whether kubelet uses dockershim, so that the images are Docker's.
	Docker bool
	// pluginFolders (separated by commas) and networkFolder are the directories of the network plugins and of their
	// configuration that dockershim uses; empty if it uses no plugins.
	pluginFolders, networkFolder string
	// NodeName is the name of this node's Node object.
	NodeName string
}

// dockershim is the default CRI socket of a kubelet with dockershim.
const dockershim = "/var/run/dockershim.sock"

// FindKubelet reads the settings of this node's running kubelet as kubelet itself does: from its command line, then
// from the configuration file that it names. proc is /proc.
func FindKubelet(proc string) (*Kubelet, error) {
	commands, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "cmdline"))
	if err != nil {
		return nil, err
	}
	for _, command := range commands {
		content, err := os.ReadFile(command)
		if err != nil || len(content) == 0 {
			// The process has ended, or is a kernel thread.
			continue
		}
		arguments := strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
		if filepath.Base(arguments[0]) != "kubelet" || !sameRoot(proc, filepath.Dir(command)) {
			continue
		}
		process, err := strconv.Atoi(filepath.Base(filepath.Dir(command)))
		if err != nil {
			return nil, err
		}
		return readKubelet(process, arguments[1:])
	}
	return nil, nextstep.With(errors.New("no kubelet runs on this node"),
		"systemctl status kubelet, or run this on a control-plane node")
}

// sameRoot reports whether a process has the same root file system as this one: a kubelet in a container, for example
// of a cluster inside a cluster, is not this node's.
func sameRoot(proc, process string) bool {
	theirs, err := os.Stat(filepath.Join(process, "root"))
	if err != nil {
		return false
	}
	ours, err := os.Stat(filepath.Join(proc, "self", "root"))
	return err == nil && os.SameFile(theirs, ours)
}

func readKubelet(process int, arguments []string) (*Kubelet, error) {
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	file := flags.String("config", "", "")
	manifests := flags.String("pod-manifest-path", "", "")
	runtime := flags.String("container-runtime", "docker", "")
	endpoint := flags.String("container-runtime-endpoint", "", "")
	networkPlugin := flags.String("network-plugin", "", "")
	pluginFolders := flags.String("cni-bin-dir", "/opt/cni/bin", "")
	networkFolder := flags.String("cni-conf-dir", "/etc/cni/net.d", "")
	nodeName := flags.String("hostname-override", "", "")
	if err := flags.Parse(arguments); err != nil {
		return nil, nextstep.With(
			fmt.Errorf("the command line of kubelet (process %d) cannot be read: %w", process, err),
			"ps -o args -p %d", process)
	}
	k := &Kubelet{Process: process, Manifests: *manifests, Endpoint: *endpoint, NodeName: *nodeName}
	if *file != "" {
		content, err := os.ReadFile(*file)
		if err != nil {
			return nil, nextstep.With(fmt.Errorf("kubelet's configuration: %w", err),
				"run this as root on the control-plane node")
		}
		var settings kubeletconfig.KubeletConfiguration
		if err := yaml.Unmarshal(content, &settings); err != nil {
			return nil, nextstep.With(fmt.Errorf("kubelet's configuration %s: %w", *file, err), "fix it")
		}
		k.Manifests = cmp.Or(k.Manifests, settings.StaticPodPath)
	}
	if k.NodeName == "" {
		var err error
		if k.NodeName, err = os.Hostname(); err != nil {
			return nil, err
		}
	}
	// kubelet does the same, also with --hostname-override.
	k.NodeName = strings.ToLower(strings.TrimSpace(k.NodeName))
	if *runtime == "docker" {
		k.Docker = true
		if *networkPlugin == "cni" {
			k.pluginFolders, k.networkFolder = *pluginFolders, *networkFolder
		}
		k.Endpoint = cmp.Or(k.Endpoint, dockershim)
	}
	if k.Endpoint = strings.TrimPrefix(k.Endpoint, "unix://"); k.Endpoint == "" {
		return nil, nextstep.With(fmt.Errorf("kubelet (process %d) names no --container-runtime-endpoint", process),
			"ps -o args -p %d", process)
	}
	return k, nil
}

// cgroupRoot is the mount point of control groups: version 2, or one directory for each controller of version 1.
const cgroupRoot = "/sys/fs/cgroup"

// unifiedCgroups is the directory of version 2 on a system that uses version 1. The runtime creates groups there that
// kubelet does not know and never removes.
const unifiedCgroups = "unified"

// podCgroups returns the control groups of the given pods. Their removal is kubelet's last step in the cleanup of a
// pod, before it starts the successor, and the only sign of it outside kubelet. The list is empty if kubelet creates
// none (cgroupsPerQOS off).
func podCgroups(root string, pods map[string]bool) []string {
	var found []string
	// Ignore errors: a group may be removed during the walk.
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		if entry.Name() == unifiedCgroups {
			return filepath.SkipDir
		}
		for uid := range pods {
			// kubelet has two naming schemes: pod<uid>, and for systemd …pod<uid with _>.slice.
			if strings.Contains(entry.Name(), "pod"+uid) || strings.Contains(entry.Name(), "pod"+strings.ReplaceAll(uid, "-", "_")) {
				found = append(found, path)
				return filepath.SkipDir
			}
		}
		return nil
	})
	return found
}

// gone reports whether none of the directories exists.
func gone(folders []string) bool {
	for _, folder := range folders {
		if _, err := os.Stat(folder); err == nil {
			return false
		}
	}
	return true
}
