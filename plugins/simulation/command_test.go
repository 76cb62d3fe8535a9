// SPDX-License-Identifier: Apache-2.0

//go:debug default=go1.27
//go:debug randseednop=0

package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// The tests run the command in a process, which starts others.
func TestMain(m *testing.M) {
	if os.Getenv("SIMULATE") == "" {
		os.Exit(m.Run())
	}
	err := NewCommand(nil).Execute()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
	}
	os.Exit(ExitCode(err))
}

// command returns the command, in a directory with the files, which are named by their extension.
func command(t *testing.T, arguments string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"cluster.yaml": nodes(4),
		"trace.csv":    "time,name,count,cpu,duration\n0s,web,6,1,5m\n1m,big,3,3,10m\n2m,huge,1,5,1m\n",
		"packed.yaml": `
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
`,
		"wrong.yaml":  "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nparalelism: 3\n",
		"pod.yaml":    "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}\n",
		"endless.csv": "time,name,count,cpu\n0s,web,1000,100\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	process := exec.Command(os.Args[0], strings.Fields(arguments)...)
	process.Dir = dir
	// What a run leaves in the directory for temporary files fails the test.
	temporary := t.TempDir()
	process.Env = append(os.Environ(), "SIMULATE=yes", "TMPDIR="+temporary)
	t.Cleanup(func() {
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Errorf("the command left files: %v, %v", left, err)
		}
	})
	return process
}

func nodes(n int) string {
	var text strings.Builder
	for i := 0; i < n; i++ {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Node\nmetadata: {name: node-%d}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}\n---\n", i)
	}
	return text.String()
}

// TestCommand verifies exit codes and texts.
func TestCommand(t *testing.T) {
	for name, test := range map[string]struct {
		arguments  string
		code       int
		out, error string
	}{
		"table":                  {"--snapshot cluster.yaml --trace trace.csv --config stock --config packed.yaml --seeds 2", 0, "pods placed (pods)", ""},
		"condition holds":        {"--snapshot cluster.yaml --trace trace.csv --fail-if pods_pending>0", 1, "", `--fail-if "pods_pending>0"`},
		"condition does not":     {"--snapshot cluster.yaml --trace trace.csv --fail-if pods_pending>1", 0, "", ""},
		"no such figure":         {"--snapshot cluster.yaml --trace trace.csv --fail-if nothing>1", 2, "", "there are: pods_created"},
		"no condition":           {"--snapshot cluster.yaml --fail-if much", 2, "", "does not have the form"},
		"no snapshot":            {"--trace trace.csv", 2, "", "next: kubectl scheduling snapshot"},
		"no such file":           {"--snapshot none.yaml", 2, "", "none.yaml"},
		"invalid configuration":  {"--snapshot cluster.yaml --config wrong.yaml", 2, "", "paralelism"},
		"two of one name":        {"--snapshot cluster.yaml --config stock --config stock", 2, "", `two configurations have the name "stock"`},
		"unknown output":         {"--snapshot cluster.yaml --output report.pdf", 2, "", "report.pdf is unknown"},
		"unknown node":           {"drain --snapshot cluster.yaml node-9", 2, "", `no node "node-9"`},
		"unknown zone":           {"lose --snapshot cluster.yaml --zone here", 2, "", `zone "here"`},
		"fit":                    {"fit --snapshot cluster.yaml --pod pod.yaml", 0, "default/web: 4 more fit, on 4 nodes\n  the next one does not: 0/4 nodes are available: 4 Insufficient cpu.", ""},
		"check without any pods": {"check --snapshot cluster.yaml", 0, "100.0 % of 0 pods agree", ""},
	} {
		test := test
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process := command(t, test.arguments)
			var out, failed bytes.Buffer
			process.Stdout, process.Stderr = &out, &failed
			_ = process.Run()
			if code := process.ProcessState.ExitCode(); code != test.code {
				t.Errorf("the exit code is %d, want %d", code, test.code)
			}
			if !strings.Contains(out.String(), test.out) || !strings.Contains(failed.String(), test.error) || test.error == "" && failed.Len() > 0 {
				t.Errorf("got\n%s\n%s\nwant %q and %q", out.String(), failed.String(), test.out, test.error)
			}
		})
	}
}

// TestReportFile verifies that two reports have the same bytes, and that a directory without rights is reported before
// the simulation.
func TestReportFile(t *testing.T) {
	var reports [][]byte
	for i := 0; i < 2; i++ {
		process := command(t, "--snapshot cluster.yaml --trace trace.csv --config stock --config packed.yaml --output report.html")
		if printed, err := process.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, printed)
		}
		content, err := os.ReadFile(filepath.Join(process.Dir, "report.html"))
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, content)
	}
	if !bytes.Equal(reports[0], reports[1]) {
		t.Error("two reports of the same input differ")
	}
	process := command(t, "--snapshot cluster.yaml --output none/report.html")
	if printed, err := process.CombinedOutput(); err == nil || !strings.Contains(string(printed), "none") {
		t.Errorf("got %v: %s", err, printed)
	}
}

// TestInterrupt verifies that Ctrl-C ends a simulation that would run for years, and that its report says so.
func TestInterrupt(t *testing.T) {
	process := command(t, "--snapshot cluster.yaml --trace endless.csv --for 200000h --output json")
	var out bytes.Buffer
	process.Stdout = &out
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	// The command starts the run only when it handles signals.
	for ended := false; !ended; {
		children, err := exec.Command("pgrep", "-P", fmt.Sprint(process.Process.Pid)).Output()
		ended = err == nil && len(children) > 0
	}
	if err := process.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Fatal(err)
	}
	var report struct{ Runs []result.Run }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Runs) != 1 || report.Runs[0].Incomplete == "" {
		t.Errorf("want one run that is incomplete, got %v: %.300s", err, out.String())
	}
}
