// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestAFullDiskIsNamedWithTheRoomThatIsNeeded(t *testing.T) {
	folder := t.TempDir()
	swaptest.Put(t, filepath.Join(folder, "bin", "ctr"), "#!/bin/sh\necho 'ctr: write x: no space left on device'\nexit 1\n")
	swaptest.Put(t, filepath.Join(folder, "bin", "docker"), "#!/bin/sh\necho 'Error response from daemon: write x: no space left on device'\nexit 1\n")
	t.Setenv("PATH", filepath.Join(folder, "bin")+":"+os.Getenv("PATH"))
	r := &Runtime{Images: &swaptest.FakeRuntime{Images: map[string]string{"a": "sha256:1"}}}
	err := r.Save(t.Context(), "a", filepath.Join(folder, ".scratch-1", "image.tar"))
	if err == nil {
		t.Fatal("no error")
	}
	what, next := nextstep.Split(err, "")
	if !strings.Contains(what, "cannot export the image a into "+folder+":") || !strings.Contains(next, "df -h "+folder+"; make room for 21 MB there") {
		t.Errorf("%s\nnext: %s", what, next)
	}
	r.Docker = true
	if what, next = nextstep.Split(r.Save(t.Context(), "a", filepath.Join(folder, "image.tar")), ""); !strings.Contains(next, "the disk of the container runtime") {
		t.Errorf("%s\nnext: %s", what, next)
	}
}
