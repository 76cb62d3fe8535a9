// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-scheduler-fork/build/swap/swaptest"
)

func TestAMissingNetworkPluginIsNamed(t *testing.T) {
	folder := t.TempDir()
	n := &network{binaries: []string{filepath.Join(folder, "bin"), filepath.Join(folder, "more")}, configurations: filepath.Join(folder, "net.d")}
	swaptest.Put(t, filepath.Join(folder, "net.d", "10-first.conflist"), `{"plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}, {"type": "portmap"}]}`)
	swaptest.Put(t, filepath.Join(folder, "net.d", "20-later.conf"), `{"type": "never-used"}`)
	swaptest.Put(t, filepath.Join(folder, "bin", "bridge"), "")
	swaptest.Put(t, filepath.Join(folder, "more", "portmap"), "")
	missing := n.missing()
	if len(missing) != 1 || !strings.HasPrefix(missing[0], filepath.Join(folder, "bin", "host-local")+" ") {
		t.Errorf("missing: %q, want host-local alone", missing)
	}
	swaptest.Put(t, filepath.Join(folder, "bin", "host-local"), "")
	if missing := n.missing(); missing != nil {
		t.Errorf("missing: %q, want none", missing)
	}
	if err := os.Chmod(filepath.Join(folder, "bin", "bridge"), 0o644); err != nil {
		t.Fatal(err)
	}
	if missing := n.missing(); len(missing) != 1 {
		t.Errorf("a plugin that cannot be run is not missing: %q", missing)
	}
}
