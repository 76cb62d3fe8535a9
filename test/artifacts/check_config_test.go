// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// logged is the begin of a line in a log, with the time and the process.
var logged = regexp.MustCompile(`E\d{4} [\d:.]+ +\d+ `)

// TestCheckOfAConfigurationAlone verifies that kube-scheduler-swap check, in a directory like that of the release bundle
// and on a machine that is no node, prints what the scheduler prints itself.
func TestCheckOfAConfigurationAlone(t *testing.T) {
	bundle := t.TempDir()
	program, config := filepath.Join(bundle, "kube-scheduler-swap"), filepath.Join(bundle, "config.yaml")
	if said, err := run(t, "go", "build", "-o", program, "kube-scheduler-fork/build/cmd/kube-scheduler-swap"); err != nil {
		t.Fatal(err, said)
	}
	if said, err := run(t, program, "check", "--config", config); err == nil || !strings.Contains(said, "or name it with --archive") {
		t.Errorf("without an archive: %v, %s", err, said)
	}
	if err := os.Symlink(archive, filepath.Join(bundle, "kube-scheduler.tar")); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ config, want string }{
		"valid":   {"profiles: [{schedulerName: mine}]", "profile mine: the default plugins\nnote: no profile is named default-scheduler"},
		"invalid": {"paralelism: 3\nparallelism: -1", "error: paralelism: unknown field"},
		"with a warning": {"profiles: [{plugins: {score: {enabled: [{name: NodeLoad}]}}, pluginConfig: [{name: NodeLoad, args: " +
			"{prometheus: {endpoints: ['http://127.0.0.1:1']}}}]}]", "warning: "},
	} {
		content := "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n" + test.config + "\n"
		if err := os.WriteFile(config, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		// Exit codes are in the errors.
		want, failed := run(t, scheduler, "--config", config, "--validate-config")
		said, err := run(t, program, "check", "--config", config)
		about, said, _ := strings.Cut(said, "\n")
		if logged.ReplaceAllString(said, "") != logged.ReplaceAllString(want, "") || fmt.Sprint(err) != fmt.Sprint(failed) ||
			!strings.Contains(said, test.want) || !strings.HasPrefix(about, "only the configuration is checked, by ") {
			t.Errorf("%s: %v\n%s\n%s\nwant %q in\n%v\n%s", name, err, about, said, test.want, failed, want)
		}
	}
}
