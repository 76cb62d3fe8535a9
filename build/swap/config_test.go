// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"path/filepath"
	"strings"
	"testing"

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
