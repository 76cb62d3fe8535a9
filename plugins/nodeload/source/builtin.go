// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strconv"
	"strings"
	"time"
)

// The expressions for the resources of which only the name need be given, from raw series of node_exporter and of
// NVIDIA's DCGM exporter. In all of them LABEL stands for the label that tells nodes apart, WINDOW for the time to take
// the mean over, STEP for a tenth of it, and INNER for that part of it over which the means are taken whose deviation
// is asked for. Every value is a mean over the window, because that is what a new pod is accounted for by: it shows in
// the measurements in proportion to its age.
//
// Three things are less simple than they look:
//
// A scrape that fails ends all instant selectors of its series at once, and an exporter of a node under pressure is
// late before anything else is. So whatever is not a rate is taken over a range, and the timestamp has a second part
// that finds the last sample before the failure: the node keeps its measurement, with its true age.
//
// rate() divides by the whole window though the samples may cover only a part of it, at its beginning because the
// exporter has just started, or at its end because it has stopped: an idle processor seems busy then, and a busy disk
// idle. The rate of the node's own clock, which is 1 for a window that is covered, is too small by the same factor, so
// dividing by it repairs that. The mean over the processors of a target is divided by the clock from the same target,
// which all labels but the processors' own tell: when the exporter's pod is replaced, a node has two sets of series for
// a while, and each covers another part. Without that clock, or with one that leapt since it was set, nothing is
// repaired. Nor is it when the node has been restarted within the window: its clock has gone on meanwhile, and so the
// time in which it was down counts as busy.
//
// The share of time that a processor was idle can come out a little above 1. What is just below zero is therefore zero.
// What is far below is nothing that a processor does, and left out.
const (
	covered = `(max by (LABEL) (rate(node_time_seconds[WINDOW]) > 0 <= 1.1) or on (LABEL) PRESENCE)`

	// A processor is busy unless it is idle: waiting for input or output and time taken by the hypervisor count as
	// busy, for neither leaves anything to a new pod.
	cpuValue = `clamp_min(1 - avg by (LABEL) (` +
		`avg without (cpu, mode) (rate(node_cpu_seconds_total{mode="idle"}[WINDOW])) / ` +
		`(rate(node_time_seconds[WINDOW]) > 0 <= 1.1 or ` + cpuPresence + `)) >= -0.05, 0)`
	// cpuPresence is 1 for each target, whose first processor stands for all: their rates are taken only once.
	cpuPresence = `max without (cpu, mode) (present_over_time(node_cpu_seconds_total{mode="idle",cpu="0"}[WINDOW]))`

	// The kubelet evicts by the working set, which counts some of what the kernel could give back: it may evict a
	// little earlier than this load is 1.
	memoryValue     = `max by (LABEL) (1 - avg_over_time(node_memory_MemAvailable_bytes[WINDOW]) / last_over_time(node_memory_MemTotal_bytes[WINDOW]))`
	memoryDeviation = `max by (LABEL) (stddev_over_time(node_memory_MemAvailable_bytes[WINDOW]) / last_over_time(node_memory_MemTotal_bytes[WINDOW]))`

	// The busiest direction of the busiest device counts. Devices that are but an end of another one are left out; some
	// of them claim a speed of 10 Mbit/s that has no meaning. A device without a known speed, as on many virtual
	// machines, has no load.
	networkValue = `max by (LABEL) (max by (LABEL, device) (` +
		`label_replace(rate(node_network_receive_bytes_total{DEVICES}[WINDOW]), "nodeload_direction", "receive", "", "")` +
		` or label_replace(rate(node_network_transmit_bytes_total{DEVICES}[WINDOW]), "nodeload_direction", "transmit", "", ""))` +
		` / on (LABEL, device) max by (LABEL, device) (last_over_time(node_network_speed_bytes{DEVICES}[WINDOW]) > 0))` +
		` / on (LABEL) ` + covered
	networkPresence = `max by (LABEL) (present_over_time(node_network_receive_bytes_total{DEVICES}[WINDOW]))`
	networkDevices  = `device!~"lo|veth.*|cali.*|cni.*|docker.*|flannel.*|cilium.*|lxc.*|eni.*|gke.*|azv.*|vxlan.*|genev.*|tun.*|tap.*|` +
		`br.*|virbr.*|ovs.*|wg.*|dummy.*|ifb.*|kube-.*|nodelocaldns|podman.*"`

	// The share of time in which a disk had something to do: of a disk that does many things at once it is 1 before the
	// disk is at its limit.
	diskIOValue    = `max by (LABEL) (rate(node_disk_io_time_seconds_total[WINDOW])) / on (LABEL) ` + covered
	diskIOPresence = `max by (LABEL) (present_over_time(node_disk_io_time_seconds_total[WINDOW]))`

	// The mean over the devices comes before that over time: a device's series changes its labels with the pod that
	// uses it.
	gpuValue     = `avg_over_time((avg by (LABEL) (DCGM_FI_DEV_GPU_UTIL) / 100)[WINDOW:STEP])`
	gpuDeviation = `stddev_over_time((avg by (LABEL) (DCGM_FI_DEV_GPU_UTIL) / 100)[WINDOW:STEP])`
)

