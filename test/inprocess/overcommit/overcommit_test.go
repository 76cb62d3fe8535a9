// SPDX-License-Identifier: Apache-2.0

// Package overcommit compares predictors of the plugin Overcommit, and other formulas, by the CPU that overcommitting
// pods gain and the time in which a node has too little, on nodes that are full by requests. The simulator schedules in
// virtual time, so each run gives the same figures.
package overcommit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/overcommit"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// task is the variable with the run of a process of this program.
const task = "OVERCOMMIT_RUN"

// traces is the variable with the folder of the recorded traces, which are not part of the project.
const traces = "TRACES"

// The workloads of runs, beside the generated one: ordinary pods that use CPU as recorded containers used memory, and a
// small one to be calculated by hand.
const (
	recorded = "recorded"
	byHand   = "by hand"
)

// run is one simulation.
type run struct {
	Group, Name string
	// Config is a KubeSchedulerConfiguration, and Formula one of the formulas, with its share.
	Config, Formula string
	Share           float64
	Workload        string
	Nodes           int
	Length          time.Duration
	Seed            uint64
}

// outcome is the result of a run, in percent.
type outcome struct{ Gained, Violated, Excess float64 }

// The process of a run has nothing else to do: the simulator's clock and random source are global.
func TestMain(m *testing.M) {
	text := os.Getenv(task)
	if text == "" {
		os.Exit(m.Run())
	}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	replay.Run(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), func() {
		var r run
		var o outcome
		err := json.Unmarshal([]byte(text), &r)
		if err == nil {
			o, err = r.do()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		json.NewEncoder(os.Stdout).Encode(o)
		os.Exit(0)
	})
}

// do runs a simulation.
func (r run) do() (o outcome, err error) {
	object, version, err := scheme.Codecs.UniversalDecoder().Decode([]byte(r.Config), nil, nil)
	if err != nil {
		return o, err
	}
	config := object.(*schedulerconfig.KubeSchedulerConfiguration)
	config.TypeMeta.APIVersion = version.GroupVersion().String()
	cluster := &input.Cluster{}
	for i := range r.Nodes {
		cluster.Nodes = append(cluster.Nodes, st.MakeNode().Name(nodeName(i)).Label(corev1.LabelHostname, nodeName(i)).
			Capacity(map[corev1.ResourceName]string{"cpu": fmt.Sprint(cores), "memory": "256Gi", "pods": "250"}).Obj())
	}
	g := generator{rand.New(rand.NewPCG(r.Seed, 0)), r.Length}
	// The backlog is the same for all, whenever its pods are placed.
	var pods []input.Event
	backlog := generator{rand.New(rand.NewPCG(r.Seed, 1)), r.Length}.batch
	switch r.Workload {
	case recorded:
		pods, err = g.recorded(r.Nodes, os.Getenv(traces))
	case byHand:
		pods, backlog = g.byHand()
	default:
		pods = g.generate(r.Nodes)
	}
	if err != nil {
		return o, err
	}
	s, err := replay.New(context.Background(), replay.Options{Config: config, Cluster: cluster, Seed: int64(r.Seed), NoPreemption: true,
		Registry: frameworkruntime.Registry{
			formulaName: (&formula{kind: r.Formula, share: r.Share}).new, overcommit.Name: overcommit.Factory(collector.New()),
		}})
	if err != nil {
		return o, err
	}
	var workloads []*input.Workload
	for _, event := range pods {
		workloads = append(workloads, event.Pods)
		s.At(event.At, func() error { return s.Apply(&event) })
	}
	s.Expect(workloads, r.Length)
	created := 0
	for at := time.Second; at < r.Length; at += time.Minute {
		s.At(at, func() error {
			for n := int(s.Current()["pods_pending"]); n < waiting; n++ {
				if err := s.Create(backlog(created)); err != nil {
					return err
				}
				created++
			}
			return nil
		})
	}
	s.At(r.Length, func() error { return nil })
	if err := s.Advance(r.Length, 0, func(time.Duration, int64) {}); err != nil {
		return o, err
	}
	for _, p := range s.Outcome().Pods {
		if p.Node == "" && strings.HasPrefix(p.Name, "default/ordinary-") {
			return o, fmt.Errorf("%s has no node", p.Name)
		}
	}
	into := map[string]*float64{
		"overcommit_gained_percent": &o.Gained, "overcommit_violation_percent": &o.Violated, "overcommit_excess_percent": &o.Excess,
	}
	for _, figure := range s.Outcome().Figures {
		if value := into[figure.Name]; value != nil {
			*value = figure.Value
		}
	}
	return o, nil
}

