// SPDX-License-Identifier: Apache-2.0

// Package openb simulates OpenB, the nodes and pods of a production cluster that were published with the paper "Beware
// of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (FGD, USENIX ATC 2023). The
// paper's figures for two of its schedulers show that the simulator is right. docs/simulate.md has those of ten seeds, and of
// configurations of Kubernetes.
package openb

import (
	"math"
	"os"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
)

const (
	// openB is the variable with the directory of the lists.
	openB = "OPENB"
	// seed is the first of the paper's.
	seed = 42
	// config is that of the paper's schedulers, with the plugin of this test.
	config = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
profiles:
  - plugins:
      filter: {enabled: [{name: GPUSharing}]}
      reserve: {enabled: [{name: GPUSharing}]}
      # All pods have the same priority.
      postFilter: {disabled: [{name: "*"}]}
      score: {disabled: [{name: "*"}], enabled: [{name: GPUSharing}]}
`
)

func TestMain(m *testing.M) {
	if !replay.IsChild() {
		os.Exit(m.Run())
	}
	var r run
	start := func() (time.Time, error) { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), nil }
	replay.Serve(&r, start, func(replay.Progress) (any, error) { return r.do() })
}

// TestOneSeed compares one seed of each policy with the published mean and deviation.
func TestOneSeed(t *testing.T) {
	if os.Getenv(openB) == "" {
		t.Skipf("NOT CHECKED: the traces are not part of this repository; "+
			"next: set %s to the directory with openb_node_list_all_node.csv and openb_pod_list_default.csv", openB)
	}
	allocated := map[string]float64{}
	t.Run("runs", func(t *testing.T) {
		for policy, want := range map[string]struct{ mean, deviation float64 }{randomPolicy: {87.47, 0.30}, bestFit: {93.08, 0.13}} {
			got := new(float64)
			t.Cleanup(func() { allocated[policy] = *got })
			t.Run(policy, func(t *testing.T) {
				t.Parallel()
				// Memory is cheaper here than collecting it.
				if err := (replay.Process{Environment: []string{"GOGC=400"}}).Do(t.Context(), run{policy, seed}, got); err != nil {
					t.Fatal(err)
				}
				if math.Abs(*got-want.mean) > 4*want.deviation {
					t.Errorf("%.2f %% of the GPUs are allocated; want %.2f ± %.2f", *got, want.mean, 4*want.deviation)
				}
			})
		}
	})
	if allocated[bestFit]-allocated[randomPolicy] < 3 {
		t.Errorf("BestFit allocates %.2f %% of the GPUs and Random %.2f %%; want 3 points more", allocated[bestFit], allocated[randomPolicy])
	}
}
