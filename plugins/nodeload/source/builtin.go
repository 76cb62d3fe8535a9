// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// The expressions of the built-in resources, over raw series of node_exporter and of NVIDIA's DCGM exporter. They have
// placeholders: MATCHERS are the matchers of the args, in each selector, LABEL is the label that identifies the node,
// WINDOW the time to take the mean over, STEP a tenth of it, and INNER the shorter window of the means whose deviation
// is computed. Every value is a mean over WINDOW, because the accounting of new pods relies on that: a pod enters the
// measurements in proportion to its age.
//
// Three problems shape the expressions:
//
// After a failed scrape, instant selectors return nothing for the target, and on a node under pressure the exporter is
// the first to be late. So all values except rates are taken over a range, and the timestamp has a second part that
// finds the last sample before the failure: the node keeps its measurement, with its true age.
//
// rate() divides by the whole window even if the samples cover only a part of it, because the exporter has just started
// or has stopped: an idle processor then seems busy, and a busy disk idle. The rate of the node's own clock, which is 1
// for a covered window, is too small by the same factor, so the expressions divide by it. The mean over a target's
// processors is divided by the clock from the same target, matched on all labels except the processor's: while the
// exporter's pod is replaced, a node has two sets of series, each of which covers a different part. Without that clock,
// or if it jumped within the window, nothing is corrected. Nor is it if the node was restarted within the window: its
// clock went on meanwhile, so the time in which it was down counts as busy.
//
// The idle share of a processor can be slightly above 1, so values just below zero are clamped to zero. Values far
// below zero cannot be real, and are dropped.
const (
	covered = `(max by (LABEL) (rate(node_time_seconds{MATCHERS}[WINDOW]) > 0 <= 1.1) or on (LABEL) PRESENCE)`

	// A processor is busy unless it is idle: waiting for I/O and time taken by the hypervisor count as busy, because
	// neither is available to a new pod.
	cpuValue = `clamp_min(1 - avg by (LABEL) (` +
		`avg without (cpu, mode) (rate(node_cpu_seconds_total{MATCHERS,mode="idle"}[WINDOW])) / ` +
		`(rate(node_time_seconds{MATCHERS}[WINDOW]) > 0 <= 1.1 or ` + cpuPresence + `)) >= -0.05, 0)`
	// cpuPresence is 1 for each target. Its first processor represents all, so that their rates are computed only once.
	cpuPresence = `max without (cpu, mode) (` +
		`present_over_time(node_cpu_seconds_total{MATCHERS,mode="idle",cpu="0"}[WINDOW]))`

	// The kubelet evicts by the working set, which includes some memory that the kernel could reclaim, so it may evict
	// slightly before this load is 1.
	memoryValue     = `max by (LABEL) (1 - avg_over_time(` + memoryAvailable + `[WINDOW]) / ` + memoryTotal + `)`
	memoryDeviation = `max by (LABEL) (stddev_over_time(` + memoryAvailable + `[WINDOW]) / ` + memoryTotal + `)`
	memoryAvailable = `node_memory_MemAvailable_bytes{MATCHERS}`
	memoryTotal     = `last_over_time(node_memory_MemTotal_bytes{MATCHERS}[WINDOW])`

	// The busiest direction of the busiest device counts. Devices that are only an end of another one are excluded by
	// their names: at a nominal 10 Gbit/s, traffic between pods would count as the node's. Tunnels with any name report
	// a meaningless 10 Mbit/s, so a speed up to that counts as unknown. A device with an unknown speed, as on many
	// virtual machines, has no load.
	networkValue = `max by (LABEL) (max by (LABEL, device) (` +
		`label_replace(rate(node_network_receive_bytes_total{MATCHERS,DEVICES}[WINDOW]), "nodeload_direction", "receive", "", "")` +
		` or label_replace(rate(node_network_transmit_bytes_total{MATCHERS,DEVICES}[WINDOW]), "nodeload_direction", "transmit", "", ""))` +
		` / on (LABEL, device) max by (LABEL, device) (last_over_time(node_network_speed_bytes{MATCHERS,DEVICES}[WINDOW]) > 10e6/8))` +
		` / on (LABEL) ` + covered
	networkPresence = `max by (LABEL) (present_over_time(node_network_receive_bytes_total{MATCHERS,DEVICES}[WINDOW]))`
	// The last three are OVN-Kubernetes', Kube-OVN's and Antrea's ends of pods' devices.
	networkDevices = `device!~"lo|veth.*|cali.*|cni.*|docker.*|flannel.*|cilium.*|lxc.*|eni.*|gke.*|azv.*|vxlan.*|genev.*|tun.*|tap.*|` +
		`br.*|virbr.*|ovs.*|wg.*|dummy.*|ifb.*|kube-.*|nodelocaldns|podman.*|[0-9a-f]{15}|[0-9a-f]+_.*h|.*-[0-9a-f]{6}"`

	// The share of time in which a disk was busy. For a disk that serves many requests in parallel it reaches 1 before
	// the disk is at its limit.
	diskIOValue    = `max by (LABEL) (rate(node_disk_io_time_seconds_total{MATCHERS}[WINDOW])) / on (LABEL) ` + covered
	diskIOPresence = `max by (LABEL) (present_over_time(node_disk_io_time_seconds_total{MATCHERS}[WINDOW]))`

	// These have at least one series for each target of node_exporter.
	cpuTargets     = `node_cpu_seconds_total{MATCHERS,mode="idle",cpu="0"}`
	networkTargets = `node_network_receive_bytes_total{MATCHERS,DEVICES}`
	diskIOTargets  = `node_disk_io_time_seconds_total{MATCHERS}`

	// The mean over the devices is computed before the mean over time, because a device's series changes its labels
	// with the pod that uses it.
	gpuValue     = `avg_over_time((avg by (LABEL) (DCGM_FI_DEV_GPU_UTIL{MATCHERS}) / 100)[WINDOW:STEP])`
	gpuDeviation = `stddev_over_time((avg by (LABEL) (DCGM_FI_DEV_GPU_UTIL{MATCHERS}) / 100)[WINDOW:STEP])`
)

