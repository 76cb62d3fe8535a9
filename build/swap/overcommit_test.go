// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestCheckAndRollbackNameOvercommittingPods(t *testing.T) {
	swapped := swaptest.Swapped(t, swaptest.Stock, manifest.Swap{Image: "ours:1", Version: "v1", ConfigFolder: t.TempDir(), ConfigSHA256: strings.Repeat("0", 64)})
	before := swaptest.PodOf(t, swapped)
	swaptest.Put(t, filepath.Join(before.Swap.ConfigFolder, manifest.ConfigFileName), "profiles: [{plugins: {filter: {enabled: [{name: Overcommit}]}}}]")
	tool := toolFor(t, swaptest.Stock)
	waits := swaptest.Overcommitting("a", "default-scheduler", "", host.OvercommitResource)
	tool.node.Cluster = &host.Cluster{Client: fake.NewSimpleClientset(waits)}
	tool.sayPending(t.Context(), before, []byte(swaptest.Stock))
	if said := said(tool); !strings.Contains(said, "1 pods request "+host.OvercommitResource) {
		t.Errorf("a rollback says %q", said)
	}
	var findings Findings
	tool.checkConfig(t.Context(), &findings, &plan{pod: before, afterPod: swaptest.PodWith(t), accepted: &schedulerpod.Config{}}, Request{})
	if len(findings) != 1 || findings[0].Severity != Warning || !strings.Contains(findings[0].What, host.OvercommitResource) {
		t.Errorf("check finds %+v", findings)
	}
}
