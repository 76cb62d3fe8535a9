// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/schedulerpod"
)

// stock is a manifest of kubeadm.
//
//go:embed testdata/kubeadm/before.yaml
var stock string

// podWith returns the scheduler's pod with more flags.
func podWith(t *testing.T, flags ...string) *Pod {
	t.Helper()
	lines := ""
	for _, flag := range flags {
		lines += "    - " + flag + "\n"
	}
	pod := describe(t, strings.Replace(stock, "    image:", lines+"    image:", 1))
	return &pod
}

func describe(t testing.TB, manifest string) Pod {
	t.Helper()
	pod, err := Describe([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestDescribeReadsWhatKubeadmWrites(t *testing.T) {
	pod := describe(t, string(readFile(t, "testdata/kubeadm/before.yaml")))
	if got := pod.HealthURL(); got != "https://127.0.0.1:10259/healthz" {
		t.Errorf("its health is asked for at %s", got)
	}
	if policy := pod.Container().ImagePullPolicy; policy != corev1.PullIfNotPresent || !pod.Object.Spec.HostNetwork {
		t.Errorf("pull policy %s, host network %t", policy, pod.Object.Spec.HostNetwork)
	}
	if want := []string{
		"kube-scheduler",
		"--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
		"--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
		"--bind-address=127.0.0.1",
		"--kubeconfig=/etc/kubernetes/scheduler.conf",
		"--leader-elect=true",
	}; !slices.Equal(pod.Line.Elements, want) {
		t.Errorf("the command line is %q", pod.Line.Elements)
	}
	if o := pod.Object; o.Name != "kube-scheduler" || o.Namespace != "kube-system" || pod.Container().Name != "kube-scheduler" {
		t.Errorf("it is the container %s of %s/%s", pod.Container().Name, o.Namespace, o.Name)
	}
	pod.Scheduler = schedulerpod.Scheduler{}
	want := Pod{Image: "registry.k8s.io/kube-scheduler:v1.23.17", Swap: Swap{Image: "registry.k8s.io/kube-scheduler:v1.23.17"}}
	if !reflect.DeepEqual(pod, want) {
		t.Errorf("got  %+v\nwant %+v", pod, want)
	}
}

func TestDescribeFillsInWhatKubeletDefaults(t *testing.T) {
	pod := describe(t, minimal+`    args: [--v=2]
    env: [{name: A, value: b}]
    ports: [{name: secure, containerPort: 10260}]
    livenessProbe: {httpGet: {port: secure}}
    startupProbe: {exec: {command: [true-program]}}
`)
	if pod.Object.Namespace != "default" || pod.Object.Spec.HostNetwork {
		t.Errorf("%+v", pod)
	}
	if got := pod.HealthURL(); got != "http://127.0.0.1:10260/" {
		t.Errorf("its health is asked for at %s", got)
	}
	if want := []string{"kube-scheduler", "--v=2"}; !slices.Equal(pod.Line.Elements, want) {
		t.Errorf("the command line is %q", pod.Line.Elements)
	}
	if want := []corev1.EnvVar{{Name: "A", Value: "b"}}; !reflect.DeepEqual(pod.Container().Env, want) {
		t.Errorf("the environment is %v", pod.Container().Env)
	}
}

func TestARollbackSaysWhatItWentBackTo(t *testing.T) {
	swapped := apply(t, []byte(stock), Swap{Image: "ours:1", Version: "v1.23.17+ours", ConfigFolder: "/kept/0123",
		ConfigSHA256: strings.Repeat("0123456789abcdef", 4)})
	for want, manifest := range map[string]string{
		"the image registry.k8s.io/kube-scheduler:v1.23.17 and no configuration":              stock,
		"the image ours:1 (v1.23.17+ours) and the configuration /kept/0123/" + ConfigFileName: string(swapped.Manifest),
	} {
		if got := InWords([]byte(manifest)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestARestartIsNoOtherManifest(t *testing.T) {
	restarted := restart(t, []byte(stock), time.Now())
	if !OnlyRestarted([]byte(stock), restarted) || !OnlyRestarted([]byte(stock), []byte(stock)) {
		t.Error("a manifest with the time of a restart in it is taken for another one")
	}
	if OnlyRestarted([]byte(stock), []byte(strings.Replace(string(restarted), "v1.23.17", "v1.23.16", 1))) {
		t.Error("a manifest with another image is taken for the same")
	}
}

func TestRollbackKnowsWhetherItGoesBackToWhatWasSwapped(t *testing.T) {
	pod := describe(t, string(apply(t, []byte(stock), Swap{Image: "ours:1", Version: "v1", RestartedAt: time.Now()}).Manifest))
	if !SwapOf([]byte(stock), &pod) {
		t.Error("a swap is taken for another manifest")
	}
	if SwapOf([]byte(strings.Replace(stock, "10259", "10260", 1)), &pod) {
		t.Error("the swap of another manifest is taken for that of this one")
	}
}
