// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// usual are the tests of scheduler_perf that run unless others are named.
const usual = "SchedulingBasic,SchedulingPodAntiAffinity,TopologySpreading,SchedulingPreferredPodAffinity," +
	"MixedSchedulingBasePod,Unschedulable,Preemption,Churn"

// workloads writes a configuration for scheduler_perf, with the tests of two files, and prints TEST/WORKLOAD, a line each,
// for the tests and numbers of nodes that are named, separated by commas.
//
// Three things are changed. The namespaces of the pods are created, because the scheduler would log three errors for each
// pod. The API server runs without priority and fairness, which would refuse many requests of the test's one client, each
// for a second. No metrics are collected, because the test breaks off where one has counted nothing (Preemption).
func workloads(arguments []string) error {
	upstream, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	ours, err := os.ReadFile(arguments[1])
	if err != nil {
		return err
	}
	// Pods whose namespace is not named are in namespace-N, where N is the number of the operation.
	text := strings.NewReplacer("namespace: sched-setup", "namespace: namespace-8", "namespace: sched-test", "namespace: namespace-9").Replace(string(upstream) + string(ours))
	var tests []map[string]any
	if err := yaml.Unmarshal([]byte(text), &tests); err != nil {
		return err
	}
	var all, names []string
	for _, test := range tests {
		gates, _ := test["featureGates"].(map[string]any)
		if gates == nil {
			gates = map[string]any{}
		}
		gates["APIPriorityAndFairness"] = false
		test["featureGates"], test["metricsCollectorConfig"] = gates, map[string]any{}
		operations, _ := test["workloadTemplate"].([]any)
		test["workloadTemplate"] = append([]any{map[string]any{"opcode": "createNamespaces", "prefix": "namespace", "count": 10}}, operations...)
		names = append(names, fmt.Sprint(test["name"]))
		list, _ := test["workloads"].([]any)
		for _, workload := range list {
			all = append(all, fmt.Sprint(test["name"], "/", workload.(map[string]any)["name"]))
		}
	}
	changed, err := yaml.Marshal(tests)
	if err != nil {
		return err
	}
	if err := os.WriteFile(arguments[2], changed, 0o644); err != nil {
		return err
	}
	return choose(all, names, arguments[3], arguments[4])
}

// choose prints those of all workloads that are wanted. Preemption with 5,000 nodes must be named: it never ends in 1.23.
func choose(all, names []string, nodes, wanted string) error {
	tests := wanted
	if tests == "" {
		tests = usual
	}
	for _, count := range strings.Split(nodes, ",") {
		for _, test := range strings.Split(tests, ",") {
			if wanted == "" && test == "Preemption" && count == "5000" {
				continue
			}
			start := test + "/" + count + "Nodes"
			found := slices.DeleteFunc(slices.Clone(all), func(workload string) bool { return !strings.HasPrefix(workload+"/", start+"/") })
			if fmt.Print(strings.Join(append(found, ""), "\n")); len(found) == 0 {
				return fmt.Errorf("upstream's scheduler_perf has no test %s with %s nodes; there are: %s\n"+
					"next:  make bench NAME=cluster WORKLOADS=SchedulingBasic,Preemption NODES=500", test, count,
					strings.Join(names, " "))
			}
		}
	}
	return nil
}

var (
	creating = regexp.MustCompile(` Creating ([0-9]+) pods in namespace "(.*)"$`)
	unbound  = regexp.MustCompile(` "Add event for unscheduled pod" .*pod="([^"]*)"`)
	bound    = regexp.MustCompile(` "Successfully bound pod to node" .*pod="([^"]*)"`)
)

// times prints what the log of a run of scheduler_perf says, as a line of Go's benchmarks. The measured pods are those that
// are created last, or all in namespaces arrival-N. The log has microseconds; upstream's test samples once a second.
func times(arguments []string) error {
	log, err := os.Open(arguments[1])
	if err != nil {
		return err
	}
	defer log.Close()
	var (
		pods, refused           int
		namespace               string
		created, total, elapsed time.Duration
		waits                   []time.Duration
		seen                    = map[string]time.Duration{}
	)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if found := creating.FindStringSubmatch(line); found != nil {
			if !strings.HasPrefix(namespace, "arrival-") || !strings.HasPrefix(found[2], "arrival-") {
				pods, total, elapsed, waits = 0, 0, 0, nil
			}
			count := 0
			fmt.Sscan(found[1], &count)
			pods, total, elapsed = pods+count, total+elapsed, 0
			namespace, created = found[2], clock(line)
		} else if found := unbound.FindStringSubmatch(line); found != nil {
			seen[found[1]] = clock(line)
		} else if found := bound.FindStringSubmatch(line); found != nil && strings.HasPrefix(found[1], namespace+"/") {
			elapsed = since(created, clock(line))
			waits = append(waits, since(seen[found[1]], clock(line)))
		} else if strings.HasSuffix(line, " resp=429") {
			refused++
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if len(waits) == 0 || len(waits) != pods {
		return fmt.Errorf("%d of %d measured pods are bound", len(waits), pods)
	}
	slices.Sort(waits)
	at := func(share float64) float64 {
		return float64(waits[int(math.Ceil(share*float64(len(waits))))-1].Microseconds()) / 1000
	}
	fmt.Printf("BenchmarkPerfScheduling/%s 1 %d ns/op %.3f wait-p50-ms %.3f wait-p99-ms %d refused\n",
		arguments[0], (total + elapsed).Nanoseconds(), at(0.5), at(0.99), refused)
	return nil
}

// clock returns the time of day of a line of klog, such as "I1126 12:34:56.123456 …".
func clock(line string) time.Duration {
	fields := strings.Fields(line)
	if at, err := time.Parse("15:04:05.000000", fields[1]); err == nil {
		return at.Sub(at.Truncate(24 * time.Hour))
	}
	return 0
}

// since returns the time between two times of day, of which the second may be of the next day.
func since(begin, end time.Duration) time.Duration {
	if end < begin {
		end += 24 * time.Hour
	}
	return end - begin
}