// newest returns the time of a selector's newest sample. A selector of fewer series, one for each node, will do for
// finding the last one before a failed scrape, as that means looking many times. It looks back no further than the
// values do: what the node was known by before its label changed must not outlive them, or the node would have two
// series. Nor does it look further than an instant selector does, in steps that find nearly every sample: the time
// found is too early by less than a step.
func newest(selector, fewer string) string {
	return `max by (LABEL) (timestamp(` + selector + `)) or max by (LABEL) (max_over_time(timestamp(` + fewer + `)[BACK:FINE]))`
}

// varying returns the standard deviation of an expression over the window. That is ten times the expression's own cost.
// The expression is of a part of the window only: a mean over the whole of it would have next to no deviation left.
func varying(expression string) string {
	return `stddev_over_time((` + strings.ReplaceAll(expression, "WINDOW", "INNER") + `)[WINDOW:STEP])`
}

const (
	// shortestMean is the least to take a mean over: two samples a minute apart.
	shortestMean = 2 * time.Minute
	// longestBack and coarsest bound what newest looks at.
	longestBack = 5 * time.Minute
	coarsest    = 15 * time.Second
)

var builtIn = map[string]Query{
	"cpu": {
		Value:     cpuValue,
		Timestamp: newest(`node_cpu_seconds_total{mode="idle"}`, `node_cpu_seconds_total{mode="idle",cpu="0"}`),
		Deviation: varying(cpuValue),
	},
	"memory": {
		Value:     memoryValue,
		Timestamp: newest(`node_memory_MemAvailable_bytes`, `node_memory_MemAvailable_bytes`),
		Deviation: memoryDeviation,
	},
	"network": {
		Value:     strings.ReplaceAll(networkValue, "PRESENCE", networkPresence),
		Timestamp: newest(`node_network_receive_bytes_total{DEVICES}`, `node_network_receive_bytes_total{DEVICES}`),
		Deviation: varying(strings.ReplaceAll(networkValue, "PRESENCE", networkPresence)),
	},
	"diskIO": {
		Value:     strings.ReplaceAll(diskIOValue, "PRESENCE", diskIOPresence),
		Timestamp: newest(`node_disk_io_time_seconds_total`, `node_disk_io_time_seconds_total`),
		Deviation: varying(strings.ReplaceAll(diskIOValue, "PRESENCE", diskIOPresence)),
	},
	"gpu": {
		Value:     gpuValue,
		Timestamp: newest(`DCGM_FI_DEV_GPU_UTIL`, `DCGM_FI_DEV_GPU_UTIL`),
		Deviation: gpuDeviation,
	},
}

// BuiltIn returns the queries of a resource that needs only its name: cpu, memory, network, diskIO and gpu; false for
// any other. They return ratios. label tells nodes apart, and window is what the mean is taken over.
//
// The GPU's series come from another exporter than the others, whose targets are pods: they have the same label only if
// the scrape configuration gives it to them.
func BuiltIn(name, label string, window time.Duration) (Query, bool) {
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
	fill := strings.NewReplacer("DEVICES", networkDevices, "LABEL", label, "WINDOW", duration(window), "STEP", duration(step),
		"INNER", duration(inner), "BACK", duration(back), "FINE", duration(fine)).Replace
	return Query{Name: name, Value: fill(query.Value), Timestamp: fill(query.Timestamp), Deviation: fill(query.Deviation)}, true
}

// duration writes a duration as PromQL has it, in the largest unit that divides it: Go's 1m30s is not known to older
// servers.
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
