// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// cgroupRoot is where Linux shows the control groups: version 2, or a folder for each controller of version 1.
const cgroupRoot = "/sys/fs/cgroup"

// beside is where a system with version 1 shows version 2 beside it: the runtime makes groups there that kubelet does
// not know of and never removes.
const beside = "unified"

// podCgroups lists the control groups of the given pods. kubelet removes them as the last thing before it is done with
// a pod, and only then lets the pod's successor start; nothing else that can be seen from outside tells that. The list
// is empty where kubelet makes none (cgroupsPerQOS off).
func podCgroups(root string, pods map[string]bool) []string {
	var found []string
	// A group that ends while we look is none of ours to complain about.
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if !entry.IsDir() {
			return nil
		}
		if entry.Name() == beside {
			return filepath.SkipDir
		}
		for uid := range pods {
			// kubelet's two names: pod<uid>, and for systemd …pod<uid with _>.slice.
			if strings.Contains(entry.Name(), "pod"+uid) || strings.Contains(entry.Name(), "pod"+strings.ReplaceAll(uid, "-", "_")) {
				found = append(found, path)
				return filepath.SkipDir
			}
		}
		return nil
	})
	return found
}

// gone tells whether none of the folders is there any more.
func gone(folders []string) bool {
	for _, folder := range folders {
		if _, err := os.Stat(folder); err == nil {
			return false
		}
	}
	return true
}
