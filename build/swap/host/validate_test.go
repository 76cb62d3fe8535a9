// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

// ask makes a script check the command line of a pod, in place of a scheduler.
func ask(t *testing.T, script string, pod *manifest.Pod, config string) (*schedulerpod.Config, []string, error) {
	t.Helper()
	folder := t.TempDir()
	binary := swaptest.Put(t, filepath.Join(folder, "kube-scheduler"), "#!/bin/sh\n"+script)
	asked := Scheduler{Binary: binary, Folder: folder, Run: (*exec.Cmd).Run}
	return asked.Validate(context.Background(), pod, []byte(config))
}

func TestASchedulerIsAskedWithItsOwnCheck(t *testing.T) {
	pod := swaptest.PodWith(t, "--config=/in/the/container.yaml")
	config, warnings, err := ask(t, `for last; do :; done
[ "$last" = --validate-config ] && [ "${2#--config=}" = /in/the/container.yaml ] || exit 1
echo "x is valid"; echo "warning: no answer"; echo "note: the file has more than one YAML document: only the first is read"
echo "note: with --config, the flag --kubeconfig is ignored; set clientConnection.kubeconfig"
echo "note: clientConnection.kubeconfig is not to be found on this machine: x"
echo "note: no profile is named default-scheduler: pods that name no scheduler stay Pending"`, pod, "leaderElection: {resourceName: mine}\nprofiles: [{schedulerName: a}, {}]\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := config.SchedulerNames(); !slices.Equal(got, []string{"a", corev1.DefaultSchedulerName}) {
		t.Errorf("its profiles are %q", got)
	}
	if got := pod.Lease(config); *got != (schedulerpod.Lease{Namespace: "kube-system", Name: "mine"}) {
		t.Errorf("its lease is %v", got)
	}
	if !slices.Equal(warnings, []string{"no answer", "the file has more than one YAML document: only the first is read"}) {
		t.Errorf("its warnings and notes are %q", warnings)
	}
}

func TestWithoutAConfigurationTheFlagsCount(t *testing.T) {
	pod := swaptest.PodWith(t, "--lock-object-name=old", "--kubeconfig=/other.conf")
	config, _, err := ask(t, "exit 0", pod, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := config.SchedulerNames(); !slices.Equal(got, []string{corev1.DefaultSchedulerName}) || config.ClientConnection.Kubeconfig != "/other.conf" {
		t.Errorf("its profiles are %q, its kubeconfig %s", got, config.ClientConnection.Kubeconfig)
	}
	if got := pod.Lease(config); *got != (schedulerpod.Lease{Namespace: "kube-system", Name: "old"}) {
		t.Errorf("its lease is %v", got)
	}
}

func TestAWrapperIsNotAskedFor(t *testing.T) {
	pod := swaptest.PodOf(t, swaptest.Get(t, "../manifest/testdata/log-runner/before.yaml"))
	if _, _, err := ask(t, `[ "$*" = "--kubeconfig=/etc/kubernetes/scheduler.conf --validate-config" ]`, pod, ""); err != nil {
		t.Error(err)
	}
}

// TestAControlIsAskedAsStock uses what a stock scheduler prints.
func TestAControlIsAskedAsStock(t *testing.T) {
	asked := func(script string) error {
		folder := t.TempDir()
		binary := swaptest.Put(t, filepath.Join(folder, "kube-scheduler"), "#!/bin/sh\n"+script)
		control := Scheduler{Binary: binary, Folder: folder, Run: (*exec.Cmd).Run, Control: IsControl("v1.23.17+control.0123456789ab")}
		_, _, err := control.Validate(context.Background(), swaptest.PodWith(t, "--config=/in/the/container.yaml"), []byte("profiles: [{}]\n"))
		return err
	}
	if err := asked(`case "$*" in *" --secure-port=0 --write-config-to=/dev/null") ;; *) exit 1 ;; esac`); err != nil {
		t.Error(err)
	}
	err := asked(`echo 'E1126 run.go:74] "command failed" err="couldn'"'"'t create scheduler: initializing profiles: creating profile for scheduler name mine: PreFilterPlugin \"NodeLoad\" does not exist"' >&2; exit 1`)
	if err == nil || !strings.HasPrefix(err.Error(), "it is stock Kubernetes, and has no plugin NodeLoad, which the configuration enables") {
		t.Error(err)
	}
}

func TestARefusalSaysWhy(t *testing.T) {
	for name, c := range map[string]struct{ script, what, next string }{
		"errors": {`echo "error: profiles[0]: one" >&2; echo "error: profiles[1]: two" >&2; echo "E1122 command failed" >&2; exit 1`,
			"profiles[0]: one\n    profiles[1]: two", "otherwise"},
		"a scheduler without the flag": {`echo "Usage:" >&2; echo "Error: unknown flag: --validate-config" >&2; exit 1`,
			"it has no flag --validate-config", "kube-scheduler-swap rollback"},
		"a file that its pod does not see": {`echo "x is valid"; echo "note: extenders[0].tlsConfig.caFile is not to be found on this machine: stat /a"`,
			"extenders[0].tlsConfig.caFile is not visible in its pod: stat /a", "or add --mount with its directory"},
		"a crash": {`echo "panic: x" >&2; exit 2`, "its check failed with exit status 2: panic: x", "otherwise"},
	} {
		_, _, err := ask(t, c.script, swaptest.PodWith(t), "")
		if err == nil {
			t.Errorf("%s: it is accepted", name)
			continue
		}
		if what, next := nextstep.Split(err, "otherwise"); !strings.HasPrefix(what, c.what) || !strings.HasSuffix(next, c.next) {
			t.Errorf("%s: %q, %q", name, what, next)
		}
	}
}

func TestASchedulerIsAskedForItsFlags(t *testing.T) {
	for script, want := range map[string]bool{
		`[ "$*" = --help ] && echo "      --informer-sync-timeout duration   The time"`: true,
		`echo "      --informer-sync-timeout-old duration"`:                             false,
		`echo "      --informer-sync-timeout duration"; exit 1`:                         false,
	} {
		folder := t.TempDir()
		asked := Scheduler{Binary: swaptest.Put(t, filepath.Join(folder, "kube-scheduler"), "#!/bin/sh\n"+script), Folder: folder, Run: (*exec.Cmd).Run}
		if got := asked.HasFlag(t.Context(), "informer-sync-timeout"); got != want {
			t.Errorf("%s: %v, want %v", script, got, want)
		}
	}
}

func TestWhatTheSchedulerSaysIsPassedOn(t *testing.T) {
	var said strings.Builder
	folder := t.TempDir()
	asked := Scheduler{Binary: swaptest.Put(t, filepath.Join(folder, "kube-scheduler"), "#!/bin/sh\necho valid; echo failed >&2; exit 1"), Folder: folder, Run: (*exec.Cmd).Run, Said: &said}
	if _, _, err := asked.Validate(t.Context(), swaptest.PodWith(t), nil); err == nil || said.String() != "valid\nfailed\n" {
		t.Errorf("%v, and it says %q", err, &said)
	}
}
