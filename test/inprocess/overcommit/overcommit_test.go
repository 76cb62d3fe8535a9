// SPDX-License-Identifier: Apache-2.0

// Package overcommit compares predictors of the plugin Overcommit by the CPU that overcommitting pods gain and the time in
// which a node has too little, on nodes that are full by requests. The simulator schedules in virtual time, so each run
// has the same figures. docs/overcommit.md has the figures of all predictors and of other formulas.
package overcommit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// header is a configuration with what the runs need. Pods that wait are tried again once in half a minute.
const header = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 30
podMaxBackoffSeconds: 30
profiles:
- plugins:
    multiPoint: {enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: Overcommit}], disabled: [{name: "*"}]}
    preFilter: {enabled: [{name: NodeResourcesFit}, {name: NodeAffinity}]}
    filter: {enabled: [{name: NodeResourcesFit}, {name: NodeAffinity}]}
  pluginConfig:
  - {name: NodeResourcesFit, args: {ignoredResourceGroups: [overcommit.scheduler]}}
`

// run is one simulation of a predictor. ByHand has the small workload that can be calculated by hand, not the generated
// one.
type run struct {
	Predictor string
	Headroom  int
	ByHand    bool
	Nodes     int
	Length    time.Duration
	Seed      uint64
}

func (r run) config() string {
	return header + fmt.Sprintf("  - {name: Overcommit, args: {%s, predictor: %s, headroomPercent: %d}}\n",
		`prometheus: {endpoints: ["http://prometheus.invalid"]}`, r.Predictor, r.Headroom)
}

// outcome is the result of a run, in percent.
type outcome struct{ Gained, Violated, Excess float64 }

func TestMain(m *testing.M) {
	if !replay.IsChild() {
		os.Exit(m.Run())
	}
	var r run
	start := func() (time.Time, error) { return time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), nil }
	replay.Serve(&r, start, func(replay.Progress) (any, error) { return r.do() })
}

// do runs a simulation.
func (r run) do() (o outcome, err error) {
	object, version, err := scheme.Codecs.UniversalDecoder().Decode([]byte(r.config()), nil, nil)
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
	pods, backlog := []input.Event(nil), generator{rand.New(rand.NewPCG(r.Seed, 1)), r.Length}.batch
	if r.ByHand {
		pods, backlog = g.byHand()
	} else {
		pods = g.generate(r.Nodes)
	}
	s, err := replay.New(context.Background(), replay.Options{Config: config, Cluster: cluster, Seed: int64(r.Seed), NoPreemption: true,
		Registry: frameworkruntime.Registry{overcommit.Name: overcommit.Factory(collector.New())}})
	if err != nil {
		return o, err
	}
	var workloads []*input.Workload
	for _, event := range pods {
		workloads = append(workloads, event.Pods)
		s.At(event.At, func() { s.Apply(&event) })
	}
	s.Expect(workloads, r.Length)
	created := 0
	for at := time.Second; at < r.Length; at += time.Minute {
		s.At(at, func() {
			for n := int(s.Current()["pods_pending"]); n < waiting; n++ {
				s.Create(backlog(created))
				created++
			}
		})
	}
	s.At(r.Length, func() {})
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
	// Memory is cheaper here than collecting it.
	if err := (replay.Process{Environment: []string{"GOGC=800"}}).Do(t.Context(), r, &o); err != nil {
		t.Errorf("%s, seed %d: %v", r.Predictor, r.Seed, err)
	}
	return o
}

// simulate runs each of the runs with several seeds, and returns their outcomes by predictor and seed.
func simulate(t *testing.T, seeds int, runs []run) map[string][]outcome {
	outcomes := map[string][]outcome{}
	var all sync.WaitGroup
	free := make(chan bool, runtime.NumCPU())
	for _, r := range runs {
		of := make([]outcome, seeds)
		outcomes[r.Predictor] = of
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
		runs = append(runs, run{Predictor: predictor, Nodes: 6, Length: 24 * time.Hour})
	}
	outcomes := simulate(t, 2, runs)
	sum := func(r run) float64 { return outcomes[r.Predictor][0].Violated + outcomes[r.Predictor][1].Violated }
	for _, r := range runs {
		t.Logf("%s: %+v", r.Predictor, outcomes[r.Predictor])
		if sum(r) < sum(runs[0]) {
			t.Errorf("%s violates more often than %s", runs[0].Predictor, r.Predictor)
		}
	}
	again := simulate(t, 1, runs[:1])[runs[0].Predictor][0]
	if first := outcomes[runs[0].Predictor][0]; again != first || first.Gained == 0 {
		t.Errorf("%s: got %+v, and then %+v with the same seed", runs[0].Predictor, first, again)
	}
}

// TestByHand compares the figures of a run with those that a person can calculate.
//
// Two ordinary pods request 8 of a node's 16 cores each, and use 6 together, and from the second of four hours on 10. Of
// 14.4 cores without the headroom, the predicted peak is 6, and in the first hour the requests for the part of the hour
// that lacks. So a pod with 2 cores is placed when that leaves 2, 4, 6 and 8 cores: after 36, 43.5, 51 and 58.5 minutes.
// They stay: then 10 + 8 cores are wanted of 16.
func TestByHand(t *testing.T) {
	r := run{Predictor: "Maximum", Headroom: 10, ByHand: true, Nodes: 1, Length: 4 * time.Hour}
	got, late := r.start(t), 100*2./16/240 // Of a percent for each minute that a pod is late.
	most := late * (4*240 - 36 - 43.5 - 51 - 58.5)
	if got.Gained > most || got.Gained < most-late*4*2 {
		t.Errorf("%.2f %% gained, want %.2f %%, or as much less as pods that wait two minutes for a measurement", got.Gained, most)
	}
	if math.Abs(got.Violated-50) > 0.2 || math.Abs(got.Excess-12.5) > 0.01 {
		t.Errorf("%.2f %% violated by %.2f %%, want 50 %% by 12.5 %%", got.Violated, got.Excess)
	}
}
