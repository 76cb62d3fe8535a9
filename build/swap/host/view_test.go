// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestWhatKubeletWouldWaitForIsFound(t *testing.T) {
	folder := t.TempDir()
	file := swaptest.Put(t, filepath.Join(folder, "file"), "x")
	for _, c := range []struct {
		host, kind string
		// starts reports whether kubelet starts the pod; binds is the number of mounts from this host.
		starts bool
		binds  int
	}{
		{folder, "Directory", true, 1},
		{folder, "", true, 1},
		{file, "File", true, 1},
		{file, "Directory", false, 0},
		{folder, "File", false, 0},
		{folder + "/none", "Directory", false, 0},
		{folder + "/none", "File", false, 0},
		{folder + "/none", "Socket", false, 0},
		{folder + "/none", "DirectoryOrCreate", true, 0},
		{folder + "/none", "FileOrCreate", true, 0},
		{folder + "/none", "", true, 0},
		{file, "DirectoryOrCreate", false, 0},
		{os.DevNull, "CharDevice", true, 1},
		{os.DevNull, "BlockDevice", false, 0},
	} {
		v, err := NewView(t.TempDir(), swaptest.PodOf(t, swaptest.Mounting(c.host, c.kind, "/more/of/it")), nil)
		if (err == nil) != c.starts {
			t.Errorf("%s as %q: %v", c.host, c.kind, err)
		} else if err == nil && len(v.binds) != c.binds {
			t.Errorf("%s as %q: mounts %v", c.host, c.kind, v.binds)
		}
	}
}

func TestAMountInsideOfAnotherNeedsItsPlaceThere(t *testing.T) {
	folder := t.TempDir()
	edit := swaptest.Swapped(t, swaptest.Mounting(folder, "Directory", "/etc/kubernetes"), manifest.Swap{Image: "a:1", ConfigFolder: folder, ConfigSHA256: strings.Repeat("0", 64)})
	swapped := swaptest.PodOf(t, edit)
	if _, err := NewView(t.TempDir(), swapped, nil); err == nil || !strings.Contains(err.Error(), "inside /etc/kubernetes") {
		t.Errorf("%v", err)
	}
	swaptest.Put(t, filepath.Join(folder, filepath.Base(manifest.ContainerConfigFolder), "x"), "x")
	if v, err := NewView(t.TempDir(), swapped, nil); err != nil || len(v.binds) != 2 {
		t.Errorf("with the place there: %v", err)
	}
}
