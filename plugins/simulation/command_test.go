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
		fmt.Fprintf(os.Stderr, "error: %s\n", ErrorText(err))
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
		"extender.yaml":    "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nextenders: [{urlPrefix: http://127.0.0.1:1, filterVerb: f}]\n",
		"wrong.yaml":       "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nparalelism: 3\n",
		"pod.yaml":         "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}\n",
		"prices.yaml":      strings.Replace(nodes(1), "node-0", "node-0, labels: {price: NaN}", 1),
		"unknown-node.csv": "time,node,change\n0,no\x1b[31m,add\n",
		"unknown-pod.csv":  "time,name,count,cpu,delete\n0,web,2,1,\n1,,,,default/web-2\n",
		"orphan.json": `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"4","pods":"9"}}},{"metadata":{"name":"new"}}]}
			{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"p"},"spec":{"nodeName":"gone","containers":[{"name":"c"}]},"status":{"phase":"Running"}}]}`,
		"full.yaml":     nodes(1) + placed("web", "ReplicaSet", "node-0", "") + placed("agent", "DaemonSet", "node-0", ""),
		"same.yaml":     "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nparallelism: 3\n",
		"new-node.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: new}\n",
		"large.yaml":    strings.Replace(nodes(1), "cpu: 4, memory: 8Gi, pods: 110", "cpu: 1G, memory: 8Gi, pods: 1G", 1),
		"history.jsonl": `{"history":1,"start":"2026-11-20T10:00:00Z","source":"watch","by":"v1"}
{"time":"0s","change":"add","node":{"metadata":{"name":"n1","labels":{"":"x"}},"status":{"allocatable":{"cpu":"4","pods":"110"}}}}
{"time":"0s","pod":{"metadata":{"namespace":"x","name":"a"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]}},"owner":"ReplicaSet/r","on":"n1"}
{"time":"0s","use":{"cpu":"1"},"of":"x/a"}
{"time":"1m","namespace":"x","name":"b","like":"x/a"}
{"time":"90s","namespace":"x","name":"c","like":"x/a"}
{"time":"2m","change":"add","node":{"metadata":{"name":"n2"},"status":{"allocatable":{"cpu":"4","pods":"110"}}}}
{"time":"2m1s","bound":"x/b","on":"n2"}
{"time":"3m","delete":"x/a"}
{"time":"3m20s","ended":"x/a"}
{"time":"3m21s","bound":"x/c","on":"n1"}
{"time":"4m","gap":"5m","reason":"restart"}
{"time":"1h","last":true}
`,
		"endless.csv": "time,name,count,cpu\n0s,web,1000,100\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "directory.html"), 0o755); err != nil {
		t.Fatal(err)
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
		"table":                   {"--snapshot cluster.yaml --trace trace.csv --config stock --config packed.yaml --seeds 2", 0, "pods placed (pods)", ""},
		"condition holds":         {"--snapshot cluster.yaml --trace trace.csv --fail-if pods_pending>0", 1, "", `--fail-if "pods_pending>0"`},
		"condition does not":      {"--snapshot cluster.yaml --trace trace.csv --fail-if pods_pending>1", 0, "", ""},
		"no such figure":          {"--snapshot cluster.yaml --trace trace.csv --fail-if nothing>1", 2, "", "there are: pods_created"},
		"no condition":            {"--snapshot cluster.yaml --fail-if much", 2, "", "does not have the form"},
		"no snapshot":             {"--trace trace.csv", 2, "", "next: kubectl scheduling snapshot"},
		"no such file":            {"--snapshot none.yaml", 2, "", "none.yaml"},
		"invalid configuration":   {"--snapshot cluster.yaml --config wrong.yaml", 2, "", "paralelism"},
		"extender":                {"--snapshot cluster.yaml --config extender.yaml", 2, "", "extenders: they need the network; next: --extender"},
		"two of one name":         {"--snapshot cluster.yaml --config stock --config stock", 2, "", `two configurations have the name "stock"`},
		"unknown output":          {"--snapshot cluster.yaml --output report.pdf", 2, "", "report.pdf is unknown"},
		"unknown node":            {"drain --snapshot cluster.yaml node-9", 2, "", `no node "node-9"`},
		"unknown zone":            {"lose --snapshot cluster.yaml --zone here", 2, "", `zone "here"`},
		"fit":                     {"fit --snapshot cluster.yaml --pod pod.yaml", 0, "default/web: 4 more fit, on 4 nodes\n  the next one does not: 0/4 nodes are available: 4 Insufficient cpu.", ""},
		"imperfect objects":       {"fit --snapshot orphan.json --pod pod.yaml", 0, "default/web: 1 more fit, on 1 nodes", ""},
		"run with such objects":   {"--snapshot orphan.json --trace trace.csv --for 1h", 0, "Warnings: 2", ""},
		"count of orphans":        {"fit --snapshot orphan.json --pod pod.yaml", 0, "no new pods replace them: 1", ""},
		"warnings beside JSON":    {"fit --snapshot orphan.json --pod pod.yaml --output json", 0, "", "warning: orphan.json:1: Node new has no status.allocatable"},
		"new node without any":    {"grow --snapshot cluster.yaml --node new-node.yaml", 2, "", "node new has no status.allocatable"},
		"check without any pods":  {"check --snapshot cluster.yaml", 0, "No pod of the snapshot was placed by a scheduler.", ""},
		"history":                 {"--trace history.jsonl --config stock --config packed.yaml", 0, "Input: History: 3 pods in 1h0m0s, of which 1 were there at the start, on 1 nodes; 2 were bound, and really waited p50 1m1s, p90 1m51s; 1 gaps of 5m0s in all", ""},
		"history and figures":     {"--trace history.jsonl --output csv --fail-if waiting_p50_seconds>61 --fail-if waiting_p90_seconds<110 --fail-if hot_node_seconds<0", 0, "waiting_p90_seconds,s,stock,1,11", ""},
		"history and snapshot":    {"--trace history.jsonl --snapshot cluster.yaml", 0, "Snapshot: its nodes and pods are those of the history instead", ""},
		"check of a history":      {"check --trace history.jsonl", 0, "100.0 % of 2 pods agree: 2 get their real node again", ""},
		"check of a trace":        {"check --trace trace.csv --snapshot cluster.yaml", 2, "", "--trace trace.csv is not a history"},
		"event of no node":        {"--snapshot cluster.yaml --trace unknown-node.csv", 2, "", "unknown-node.csv:2: the snapshot has no node no\uFFFD[31m; next"},
		"delete of no pod":        {"--snapshot cluster.yaml --trace unknown-pod.csv", 2, "", "unknown-pod.csv:3: no pod default/web-2 was created before; next"},
		"price":                   {"--snapshot cluster.yaml --trace trace.csv --price-label price", 0, "4 nodes have no label price", ""},
		"no price":                {"--snapshot prices.yaml --price-label price", 2, "", "the label price of node node-0 is not a price"},
		"time":                    {"--snapshot cluster.yaml --for -1s", 2, "", "--for and --moment"},
		"time without a trace":    {"--snapshot cluster.yaml --for 1h", 2, "", "next: add --trace, or --pending-only"},
		"pending with a trace":    {"--snapshot cluster.yaml --trace trace.csv --pending-only", 2, "", "next: leave out one of --pending-only and --trace"},
		"placed again":            {"--snapshot full.yaml", 0, "Placed again from empty nodes: 1 pods in the order of their creation; 1 are not: 1 of DaemonSets.\nFIGURE", ""},
		"question placed again":   {"fit --snapshot full.yaml --pod pod.yaml --for-each-configuration", 0, "Placed again from empty nodes: 1 pods in the order of their creation; 1 are not: 1 of DaemonSets.\ndefault/web: 1 more", ""},
		"nothing to place":        {"--snapshot cluster.yaml --config stock --config packed.yaml", 0, "Placed again from empty nodes: 0 pods in the order of their creation. No pod is to be placed, so nothing could differ; next: add --pod FILE or --trace FILE.\n", ""},
		"nothing is pending":      {"--snapshot full.yaml --pending-only", 0, "or leave out --pending-only.\n", ""},
		"same configurations":     {"--snapshot full.yaml --config stock --config same.yaml", 0, "DaemonSets. The configurations are the same, with their defaults, in all that a simulation depends on: nothing could differ.\n", ""},
		"extenders differ":        {"--snapshot full.yaml --config stock --config extender.yaml --extender", 0, "DaemonSets.\nFIGURE", ""},
		"condition on them":       {"--snapshot full.yaml --config stock --config same.yaml --fail-if nodes_used>0", 1, "nothing could differ.\nFIGURE", "nodes_used of stock is 1 > 0"},
		"share":                   {"--snapshot cluster.yaml --hot NaN", 2, "", "--hot is above 0"},
		"limit":                   {"fit --snapshot cluster.yaml --pod pod.yaml --limit 0", 2, "", "--limit is at least 1"},
		"two new nodes":           {"grow --snapshot cluster.yaml --node cluster.yaml", 2, "", "has 4 nodes; next: a file with one Node"},
		"output in no directory":  {"--snapshot cluster.yaml --output none/report.html", 2, "", "next: create its directory"},
		"output is a directory":   {"--snapshot cluster.yaml --output directory.html", 2, "", "is a directory; next: the name"},
		"configuration of a pipe": {"--snapshot cluster.yaml --trace trace.csv --config /dev/stdin", 0, "pods placed (pods)", ""},
	} {
		test := test
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process := command(t, test.arguments)
			var out, failed bytes.Buffer
			process.Stdout, process.Stderr = &out, &failed
			// As a pipe.
			process.Stdin = strings.NewReader("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n")
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

// TestReportFile verifies that two reports have the same bytes.
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
}

