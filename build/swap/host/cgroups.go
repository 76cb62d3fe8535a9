// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

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
		if err != nil {
			return nil
		}
		if !entry.IsDir() {
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
