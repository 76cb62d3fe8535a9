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

const someConfig = `# Mine.
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf # kubeadm's
`

func TestWhatAConfigurationReplacesIsFound(t *testing.T) {
	folder := t.TempDir()
	swaptest.Put(t, filepath.Join(folder, "own.yaml"), someConfig+"profiles: [{schedulerName: mine}]\n")
	own := strings.Replace(swaptest.Mounting(folder, "Directory", "/own"), "    image:", "    - --config=/own/own.yaml\n    image:", 1)
	hardened := swaptest.StockWith("--profiling=false", "--kube-api-qps=200")
	for name, c := range map[string]struct {
		before, config string
		accept         []string
		problems       int
		want           []string
	}{
		"a hardened manifest":                   {hardened, someConfig, nil, 1, []string{"--profiling=false of the manifest has no effect", "--kube-api-qps=200 of the manifest"}},
		"it is meant":                           {hardened, someConfig, []string{ProfilingFlags}, 0, []string{"--profiling=false of the manifest has no effect", "--kube-api-qps=200"}},
		"it is said":                            {hardened, someConfig + "enableProfiling: false\n", nil, 0, []string{"--kube-api-qps=200"}},
		"a configuration of the operator's own": {own, someConfig, nil, 1, []string{"your own configuration, /own/own.yaml, with the profiles mine"}},
		"that is meant":                         {own, someConfig, []string{OwnConfiguration}, 0, []string{"your own configuration"}},
		"the same one again":                    {own, someConfig + "profiles: [{schedulerName: mine}]\n", nil, 0, nil},
	} {
		tool := toolFor(t, c.before)
		p := &plan{pod: swaptest.PodOf(t, c.before), config: []byte(c.config)}
		var findings Findings
		tool.checkReplaced(&findings, p, Request{Accept: c.accept})
		if findings.Problems() != c.problems || len(findings) != len(c.want) {
			t.Errorf("%s: found %+v", name, findings)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(findings[i].What, want) {
				t.Errorf("%s: want %q in %q", name, want, findings[i].What)
			}
		}
	}
	if err := checkAccepted([]string{ProfilingFlags, "all"}); err == nil {
		t.Error("an unknown kind is accepted")
	}
}

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