// newest returns the time of a selector's newest sample. The last sample before a failed scrape is found with fewer, a
// selector with one series per node, because that part evaluates it many times. It looks back no further than the
// values do: a series from before a node's label changed must not outlive its values, or the node would have two
// series. Nor does it look back further than an instant selector. Its steps find nearly every sample; the time found is
// too early by less than a step.
func newest(selector, fewer string) string {
	return `max by (LABEL) (timestamp(` + selector + `)) or max by (LABEL) (max_over_time(timestamp(` + fewer + `)[BACK:FINE]))`
}

// varying returns the standard deviation of an expression over the window, at ten times the cost of the expression. The
// expression covers only a part of the window: means over the whole window would have almost no deviation.
func varying(expression string) string {
	return `stddev_over_time((` + strings.ReplaceAll(expression, "WINDOW", "INNER") + `)[WINDOW:STEP])`
}

const (
	// shortestMean is the shortest window for a mean: two samples a minute apart.
	shortestMean = 2 * time.Minute
	// longestBack and coarsest limit the range and the step of newest.
	longestBack = 5 * time.Minute
	coarsest    = 15 * time.Second
)

var builtIn = map[string]Query{
	"cpu": {
		Value:     cpuValue,
		Timestamp: newest(`node_cpu_seconds_total{MATCHERS,mode="idle"}`, cpuTargets),
		Deviation: varying(cpuValue),
	},
	"memory": {
		Value:     memoryValue,
		Timestamp: newest(memoryAvailable, memoryAvailable),
		Deviation: memoryDeviation,
	},
	"network": {
		Value:     strings.ReplaceAll(networkValue, "PRESENCE", networkPresence),
		Timestamp: newest(networkTargets, networkTargets),
		Deviation: varying(strings.ReplaceAll(networkValue, "PRESENCE", networkPresence)),
	},
	"diskIO": {
		Value:     strings.ReplaceAll(diskIOValue, "PRESENCE", diskIOPresence),
		Timestamp: newest(diskIOTargets, diskIOTargets),
		Deviation: varying(strings.ReplaceAll(diskIOValue, "PRESENCE", diskIOPresence)),
	},
	"gpu": {
		Value:     gpuValue,
		Timestamp: newest(`DCGM_FI_DEV_GPU_UTIL{MATCHERS}`, `DCGM_FI_DEV_GPU_UTIL{MATCHERS}`),
		Deviation: gpuDeviation,
	},
}

// BuiltIn returns the queries of a built-in resource: cpu, memory, network, diskIO or gpu; false for any other name.
// They return ratios of the series that the matchers select. label identifies the node, and window is the time to take
// the mean over.
//
// The GPU's series come from a different exporter, whose targets are pods: they have the same label only if the scrape
// configuration adds it.
func BuiltIn(name, label string, window time.Duration, matchers []config.NodeLoadMatcher) (Query, bool) {
	query, known := builtIn[name]
	if !known {
		return Query{}, false
	}
	step := (window / 10).Truncate(time.Millisecond)
	if step < time.Second {
		step = time.Second
	}
	back, fine, inner := window, step, window/5
	if back > longestBack {
		back = longestBack
	}
	if fine > coarsest {
		fine = coarsest
	}
	if inner = inner.Truncate(time.Millisecond); inner < shortestMean {
		inner = shortestMean
	}
	if inner > window {
		inner = window
	}
	// A placeholder in a matcher's value is not replaced, because what has been filled in is not read again.
	fill := strings.NewReplacer(append(placeholders(matchers), "LABEL", label, "WINDOW", duration(window),
		"STEP", duration(step), "INNER", duration(inner), "BACK", duration(back), "FINE", duration(fine))...).Replace
	return Query{Name: name, Value: fill(query.Value), Timestamp: fill(query.Timestamp), Deviation: fill(query.Deviation)}, true
}

// placeholders returns the placeholders within selectors, each followed by its text.
func placeholders(matchers []config.NodeLoadMatcher) []string {
	var texts []string
	for _, m := range matchers {
		// PromQL's double-quoted strings have Go's escapes.
		texts = append(texts, m.Label+string(m.Operator)+strconv.Quote(m.Value))
	}
	alone, first := "", ""
	if text := strings.Join(texts, ","); text != "" {
		alone, first = "{"+text+"}", text+","
	}
	return []string{"{MATCHERS}", alone, "MATCHERS,", first, "DEVICES", networkDevices}
}

// targets are selectors of the built-in resources with series for each scrape target. The GPU exporter's series have
// labels of pods, so they do not tell targets apart.
var targets = map[string]string{
	"cpu": cpuTargets, "memory": memoryAvailable, "network": networkTargets, "diskIO": diskIOTargets,
}

// Targets returns an expression with one series for each scrape target behind a built-in resource, with all labels of
// the target; false for gpu, and for any other name.
func Targets(name string, matchers []config.NodeLoadMatcher) (string, bool) {
	selector, known := targets[name]
	selector = strings.NewReplacer(placeholders(matchers)...).Replace(selector)
	return "group without (cpu, mode, device) (" + selector + ")", known
}

// duration formats a duration for PromQL, in the largest unit that divides it: older servers do not accept Go's 1m30s.
func duration(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d >= unit.size && d%unit.size == 0 {
			return strconv.FormatInt(int64(d/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms"
}
