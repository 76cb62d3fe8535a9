// SPDX-License-Identifier: Apache-2.0

// Package openb simulates OpenB, the nodes and pods of a production cluster that were published with the paper "Beware
// of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (FGD, USENIX ATC 2023). The
// paper's figures for two of its schedulers show that the simulator is right.
package openb

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
	"kube-scheduler-fork/test/inprocess/table"
)

const (
	// openB is the variable with the directory of the lists.
	openB = "OPENB"
	// header begins a configuration.
	header = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
	// firstSeed and seeds are those of the paper.
	firstSeed, seeds = 42, 10
)

// allocatedAt and fragmentedAt are the percentages of arrived requests at which figures are published.
var allocatedAt, fragmentedAt = []int{80, 95, 100, 130}, []int{50, 100, 130}

func TestMain(m *testing.M) {
	if !replay.IsChild() {
		os.Exit(m.Run())
	}
	var r run
	start := func() (time.Time, error) { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), nil }
	replay.Serve(&r, start, func(replay.Progress) (any, error) { return r.do() })
}

// simulate runs each of the runs with several seeds, and returns their outcomes by name.
func simulate(t *testing.T, count int, runs ...run) map[string][]outcome {
	t.Helper()
	if os.Getenv(openB) == "" {
		t.Skipf("NOT CHECKED: the traces are not part of this repository; "+
			"next: set %s to the directory with openb_node_list_all_node.csv and openb_pod_list_default.csv", openB)
	}
	outcomes, mutex := map[string][]outcome{}, sync.Mutex{}
	t.Run("runs", func(t *testing.T) {
		for _, r := range runs {
			for i := range count {
				seeded := r
				seeded.Seed = firstSeed + uint64(i)
				t.Run(fmt.Sprint(r.Name, " ", seeded.Seed), func(t *testing.T) {
					t.Parallel()
					o := seeded.start(t)
					mutex.Lock()
					defer mutex.Unlock()
					outcomes[r.Name] = append(outcomes[r.Name], o)
				})
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return outcomes
}

// start starts a process for a run.
func (r run) start(t *testing.T) (o outcome) {
	t.Helper()
	began := time.Now()
	// Memory is cheaper here than collecting it.
	if err := (replay.Process{Environment: []string{"GOGC=400"}}).Do(t.Context(), r, &o); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pods in %.1f s", o.Pods, time.Since(began).Seconds())
	return o
}

// figures returns a run's figures, in the order of the columns.
func (o outcome) figures() (figures []float64) {
	for _, percent := range allocatedAt {
		figures = append(figures, o.Allocated[percent])
	}
	for _, percent := range fragmentedAt {
		figures = append(figures, o.Fragmented[percent])
	}
	return append(figures, o.Waits, o.Large)
}

// show prints the means of figures with their deviations, and returns the means by name.
func show(t *testing.T, title string, outcomes map[string][]outcome, order ...run) map[string][]float64 {
	t.Helper()
	columns, means := []string{title}, map[string][]float64{}
	for _, percent := range allocatedAt {
		columns = append(columns, fmt.Sprint("allocated at ", percent))
	}
	for _, percent := range fragmentedAt {
		columns = append(columns, fmt.Sprint("fragmented at ", percent))
	}
	columns = append(columns, "allocated when a pod with GPUs first waits", "pods with 8 GPUs placed")
	table.Log(t, "percent of all GPUs, when requests of so many percent have arrived", columns, func(row func(cells ...any)) {
		for _, r := range order {
			cells, of := []any{r.Name}, outcomes[r.Name]
			for i := range columns[1:] {
				sum, squares := 0.0, 0.0
				for _, o := range of {
					sum += o.figures()[i]
					squares += o.figures()[i] * o.figures()[i]
				}
				n := float64(len(of))
				means[r.Name] = append(means[r.Name], sum/n)
				deviation := math.Sqrt(max(0, squares-sum*sum/n) / (n - 1))
				cells = append(cells, fmt.Sprintf("%.2f ± %.2f", sum/n, deviation))
			}
			row(cells...)
			if of, known := published[r.Name]; known {
				cells = []any{"published"}
				for _, figure := range of.means {
					cells = append(cells, fmt.Sprintf("%.2f", figure))
				}
				row(append(cells, "", "")...)
			}
		}
	})
	return means
}

// published are the paper's means of ten seeds, in the order of outcome.figures, and the deviation at 130.
var published = map[string]paperFigures{
	randomPolicy: {[]float64{78.66, 85.72, 86.30, 87.47, 15.10, 13.49, 12.43}, 0.30},
	bestFit:      {[]float64{80.02, 92.82, 92.86, 93.08, 10.81, 7.05, 6.85}, 0.13},
}

type paperFigures struct {
	means     []float64
	deviation float64
}

// at100 and at130 are indices of figures.
const at100, at130 = 2, 3

// policies are the paper's, with the plugin of this test.
func policies() (runs []run) {
	for _, name := range []string{randomPolicy, bestFit} {
		runs = append(runs, run{Name: name, Config: header + `percentageOfNodesToScore: 100
profiles:
  - plugins:
      filter: {enabled: [{name: GPUSharing}]}
      reserve: {enabled: [{name: GPUSharing}]}
      # All pods have the same priority.
      postFilter: {disabled: [{name: "*"}]}
      score: {disabled: [{name: "*"}], enabled: [{name: GPUSharing}]}
`})
	}
	return runs
}

// TestOneSeed compares one seed with the published mean and deviation.
func TestOneSeed(t *testing.T) {
	outcomes := simulate(t, 1, policies()...)
	at := map[string]float64{}
	for name, of := range outcomes {
		at[name] = of[0].Allocated[arriving]
		want := published[name]
		if math.Abs(at[name]-want.means[at130]) > 4*want.deviation {
			t.Errorf("%s allocates %.2f %% of the GPUs; want %.2f ± %.2f",
				name, at[name], want.means[at130], 4*want.deviation)
		}
	}
	if at[bestFit]-at[randomPolicy] < 3 {
		t.Errorf("BestFit allocates %.2f %% of the GPUs and Random %.2f %%; want 3 points more", at[bestFit], at[randomPolicy])
	}
}

// TestPublished compares ten seeds with the published means.
func TestPublished(t *testing.T) {
	runs := policies()
	means := show(t, "policy", simulate(t, seeds, runs...), runs...)
	for _, i := range []int{at100, at130} {
		for name, got := range means {
			if want := published[name].means[i]; math.Abs(got[i]-want) > 0.5 {
				t.Errorf("%s allocates %.2f %% of the GPUs at %d %%; want %.2f ± 0.5", name, got[i], allocatedAt[i], want)
			}
		}
		if means[randomPolicy][i] >= means[bestFit][i] {
			t.Errorf("Random allocates as much as BestFit at %d %%", allocatedAt[i])
		}
	}
}

// weighted scores by requested to capacity, the fuller the better.
const weighted = header + `profiles:
  - pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: RequestedToCapacityRatio
            resources: [{name: nvidia.com/gpu, weight: 5}, {name: cpu, weight: 1}, {name: memory, weight: 1}]
            requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
`

// TestConfigurations compares configurations on the pods without parts of GPUs, which Kubernetes 1.23 cannot express.
func TestConfigurations(t *testing.T) {
	for title, allNodes := range map[string]bool{"all nodes": true, "nodes with GPUs": false} {
		t.Run(title, func(t *testing.T) {
			runs := []run{
				{Name: "LeastAllocated (stock)", Config: header},
				{Name: "MostAllocated (bin-packing.yaml)", Config: manifest(t, "bin-packing.yaml")},
				{Name: "RequestedToCapacityRatio", Config: weighted},
				{Name: "gpu.yaml", Config: manifest(t, "gpu.yaml")},
			}
			for i := range runs {
				runs[i].AllNodes = allNodes
			}
			means := show(t, title, simulate(t, seeds, runs...), runs...)
			waits := len(allocatedAt) + len(fragmentedAt)
			if packed, stock := means["gpu.yaml"][waits], means[runs[0].Name][waits]; packed < 2*stock || packed < 90 {
				t.Errorf("with gpu.yaml %.2f %% of the GPUs are allocated when a pod with GPUs first waits, by default %.2f %%; "+
					"want twice as many, and 90 %%", packed, stock)
			}
		})
	}
}

// manifest reads a configuration of manifests/config.
func manifest(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "manifests", "config", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
