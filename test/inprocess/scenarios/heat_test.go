// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// seeds are those of the compared loads: a single one may suit a configuration by chance.
var seeds = []int64{1, 2, 3}

// loads are the figures of runs; the first three are the simulator's.
type loads struct {
	// hot is the time that nodes were hot, in node-seconds.
	hot float64
	// deviation is the standard deviation of the nodes' loads, its mean over time.
	deviation float64
	// waits is the longest time that a pod waits, in seconds.
	waits float64
	// peak is the highest load of any node.
	peak float64
	// slowed is the time that jobs had a pod on a hot node, in job-seconds: a job is as fast as its slowest part.
	slowed float64
	// acrossNodes and acrossZones are the shares of the traffic within jobs that is between nodes, and between zones.
	acrossNodes, acrossZones float64
}

// loadsOf returns the figures of a way, as means over the seeds.
func loadsOf(t *testing.T, of way) loads {
	t.Helper()
	var means loads
	n := float64(len(seeds))
	for _, seed := range seeds {
		s, run := scenarios[of.scenario](seed), run(t, of, seed)
		lives := s.lives(t, run, 0.95)
		peak, slowed := s.heat(lives)
		nodes, zones := s.traffic(lives)
		means.hot += figure(t, run, "hot_node_seconds") / n
		means.deviation += figure(t, run, `node_use_deviation_percent{resource="cpu"}`) / 100 / n
		means.waits += figure(t, run, "waiting_longest_seconds") / n
		means.peak, means.slowed = means.peak+peak/n, means.slowed+slowed/n
		means.acrossNodes, means.acrossZones = means.acrossNodes+nodes/n, means.acrossZones+zones/n
	}
	return means
}

// heat returns the highest load of any node, and the job-seconds with a pod on a hot node.
func (s scenario) heat(lives []life) (peak, slowed float64) {
	for at := begins; at < s.length; at += step {
		loads, jobs := map[string]float64{}, map[string]bool{}
		for _, l := range lives {
			if l.at(at) {
				loads[l.node] += l.Use[int((at-l.from)/step)].Resources.Cpu().AsApproximateFloat64() / 8
				peak = max(peak, loads[l.node])
			}
		}
		for _, l := range lives {
			if job := l.Pod.Labels["app"]; job != "" && l.at(at) && loads[l.node] > hot {
				jobs[job] = true
			}
		}
		slowed += float64(len(jobs)) * step.Seconds()
	}
	return peak, slowed
}

// traffic returns the shares of the traffic within jobs between nodes and zones. That of each pair of a job's running
// pods is the same in each second.
func (s scenario) traffic(lives []life) (nodes, zones float64) {
	zoneOf, jobs, all := map[string]string{}, map[string][]life{}, 0.0
	for _, node := range s.nodes {
		zoneOf[node.Name] = node.Labels[corev1.LabelTopologyZone]
	}
	for _, a := range lives {
		job := a.Pod.Labels["app"]
		for _, b := range jobs[job] {
			said := max(0, min(a.to, b.to)-a.from).Seconds()
			if a.Pod.Labels["component"] == taskManager && b.Pod.Labels["component"] == taskManager {
				said *= 10
			}
			all += said
			if a.node != b.node {
				nodes += said
			}
			if zoneOf[a.node] != zoneOf[b.node] {
				zones += said
			}
		}
		if job != "" {
			jobs[job] = append(jobs[job], a)
		}
	}
	return nodes / max(1, all), zones / max(1, all)
}

// title is that of a table.
func title(scenario string) string {
	s := scenarios[scenario](seeds[0])
	return fmt.Sprintf("%s: means of %d seeds, with about %d pods on %d nodes in %v", scenario, len(seeds), len(s.pods)-len(s.nodes), len(s.nodes),
		s.length-begins)
}

// withThresholds returns node-load.yaml with the second step that it describes.
func withThresholds(t *testing.T) string {
	t.Helper()
	return manifest(t, "node-load.yaml", "            - {name: cpu}", "            - {name: cpu, threshold: 80}",
		"            - {name: memory}", "            - {name: memory, threshold: 90}")
}

func seconds(value float64) string { return fmt.Sprintf("%.0f", value) }

// TestMixedLoad checks that with pods whose requests are wrong, NodeLoad keeps the hottest node cooler and the nodes
// more even than the default profile.
func TestMixedLoad(t *testing.T) { testNodeLoad(t, "mixed") }

// TestStreamingJobs checks the same with jobs whose task managers have equal requests but a use that follows the job's
// data volume, and that hot nodes slow jobs down for less time.
func TestStreamingJobs(t *testing.T) { testNodeLoad(t, "streaming") }

func testNodeLoad(t *testing.T, scenario string) {
	t.Parallel()
	ways := []way{
		{"default profile", scenario, stock},
		{"NodeLoad scores", scenario, manifest(t, "node-load.yaml")},
		{"NodeLoad scores and filters", scenario, withThresholds(t)},
	}
	got := compare(t, title(scenario), "hottest node's peak | standard deviation of the nodes' load | hot node-seconds | "+
		"job-seconds with a pod on a hot node | longest wait of a pod", ways, func(way way) (loads, []any) {
		l := loadsOf(t, way)
		return l, []any{percent(l.peak), percent(l.deviation), seconds(l.hot), seconds(l.slowed), seconds(l.waits) + " s"}
	})
	byDefault := got[0]
	for _, ours := range got[1:] {
		if ours.peak >= byDefault.peak || ours.deviation >= luck*byDefault.deviation || ours.hot >= luck*byDefault.hot ||
			ours.slowed > luck*byDefault.slowed {
			t.Errorf("with NodeLoad %+v, without %+v", ours, byDefault)
		}
	}
}

// TestJobGraphs checks that with jobs whose task managers exchange data, WorkloadTopology causes much less traffic
// between zones than the default profile and NodeLoad alone, and shorter hot times of nodes than preferred pod
// affinity, which ignores the load and the concentration of a job.
func TestJobGraphs(t *testing.T) {
	t.Parallel()
	ways := []way{
		{"default profile", "graphs", stock},
		{"preferred pod affinity to the job's zone and nodes", "graphs by hand", stock},
		{"NodeLoad alone", "graphs", withThresholds(t)},
		{"WorkloadTopology and NodeLoad", "graphs", manifest(t, "workload-topology.yaml")},
	}
	got := compare(t, title("graphs"), "traffic between nodes | traffic between zones | hot node-seconds | "+
		"job-seconds with a pod on a hot node", ways, func(way way) (loads, []any) {
		l := loadsOf(t, way)
		return l, []any{percent(l.acrossNodes), percent(l.acrossZones), seconds(l.hot), seconds(l.slowed)}
	})
	byDefault, byAffinity, byNodeLoad, ours := got[0], got[1], got[2], got[3]
	if ours.acrossZones >= min(byDefault.acrossZones, byNodeLoad.acrossZones)/2 {
		t.Errorf("%s of the traffic is between zones with WorkloadTopology, %s by default and %s with NodeLoad alone",
			percent(ours.acrossZones), percent(byDefault.acrossZones), percent(byNodeLoad.acrossZones))
	}
	if ours.hot >= byAffinity.hot {
		t.Errorf("nodes were hot for %.0f s with WorkloadTopology, and for %.0f s with preferred pod affinity", ours.hot, byAffinity.hot)
	}
}
