// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestAnUnsignedArchiveIsRefused(t *testing.T) {
	key := swaptest.Put(t, filepath.Join(t.TempDir(), "release.pub"), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJKzJ3Yk1fWmM0VJ1bn5HcWk0l9k2yhmnHLdlbsL1rkQ\n")
	archive := swaptest.Put(t, filepath.Join(t.TempDir(), "image.tar"), "x")
	swaptest.Put(t, filepath.Join(filepath.Dir(archive), "SHA256SUMS"), "")
	for want, request := range map[string]Request{
		archive + " is not signed":            {Archive: archive, VerifyKey: key},
		"--verify-key is given without":       {VerifyKey: key},
		"--verify-key is given without --arc": {VerifyKey: key, Image: "ours:1"},
	} {
		tool := toolFor(t, swaptest.Stock)
		tool.node.Runtime, tool.node.Cluster = &host.Runtime{Images: swaptest.NoImages{}}, &host.Cluster{Client: fake.NewSimpleClientset()}
		findings, err := tool.Check(t.Context(), request)
		var found strings.Builder
		findings.Write(&found)
		if err != nil || !strings.Contains(found.String(), want) {
			t.Errorf("check: %v, want %q in:\n%s", err, want, found.String())
		}
		if err := tool.Install(t.Context(), request); err == nil || !strings.Contains(err.Error(), want) || swaptest.Get(t, tool.manifest) != swaptest.Stock {
			t.Errorf("install: %v, want %q, and the manifest as before", err, want)
		}
	}
}
