// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
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
		found, err := withoutEffect(podWith(t, c.flags...), []byte(c.config))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var lines []string
		for _, s := range found {
			lines = append(lines, s.line())
		}
		if got := strings.Join(lines, ", "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAdoptedFlagsStandInTheConfigurationAndItsCommentsStay(t *testing.T) {
	pod := podWith(t, "--profiling=false", "--kube-api-qps=200")
	adopted, settings, err := adopt(pod, []byte(someConfig))
	if err != nil || len(settings) != 2 {
		t.Fatalf("%v, %v", settings, err)
	}
	want := someConfig + "  qps: 200\nenableProfiling: false\n"
	if string(adopted) != want {
		t.Errorf("the configuration is now\n%s", Diff("wanted", []byte(want), "adopted", adopted))
	}
	if left, err := withoutEffect(pod, adopted); len(left) > 0 || err != nil {
		t.Errorf("still without effect: %v, %v", left, err)
	}
}

func TestWhatAConfigurationReplacesIsFound(t *testing.T) {
	folder := t.TempDir()
	put(t, filepath.Join(folder, "own.yaml"), someConfig+"profiles: [{schedulerName: mine}]\n")
	own := strings.Replace(string(mounting(folder, "Directory", "/own")), "    image:", "    - --config=/own/own.yaml\n    image:", 1)
	hardened := strings.Replace(stock, "    image:", "    - --profiling=false\n    - --kube-api-qps=200\n    image:", 1)
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
		p := &plan{pod: described(t, []byte(c.before)), config: []byte(c.config)}
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

func TestKubeletsWordsAreThoseOfThisVersion(t *testing.T) {
	mirror := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler-cp1", Annotations: map[string]string{RestartedAtAnnotation: "now", staticPodUID: "u"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"},
		}}}},
	}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "e"}, Reason: "FailedMount", Message: "/absent is not there"}
	c := &cluster{client: fake.NewSimpleClientset(mirror, event)}
	got, err := c.kubeletStatusOf(t.Context(), "kube-system", "kube-scheduler-cp1", "now")
	if want := (kubeletStatus{true, "ErrImagePull: no such host; FailedMount: /absent is not there"}); got != want || err != nil {
		t.Errorf("kubelet says %+v, %v", got, err)
	}
	if got, err := c.kubeletStatusOf(t.Context(), "kube-system", "kube-scheduler-cp1", "before"); got != (kubeletStatus{}) || err != nil {
		t.Errorf("of another version kubelet says %+v, %v", got, err)
	}
	if got, err := c.kubeletStatusOf(t.Context(), "kube-system", "kube-scheduler-cp2", "now"); got != (kubeletStatus{}) || err != nil {
		t.Errorf("of another node's kubelet says %+v, %v", got, err)
	}
}
