// SPDX-License-Identifier: Apache-2.0

// Package loadtrace compares ways of scheduling by the real load of nodes: the default profile, a plugin that queries
// Prometheus for each node and pod, and NodeLoad. Each has its own cluster, with a real Prometheus that measures the
// real use of pods, which differs from their requests. The same trace is played in all clusters at once, in real time:
// a Prometheus' clock cannot be sped up, so the traces and the windows are short, and the comparisons run in parallel.
package loadtrace

import (
	"fmt"
	"testing"
	"time"

	"kube-scheduler-fork/test/inprocess/table"
)

// tick is the time step of a trace.
const tick = 50 * time.Millisecond

// luck is the share of another way's figure below which a figure is better: runs of the same scheduler differ by less.
const luck = 0.9

// outcome has the figures of one way of scheduling.
type outcome struct {
	heat
	talk
	took          time.Duration // for the whole trace
	queries       int           // answered by Prometheus
	pods          int           // that ran
	podsPerSecond float64       // that were decided on
}

// compare plays a trace in a separate cluster for each way.
func compare(t *testing.T, tr trace, ways ...way) map[string]outcome {
	t.Helper()
	var clusters []*cluster
	for _, way := range ways {
		clusters = append(clusters, newCluster(t, way, tr))
	}
	for _, c := range clusters {
		c.warm()
	}
	began := time.Now()
	// The trace's time is paused during each step, so a slow machine only takes longer.
	for now := time.Duration(0); now < tr.length; now += tick {
		// They run one after the other, because they share the CPUs.
		for _, c := range clusters {
			c.play(now)
		}
		time.Sleep(tick)
	}
	took := time.Since(began)
	outcomes := make(map[string]outcome)
	for _, c := range clusters {
		o := outcome{
			heat: c.reality.heat(tr.length), talk: c.reality.talk(tr.length), took: took, pods: len(c.started),
			podsPerSecond: float64(c.decided) / c.busy.Seconds(),
		}
		if c.prometheus != nil {
			o.queries = c.prometheus.queries(t) - c.asked
		}
		if len(c.coming)+len(c.waiting) > 0 {
			t.Logf("%s: at the end %d pods have not come and %d have no node", c.name, len(c.coming), len(c.waiting))
		}
		if o.pods < len(tr.pods)*9/10 {
			t.Errorf("%s: only %d pods of %d ran, too few for a comparison", c.name, o.pods, len(tr.pods))
		}
		outcomes[c.name] = o
	}
	return outcomes
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// TestMixedLoad checks that with pods whose requests are wrong, NodeLoad keeps the hottest node cooler and the nodes
// more even than the default profile, with a request per second; the naive plugin needs hundreds of times as many.
func TestMixedLoad(t *testing.T) {
	t.Parallel()
	ways := append([]way{byDefault, byNaive, byNodeLoad}, others...)
	got := compare(t, mixedTrace, ways...)
	took := got[byNodeLoad.name].took.Round(time.Second)
	table.Log(t, fmt.Sprintf("%d pods on %d nodes in %v, which took %v; wanted CPU in percent of a node's cores",
		len(mixedTrace.pods), len(mixedTrace.nodes), mixedTrace.length, took),
		[]string{
			"", "hottest node's peak", "spread (standard deviation)", "hot node-seconds", "queries to Prometheus", "pods per second",
		},
		func(row func(...any)) {
			for _, way := range ways {
				o := got[way.name]
				row(way.name, percent(o.peak), percent(o.spread), fmt.Sprintf("%.1f", o.spots.Seconds()), o.queries,
					fmt.Sprintf("%.0f", o.podsPerSecond))
			}
		})
	stock, naive, ours := got[byDefault.name], got[byNaive.name], got[byNodeLoad.name]
	if ours.peak >= stock.peak {
		t.Errorf("the hottest node reached %s with NodeLoad, and %s without", percent(ours.peak), percent(stock.peak))
	}
	if ours.spread >= luck*stock.spread {
		t.Errorf("the nodes' loads differ by %s with NodeLoad, and by %s without", percent(ours.spread), percent(stock.spread))
	}
	// NodeLoad also refreshes while the trace's time is paused.
	asked := float64(ours.queries) * mixedTrace.length.Seconds() / ours.took.Seconds()
	if ours.queries == 0 || 100*asked > float64(naive.queries) {
		t.Errorf("Prometheus got %d queries by NodeLoad, %.0f per %v, and %d by the naive plugin: want some, and less than one in 100",
			ours.queries, asked, mixedTrace.length, naive.queries)
	}
}

// TestStreamingJobs checks that with jobs whose task managers have equal requests but a use that follows the job's data
// volume, NodeLoad causes fewer hot spots than the default profile, and they slow jobs down for less time.
func TestStreamingJobs(t *testing.T) {
	t.Parallel()
	ways := append([]way{byDefault, byNodeLoad}, others...)
	got := compare(t, streamingTrace, ways...)
	jobs := make(map[string]bool)
	for _, j := range streamingTrace.pods {
		jobs[j.owner] = true
	}
	table.Log(t, fmt.Sprintf("%d jobs with %d pods on %d nodes in %v; a node is a hot spot above %.0f %%",
		len(jobs), len(streamingTrace.pods), len(streamingTrace.nodes), streamingTrace.length, 100*hot),
		[]string{
			"", "hot node-seconds", "job-seconds with a pod on a hot node", "hottest node's peak", "spread", "pods per second",
		},
		func(row func(...any)) {
			for _, way := range ways {
				o := got[way.name]
				row(way.name, fmt.Sprintf("%.1f", o.spots.Seconds()), fmt.Sprintf("%.1f", o.slowed.Seconds()), percent(o.peak),
					percent(o.spread), fmt.Sprintf("%.0f", o.podsPerSecond))
			}
		})
	stock, ours := got[byDefault.name], got[byNodeLoad.name]
	if ours.spots.Seconds() >= luck*stock.spots.Seconds() {
		t.Errorf("nodes were hot for %v with NodeLoad, and for %v without", ours.spots, stock.spots)
	}
	if ours.slowed.Seconds() >= luck*stock.slowed.Seconds() {
		t.Errorf("jobs had a pod on a hot node for %v with NodeLoad, and for %v without", ours.slowed, stock.slowed)
	}
}

// TestJobGraphs checks that with jobs whose task managers exchange data, WorkloadTopology causes much less traffic
// between zones than the default profile and NodeLoad alone, and shorter hot times of nodes than preferred pod
// affinity, which ignores the load and the concentration of a job.
func TestJobGraphs(t *testing.T) {
	t.Parallel()
	ways := []way{byDefault, byAffinity, byNodeLoad, byTopology}
	got := compare(t, graphsTrace, ways...)
	jobs := make(map[string]bool)
	for _, j := range graphsTrace.pods {
		jobs[j.owner] = true
	}
	table.Log(t, fmt.Sprintf("%d jobs with %d pods on %d nodes in %v", len(jobs), len(graphsTrace.pods), len(graphsTrace.nodes), graphsTrace.length),
		[]string{
			"", "traffic between nodes", "traffic between zones", "hot node-seconds", "job-seconds with a pod on a hot node", "pods per second",
		},
		func(row func(...any)) {
			for _, way := range ways {
				o := got[way.name]
				row(way.name, percent(o.acrossNodes), percent(o.acrossZones), fmt.Sprintf("%.1f", o.spots.Seconds()),
					fmt.Sprintf("%.1f", o.slowed.Seconds()), fmt.Sprintf("%.0f", o.podsPerSecond))
			}
		})
	ours, affinity := got[byTopology.name], got[byAffinity.name]
	for _, other := range []way{byDefault, byNodeLoad} {
		if theirs := got[other.name]; ours.acrossZones >= luck*theirs.acrossZones {
			t.Errorf("%s of the traffic is between zones with WorkloadTopology, and %s with %s",
				percent(ours.acrossZones), percent(theirs.acrossZones), other.name)
		}
	}
	if ours.spots.Seconds() >= luck*affinity.spots.Seconds() {
		t.Errorf("nodes were hot for %v with WorkloadTopology, and for %v with preferred pod affinity", ours.spots, affinity.spots)
	}
}