// start starts a process for a run.
func (r run) start(t *testing.T) (o outcome) {
	text, err := json.Marshal(r)
	if err != nil {
		t.Error(err)
	}
	process := exec.Command(os.Args[0])
	// Memory is cheaper here than collecting it.
	process.Env = append(os.Environ(), task+"="+string(text), "GOGC=800", "GOMAXPROCS=1")
	var stderr bytes.Buffer
	process.Stderr = &stderr
	out, err := process.Output()
	if err == nil {
		err = json.Unmarshal(out, &o)
	}
	if err != nil {
		t.Errorf("%s, seed %d: %v: %s", r.Name, r.Seed, err, stderr.Bytes())
	}
	return o
}

// simulate runs each of the runs with several seeds, and returns their outcomes by name and seed.
func simulate(t *testing.T, seeds int, runs []run) map[string][]outcome {
	outcomes := map[string][]outcome{}
	var all sync.WaitGroup
	free := make(chan bool, runtime.NumCPU())
	for _, r := range runs {
		of := make([]outcome, seeds)
		outcomes[r.Name] = of
		for seed := range seeds {
			r := r
			r.Seed = uint64(seed + 1)
			free <- true
			all.Go(func() {
				of[seed] = r.start(t)
				<-free
			})
		}
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
	return outcomes
}

// TestMaximum verifies with two seeds that Maximum violates no more often than each of its parts, and that a run can be
// repeated. Without headroom there are the most violations, so chance matters least.
func TestMaximum(t *testing.T) {
	var runs []run
	for _, predictor := range []string{"Maximum", "NSigma", "Percentile"} {
		r := predicted(predictor, 0)
		r.Nodes, r.Length = studyNodes, studyLength
		runs = append(runs, r)
	}
	outcomes := simulate(t, 2, runs)
	sum := func(r run) float64 { return outcomes[r.Name][0].Violated + outcomes[r.Name][1].Violated }
	for _, r := range runs {
		t.Logf("%s: %+v", r.Name, outcomes[r.Name])
		if sum(r) < sum(runs[0]) {
			t.Errorf("%s violates more often than %s", runs[0].Name, r.Name)
		}
	}
	again := simulate(t, 1, runs[:1])[runs[0].Name][0]
	if first := outcomes[runs[0].Name][0]; again != first || first.Gained == 0 {
		t.Errorf("%s: got %+v, and then %+v with the same seed", runs[0].Name, first, again)
	}
}

// TestByHand compares the figures of a run with those that a person can calculate.
//
// Two ordinary pods request 8 of a node's 16 cores each, and use 6 together, and from the second of four hours on 10. Of
// 14.4 cores without the headroom, the predicted peak is 6, and in the first hour the requests for the part of the hour
// that lacks. So a pod with 2 cores is placed when that leaves 2, 4, 6 and 8 cores: after 36, 43.5, 51 and 58.5 minutes.
// They stay: then 10 + 8 cores are wanted of 16.
func TestByHand(t *testing.T) {
	r := predicted("Maximum", 10)
	r.Workload, r.Nodes, r.Length = byHand, 1, 4*time.Hour
	got, late := r.start(t), 100*2./16/240 // Of a percent for each minute that a pod is late.
	most := late * (4*240 - 36 - 43.5 - 51 - 58.5)
	if got.Gained > most || got.Gained < most-late*4*2 {
		t.Errorf("%.2f %% gained, want %.2f %%, or as much less as pods that wait two minutes for a measurement", got.Gained, most)
	}
	if math.Abs(got.Violated-50) > 0.2 || math.Abs(got.Excess-12.5) > 0.01 {
		t.Errorf("%.2f %% violated by %.2f %%, want 50 %% by 12.5 %%", got.Violated, got.Excess)
	}
}