// interrupt sends Ctrl-C to a command when the condition holds, and returns its exit code and what it printed.
func interrupt(t *testing.T, process *exec.Cmd, when func() bool) (code int, out, failed string) {
	t.Helper()
	var printed, errors bytes.Buffer
	process.Stdout, process.Stderr = &printed, &errors
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	for !when() {
	}
	if err := process.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	return process.ProcessState.ExitCode(), printed.String(), errors.String()
}

// hasRun returns whether the command has started a run.
func hasRun(process *exec.Cmd) bool {
	children, err := exec.Command("pgrep", "-P", fmt.Sprint(process.Process.Pid)).Output()
	return err == nil && len(children) > 0
}

// TestInterrupt verifies that Ctrl-C ends a simulation that would run for years, that no other one starts, and that all
// formats of the report say so.
func TestInterrupt(t *testing.T) {
	for format, want := range map[string]string{"json": `"incomplete": "interrupted"`, "text": "incomplete", "csv": "incomplete", "html": "incomplete"} {
		process := command(t, "--snapshot cluster.yaml --trace endless.csv --for 200000h --seeds 2 --jobs 1 --output "+format)
		code, out, failed := interrupt(t, process, func() bool { return hasRun(process) })
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: got %d, %s and %.300s", format, code, failed, out)
		}
		var report struct{ Runs []result.Run }
		if format != "json" {
			continue
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Runs) != 2 || report.Runs[0].Figures == nil ||
			report.Runs[0].Incomplete == "" || report.Runs[1].Seed != 2 || report.Runs[1].Figures != nil || report.Runs[1].Incomplete == "" {
			t.Errorf("want an incomplete run, and one that has not begun, got %v: %.300s", err, out)
		}
	}
}

// TestInterruptWithoutReport verifies that Ctrl-C leaves no files while the input is read, and ends a question.
func TestInterruptWithoutReport(t *testing.T) {
	process := command(t, "--snapshot - --output report.json")
	if _, err := process.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	temporary := func() int {
		files, _ := filepath.Glob(filepath.Join(process.Dir, ".simulation-*"))
		return len(files)
	}
	code, _, failed := interrupt(t, process, func() bool { return temporary() > 0 })
	if code != 2 || failed != "error: interrupted\n" || temporary() != 0 {
		t.Errorf("reading: got %d, %s, %d files", code, failed, temporary())
	}
	process = command(t, "fit --snapshot large.yaml --pod pod.yaml --limit 1000000000")
	code, out, failed := interrupt(t, process, func() bool { return hasRun(process) })
	if code != 2 || failed != "error: interrupted\n" || out != "" {
		t.Errorf("a question: got %d, %s and %s", code, failed, out)
	}
}
