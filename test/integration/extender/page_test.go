// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"kube-scheduler-fork/test/cluster"
)

// page is the documentation with the commands that create certificates.
const page = "../../../docs/extender.md"

// TestCertificatesMadeAsThePageSays checks that a scheduler and an
// extender authenticate each other by these certificates.
func TestCertificatesMadeAsThePageSays(t *testing.T) {
	var commands []string
	for line := range strings.Lines(cluster.Read(t, page)) {
		if command, is := strings.CutPrefix(line, "openssl "); is {
			commands = append(commands, "openssl "+strings.TrimSpace(command))
		}
	}
	if len(commands) != 3 {
		t.Fatalf("%s has %d commands that begin with openssl, want 3: for the authority, the extender and the scheduler", page, len(commands))
	}
	if _, err := exec.LookPath("openssl"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("openssl is not installed; next: apt-get install openssl")
	}
	c := newStand(t)
	c.certificates = t.TempDir()
	for _, command := range commands {
		made := exec.CommandContext(t.Context(), "sh", "-c", command)
		made.Dir = c.certificates
		if output, err := made.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, output)
		}
	}
	c.startScheduler(t)
	c.startExtender(t, plugins)
	c.expectSSD(t, c.createPods(t, 2)...)
}
