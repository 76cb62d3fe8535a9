// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kube-scheduler-fork/build/swap/record"
)

// network has the directories of the pod network's plugins, and the directory of its CNI configuration.
type network struct {
	binaries       []string
	configurations string
}

// MissingPlugins returns the network plugins that the CNI
// configuration names and that are in none of the plugin directories.
func (n *Node) MissingPlugins(ctx context.Context) []string {
	answer, err := n.Runtime.Containers.Status(ctx, &cri.StatusRequest{Verbose: true})
	if err != nil {
		return nil
	}
	if n.Kubelet.Docker {
		// With dockershim, kubelet manages the network: its flags have the directories.
		return network{strings.Split(n.Kubelet.pluginFolders, ","), n.Kubelet.networkFolder}.missing()
	}
	net := network{[]string{"/opt/cni/bin"}, "/etc/cni/net.d"}
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
			net.binaries = filepath.SplitList(settings.CNI.BinDir)
		}
		if len(settings.CNI.BinDirs) > 0 {
			net.binaries = settings.CNI.BinDirs
		}
		net.configurations = cmp.Or(settings.CNI.ConfDir, net.configurations)
	}
	return net.missing()
}

// missing reads the configuration that the runtime uses: the first by name.
func (n network) missing() []string {
	entries, err := os.ReadDir(n.configurations)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".conf", ".conflist", ".json":
		default:
			continue
		}
		content, err := record.ReadRegular(filepath.Join(n.configurations, entry.Name()))
		if err != nil {
			continue
		}
		type plugin struct {
			Type string `json:"type"`
			IPAM struct {
				Type string `json:"type"`
			} `json:"ipam"`
		}
		var list struct {
			plugin
			Plugins []plugin `json:"plugins"`
		}
		if json.Unmarshal(content, &list) != nil {
			continue
		}
		var missing []string
		for _, p := range append(list.Plugins, list.plugin) {
			for _, name := range []string{p.Type, p.IPAM.Type} {
				if name != "" && !n.has(name) {
					missing = append(missing, fmt.Sprintf("%s (required by %s)", filepath.Join(n.binaries[0], name), filepath.Join(n.configurations, entry.Name())))
				}
			}
		}
		return missing
	}
	return nil
}

func (n network) has(plugin string) bool {
	for _, folder := range n.binaries {
		if info, err := os.Stat(filepath.Join(folder, plugin)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}
