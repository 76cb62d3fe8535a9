// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
)

const someConfig = `# Mine.
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf # kubeadm's
`

func TestFlagsThatAConfigurationSwitchesOffAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		flags  []string
		config string
		want   string
	}{
		"profiling":                     {[]string{"--profiling=false"}, someConfig, "enableProfiling: false"},
		"profiling, in other words":     {[]string{"--profiling=0", "--contention-profiling=T"}, someConfig, "enableProfiling: false"},
		"profiling, said in both":       {[]string{"--profiling=false"}, someConfig + "enableProfiling: true\n", ""},
		"the rate of requests":          {[]string{"--kube-api-qps=200", "--kube-api-burst", `"400"`}, someConfig, "clientConnection: {qps: 200}, clientConnection: {burst: 400}"},
		"what holds anyway":             {[]string{"--kube-api-qps=50.0", "--profiling", "--lock-object-name=kube-scheduler"}, someConfig, ""},
		"the kubeconfig, which is said": {nil, someConfig, ""},
		"the kubeconfig":                {nil, "kind: KubeSchedulerConfiguration\n", "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}"},
		"the lock":                      {[]string{"--lock-object-name=mine"}, someConfig, "leaderElection: {resourceName: mine}"},
	} {
		found, err := WithoutEffect(podWith(t, c.flags...), []byte(c.config))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var lines []string
		for _, s := range found {
			lines = append(lines, s.Line())
		}
		if got := strings.Join(lines, ", "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAdoptedFlagsStandInTheConfigurationAndItsCommentsStay(t *testing.T) {
	pod := podWith(t, "--profiling=false", "--kube-api-qps=200")
	adopted, settings, err := Adopt(pod, []byte(someConfig))
	if err != nil || len(settings) != 2 {
		t.Fatalf("%v, %v", settings, err)
	}
	want := someConfig + "  qps: 200\nenableProfiling: false\n"
	if string(adopted) != want {
		t.Errorf("the configuration is now\n%s", Diff("wanted", []byte(want), "adopted", adopted))
	}
	if left, err := WithoutEffect(pod, adopted); len(left) > 0 || err != nil {
		t.Errorf("still without effect: %v, %v", left, err)
	}
}
