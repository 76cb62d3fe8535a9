// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

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
	probe := &Probe{Scheme: "HTTPS", Host: "127.0.0.1", Port: 10259, Path: "/healthz"}
	pod.Manifest, pod.containerIndex, pod.line = nil, 0, commandLine{}
	want := Pod{
		Name:            "kube-scheduler",
		Namespace:       "kube-system",
		Container:       "kube-scheduler",
		Image:           "registry.k8s.io/kube-scheduler:v1.23.17",
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{
			"kube-scheduler",
			"--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
			"--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
			"--bind-address=127.0.0.1",
			"--kubeconfig=/etc/kubernetes/scheduler.conf",
			"--leader-elect=true",
		},
		HostNetwork: true,
		Liveness:    probe,
		Startup:     probe,
		Swap:        Swap{Image: "registry.k8s.io/kube-scheduler:v1.23.17"},
	}
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
	if pod.Namespace != "default" || pod.Startup != nil || pod.HostNetwork {
		t.Errorf("%+v", pod)
	}
	if want := (&Probe{Scheme: "HTTP", Port: 10260, Path: "/"}); !reflect.DeepEqual(pod.Liveness, want) {
		t.Errorf("got %+v, want %+v", pod.Liveness, want)
	}
	if want := []string{"kube-scheduler", "--v=2"}; !reflect.DeepEqual(pod.Command, want) {
		t.Errorf("the command is %q", pod.Command)
	}
	if want := []corev1.EnvVar{{Name: "A", Value: "b"}}; !reflect.DeepEqual(pod.Env, want) {
		t.Errorf("the environment is %v", pod.Env)
	}
}

func TestFlagsAreFoundInBothForms(t *testing.T) {
	pod := describe(t, strings.Replace(minimal, "    - kube-scheduler\n", `    - /go-runner
    - --v=9
    - kube-scheduler
    - --secure-port=10260
    - --bind-address
    - 127.0.0.1
    - --leader-elect
    - --leader-elect_resource-name=mine
    - --kubeconfig=/first
    - --kubeconfig
    - /last
    - --empty=
    - --config
    args: [/own.yaml, --profiling]
`, 1))
	for name, want := range map[string]string{
		"secure-port":                  "10260",
		"--secure-port":                "10260",
		"bind-address":                 "127.0.0.1",
		"leader-elect":                 "true",
		"--leader-elect-resource-name": "mine",
		"kubeconfig":                   "/last",
		"empty":                        "",
		"config":                       "/own.yaml",
		"profiling":                    "true",
	} {
		if got, found := pod.Flag(name); !found || got != want {
			t.Errorf("%s is %q, %t; want %q", name, got, found, want)
		}
	}
	for _, name := range []string{"v", "secure", "127.0.0.1", "kube-scheduler", "own.yaml"} {
		if got, found := pod.Flag(name); found {
			t.Errorf("%s is %q, but it is no flag of kube-scheduler", name, got)
		}
	}
}

func TestHostPathFollowsTheDeepestMount(t *testing.T) {
	pod := describe(t, minimal+`    volumeMounts:
    - {name: etc, mountPath: /etc/kubernetes/}
    - {name: file, mountPath: /etc/kubernetes/scheduler.conf}
    - {name: scratch, mountPath: /etc/kubernetes/scratch}
    - {name: part, mountPath: /part, subPath: a/b}
    - {name: part, mountPath: /expression, subPathExpr: $(NODE)}
  volumes:
  - {name: etc, hostPath: {path: /host/etc}}
  - {name: file, hostPath: {path: /host/file.conf}}
  - {name: scratch, emptyDir: {}}
  - {name: part, hostPath: {path: /host/part}}
`)
	for containerPath, want := range map[string]string{
		"/etc/kubernetes":                      "/host/etc",
		"/etc/kubernetes/a/../pki/ca.crt":      "/host/etc/pki/ca.crt",
		"/etc/kubernetes/scheduler.conf":       "/host/file.conf",
		"/etc/kubernetes/scheduler.conf.other": "/host/etc/scheduler.conf.other",
		"/part/c":                              "/host/part/a/b/c",
		"/etc/kubernetes/scratch/a":            "",
		"/expression/a":                        "",
		"/etc/kubernetes-other":                "",
		"/":                                    "",
		"etc/kubernetes/a":                     "",
	} {
		if got, found := pod.HostPath(containerPath); got != want || found != (want != "") {
			t.Errorf("%s is %q, %t; want %q", containerPath, got, found, want)
		}
	}
	if got, found := (Pod{}).HostPath("/a"); found {
		t.Errorf("nothing is mounted, and yet: %q", got)
	}
}

func TestTheContainerThatRunsTheSchedulerIsChosen(t *testing.T) {
	for name, test := range map[string]struct{ containers, want string }{
		"by its program":                {"[{name: a, command: [tail, /log/kube-scheduler]}, {name: b, command: [/bin/kube-scheduler]}]", "b"},
		"program before name":           {"[{name: kube-scheduler, command: [tail, /log]}, {name: b, command: [/bin/kube-scheduler]}]", "b"},
		"by its name behind a wrapper":  {"[{name: a, command: [tail, /log/kube-scheduler]}, {name: kube-scheduler, command: [/go-runner, kube-scheduler]}]", "kube-scheduler"},
		"the only one behind a wrapper": {"[{name: a, command: [/go-runner, kube-scheduler]}, {name: b, command: [b]}]", "a"},
		"program in args":               {"[{name: a, args: [kube-scheduler]}]", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers: " + test.containers + "\n"
			if got := describe(t, manifest).Container; got != test.want {
				t.Errorf("chosen is %q, want %q", got, test.want)
			}
		})
	}
}
