// SPDX-License-Identifier: Apache-2.0

// Package control compares the scheduler of `make control` with upstream's: they differ only in how they were built.
package control

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// programs are the two schedulers, stock Kubernetes' first.
func programs(t *testing.T) [2]string {
	return [2]string{cluster.Program(t, "STOCK_SCHEDULER"), cluster.Program(t, "CONTROL_SCHEDULER")}
}

// same compares what a function returns for both schedulers, line by line.
func same(t *testing.T, of func(program string) string) {
	t.Helper()
	both := programs(t)
	stock, control := strings.Split(of(both[0]), "\n"), strings.Split(of(both[1]), "\n")
	if len(stock) < 10 {
		t.Errorf("the stock scheduler has only %q", stock)
	}
	for _, line := range stock {
		if !slices.Contains(control, line) {
			t.Errorf("only stock: %s", line)
		}
	}
	for _, line := range control {
		if !slices.Contains(stock, line) {
			t.Errorf("only control: %s", line)
		}
	}
}

func run(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, arguments, err, output)
	}
	return string(output)
}

func TestFlags(t *testing.T) {
	same(t, func(program string) string { return run(t, program, "--help") })
}

func TestDefaultConfiguration(t *testing.T) {
	kubeconfig := shared.Get(t).Kubeconfig()
	same(t, func(program string) string {
		file := filepath.Join(t.TempDir(), "config.yaml")
		run(t, program, "--kubeconfig", kubeconfig, "--secure-port=0", "--write-config-to", file)
		return cluster.Read(t, file)
	})
}

var metricType = regexp.MustCompile(`(?m)^# TYPE .*$`)

func TestMetrics(t *testing.T) {
	config := cluster.WriteConfig(t, "")
	same(t, func(program string) (metrics string) {
		t.Run(filepath.Base(filepath.Dir(program)), func(t *testing.T) {
			c := shared.Get(t)
			c.AddNodes(t, 3)
			scheduler := c.StartScheduler(t, program, config)
			c.AwaitBound(t, c.CreatePod(t, localcluster.NewPod("first", "")))
			page, err := c.Get(t.Context(), scheduler.URL()+"/metrics")
			if err != nil {
				t.Fatal(err)
			}
			metrics = strings.Join(metricType.FindAllString(string(page), -1), "\n")
		})
		return metrics
	})
}

// TestPluginsOfTheForkAreRefused asks as kube-scheduler-swap check does.
func TestPluginsOfTheForkAreRefused(t *testing.T) {
	kubeconfig := shared.Get(t).Kubeconfig()
	for plugins, want := range map[string]string{
		"{}":                                     "",
		"{score: {enabled: [{name: NodeLoad}]}}": `ScorePlugin \"NodeLoad\" does not exist`,
	} {
		config := cluster.WriteConfig(t, "clientConnection: {kubeconfig: "+kubeconfig+"}\nprofiles: [{plugins: "+plugins+"}]\n")
		output, err := exec.CommandContext(context.Background(), programs(t)[1], "--config", config, "--secure-port=0", "--write-config-to=/dev/null").CombinedOutput()
		var failed *exec.ExitError
		if errors.As(err, &failed) != (want != "") || !strings.Contains(string(output), want) {
			t.Errorf("%s: %v, %s", plugins, err, output)
		}
	}
}
