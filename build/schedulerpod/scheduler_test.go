// SPDX-License-Identifier: Apache-2.0

package schedulerpod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// podOf returns the pod of a spec.
func podOf(t *testing.T, spec string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	return pod
}

// schedulerOf returns the one scheduler of a container.
func schedulerOf(t *testing.T, container string) Scheduler {
	t.Helper()
	found := Find(podOf(t, "containers:\n- "+strings.ReplaceAll(container, "\n", "\n  ")))
	if len(found) != 1 {
		t.Fatalf("found %d schedulers, want 1", len(found))
	}
	return found[0]
}

func TestFind(t *testing.T) {
	for name, test := range map[string]struct {
		containers string
		// want are the names of the containers, with a ? after one that is not sure.
		want string
	}{
		"direct":                       {"[{name: a, command: [tail, /log/kube-scheduler]}, {name: b, command: [/bin/kube-scheduler]}]", "b"},
		"direct comes before the name": {"[{name: kube-scheduler, command: [tail, /log]}, {name: b, command: [/bin/kube-scheduler]}]", "b"},
		"in args":                      {"[{name: a, args: [kube-scheduler]}]", "a"},
		"two":                          {"[{name: a, command: [kube-scheduler]}, {name: b, command: [kube-scheduler]}]", "a b"},
		"wrapped, by its name":         {"[{name: a, command: [tail, /log/kube-scheduler]}, {name: kube-scheduler, command: [/go-runner, kube-scheduler]}]", "kube-scheduler"},
		"wrapped, by its image":        {"[{name: a, image: x:5000/kube-scheduler@sha256:ab, command: [/go-runner, kube-scheduler]}]", "a"},
		"wrapped, or a file to read":   {"[{name: a, command: [/go-runner, kube-scheduler]}, {name: b, command: [b]}]", "a?"},
		"shell":                        {`[{name: a, command: [sh, -c, "exec /usr/local/bin/kube-scheduler --v=2"]}]`, "a"},
		"shell without flags":          {`[{name: a, command: [sh, -c, "exec kube-scheduler"]}]`, "a"},
		"a note in a flag":             {`[{name: a, command: [etcd, "--note=for kube-scheduler only"]}]`, ""},
		"the image's own command":      {"[{name: a, image: registry.k8s.io/kube-scheduler:v1.23.17, args: [--v=2]}]", "a"},
		"the beginning of an image":    {"[{name: a, image: registry.k8s.io/kube-scheduler-amd64}]", "a?"},
		"another command in its image": {"[{name: a, image: registry.k8s.io/kube-scheduler:v1.23.17, command: [sleep]}]", ""},
		"a flag that names it":         {"[{name: a, command: [etcd, --name=kube-scheduler]}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, scheduler := range Find(podOf(t, "containers: "+test.containers)) {
				found := scheduler.Container().Name
				if !scheduler.Sure {
					found += "?"
				}
				got = append(got, found)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

func TestFlag(t *testing.T) {
	scheduler := schedulerOf(t, `name: kube-scheduler
command:
- /go-runner
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
`)
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
		if got, set := scheduler.Flag(name); !set || got != want {
			t.Errorf("%s is %q, %t; want %q", name, got, set, want)
		}
	}
	for _, name := range []string{"v", "secure", "127.0.0.1", "kube-scheduler", "own.yaml"} {
		if got, set := scheduler.Flag(name); set {
			t.Errorf("%s is %q, but it is not a flag of kube-scheduler", name, got)
		}
	}
}

func TestHealthURLAndPort(t *testing.T) {
	const probe = "livenessProbe: {httpGet: {host: 127.0.0.1, path: /livez, port: 10300, scheme: HTTPS}}\n"
	for name, test := range map[string]struct {
		container, url string
		port           int
	}{
		"defaults":      {"command: [kube-scheduler]\n", "https://127.0.0.1:10259/healthz", 10259},
		"flags":         {"command: [kube-scheduler, --secure-port=1234, --bind-address=10.0.0.1]\n", "https://10.0.0.1:1234/healthz", 1234},
		"all addresses": {"command: [kube-scheduler, --bind-address=0.0.0.0]\n", "https://127.0.0.1:10259/healthz", 10259},
		"IPv6":          {"command: [kube-scheduler, --bind-address=::1]\n", "https://[::1]:10259/healthz", 10259},
		"the last one":  {"image: kube-scheduler\nargs: [--secure-port, '1', --secure-port=2]\n", "https://127.0.0.1:2/healthz", 2},
		"shell":         {"command: [sh, -c, exec kube-scheduler --secure-port=3]\n", "https://127.0.0.1:3/healthz", 3},
		"no port":       {"command: [kube-scheduler, --secure-port=0]\n", "https://127.0.0.1:10259/healthz", 0},
		"probe":         {"command: [kube-scheduler]\n" + probe, "https://127.0.0.1:10300/livez", 10259},
		"a path without its slash": {"command: [kube-scheduler]\nlivenessProbe: {httpGet: {path: healthz, port: 10259, scheme: HTTPS}}\n",
			"https://127.0.0.1:10259/healthz", 10259},
		"kubelet's defaults": {"command: [kube-scheduler]\nports: [{name: secure, containerPort: 10260}]\n" +
			"livenessProbe: {httpGet: {port: secure}}\n", "http://127.0.0.1:10260/", 10259},
		"another kind of probe": {"command: [kube-scheduler]\nlivenessProbe: {exec: {command: [a]}}\n", "https://127.0.0.1:10259/healthz", 10259},
	} {
		scheduler := schedulerOf(t, test.container)
		if url, port := scheduler.HealthURL(), scheduler.Port(); url != test.url || port != test.port {
			t.Errorf("%s: %s, port %d; want %s, port %d", name, url, port, test.url, test.port)
		}
	}
}

func TestHostPathFollowsTheDeepestMount(t *testing.T) {
	scheduler := Find(podOf(t, `containers:
- command: [kube-scheduler]
  volumeMounts:
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
`))[0]
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
		if got, found := scheduler.HostPath(containerPath); got != want || found != (want != "") {
			t.Errorf("%s is %q, %t; want %q", containerPath, got, found, want)
		}
	}
	if got, found := (Scheduler{}).HostPath("/a"); found {
		t.Errorf("nothing is mounted, but found %q", got)
	}
}

func TestLease(t *testing.T) {
	const mine = "leaderElection: {resourceName: mine}"
	for name, test := range map[string]struct {
		flags, config, want string
	}{
		"defaults":                           {"", "", "kube-system/kube-scheduler"},
		"configuration":                      {"", mine, "kube-system/mine"},
		"configured namespace":               {"", "leaderElection: {resourceNamespace: second}", "second/kube-scheduler"},
		"a flag overrides it":                {"--leader-elect-resource-name=flag", mine, "kube-system/flag"},
		"the flag of an older release":       {"--lock-object-name=old", "", "kube-system/old"},
		"which a configuration switches off": {"--lock-object-name=old, --config=/c", mine, "kube-system/mine"},
		"no election":                        {"", "leaderElection: {leaderElect: false}", "none"},
		"election by the flag":               {"--leader-elect=true", "leaderElection: {leaderElect: false}", "kube-system/kube-scheduler"},
		"no election by the flag":            {"--leader-elect=false", "", "none"},
	} {
		var config *Config
		if test.config != "" {
			var err error
			if config, err = ReadConfig([]byte(test.config)); err != nil {
				t.Fatal(err)
			}
		}
		got := "none"
		if lease := schedulerOf(t, "command: [kube-scheduler, "+test.flags+"]").Lease(config); lease != nil {
			got = lease.String()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
