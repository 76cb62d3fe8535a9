// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// The names of the plugin Overcommit's queries.
const (
	// OvercommitNodes returns the mean and the standard deviation over the horizon of what ordinary pods, and everything
	// else that is no pod, use on a node.
	OvercommitNodes = "overcommit"
	// OvercommitNow returns what they use now.
	OvercommitNow = "overcommit now"
	// OvercommitPods returns a percentile over the horizon of what a pod uses.
	OvercommitPods = "overcommit of pods"
)

// The expressions have placeholders, as those of the built-in resources; HORIZON is divided into steps, STEP, and RATE
// is the time to take a rate over. Their values are in cores.
//
// The root cgroup has everything that a node uses. Where it is not scraped, as with the defaults of the Helm chart
// kube-prometheus-stack, the sum of the containers takes its place, without what is no pod. What overcommitting
// containers use is taken off in the same step, so that mean and deviation are those of ordinary use even while such pods
// come, go, and use what ordinary pods leave.
//
// Two series know them, and also those that have ended: that of kube-state-metrics, and that of a kube-scheduler's
// /metrics/resources. Without both, their use counts as ordinary. Their cgroups do not tell: those of other pods with a
// CPU limit and a small CPU request look the same.
//
// Two jobs that scrape a kubelet have the same values, and count once. The root's series keep all labels: if they are
// those of several clusters, a node has several, and is not measured.
const (
	rootUse       = `container_cpu_usage_seconds_total{MATCHERS,id="/"}`
	measured      = `group by (LABEL) (container_cpu_usage_seconds_total{MATCHERS})`
	containers    = `{MATCHERS,container!="",container!="POD"}`
	containersUse = `rate(container_cpu_usage_seconds_total` + containers + `[RATE])`
	allUse        = `(rate(` + rootUse + `[RATE]) or on (LABEL) (` + sumOf + containersUse + `)) unless on (LABEL) last_over_time(` + rootUse + `[RATE])))`
	sumOf         = `sum by (LABEL) (max by (LABEL, namespace, pod, container, id) (`

	overcommittingPods = `(last_over_time(kube_pod_container_resource_requests{MATCHERS,resource="overcommit_scheduler_millicpu"}[RATE]) > 0` +
		` or last_over_time(kube_pod_resource_request{MATCHERS,resource="overcommit.scheduler/millicpu"}[RATE]) > 0)`
	ordinaryUse = `clamp_min(` + allUse + ` - on (LABEL) group_left () (` + sumOf + containersUse +
		` and on (namespace, pod) ` + overcommittingPods + `)) or 0 * ` + measured + `), 0)`

	// A mean over less than a quarter of the horizon predicts nothing.
	enough       = ` and on (LABEL) count_over_time((` + measured + `)[HORIZON:STEP]) >= 3`
	enoughOfNode = ` and on (LABEL) count_over_time((group by (LABEL) (` + cpuTargets + `))[HORIZON:STEP]) >= 3`

	podsPercentile = `quantile_over_time(PERCENTILE, (sum by (namespace, pod) (max by (namespace, pod, LABEL, container, id) (` +
		containersUse + `)))[HORIZON:STEP])`
	podsTimestamp = `max by (namespace, pod) (timestamp(container_cpu_usage_seconds_total` + containers + `))`
)

// OvercommitSteps is the number of steps of a horizon.
const OvercommitSteps = 12

// OvercommitRate returns the time over which use is averaged: a step, but no more than five minutes.
func OvercommitRate(horizon time.Duration) time.Duration {
	if step := (horizon / OvercommitSteps).Truncate(time.Second); step < 5*time.Minute {
		return step
	}
	return 5 * time.Minute
}

// Overcommit returns the queries of the plugin Overcommit: for nodes, for their use now, and for a percentile, 1 to
// 100, of pods' use. If containers are not measured, the first has ratios, and there are no others.
func Overcommit(label string, horizon time.Duration, percentile int, matchers []config.NodeLoadMatcher, ofContainers bool) []Query {
	step, rate := (horizon / OvercommitSteps).Truncate(time.Second), OvercommitRate(horizon)
	fill := strings.NewReplacer(append(placeholders(matchers), "LABEL", label, "HORIZON", duration(horizon), "STEP", duration(step),
		"RATE", duration(rate), "WINDOW", duration(step), "BACK", duration(longestBack), "FINE", duration(coarsest),
		"PERCENTILE", strconv.FormatFloat(float64(percentile)/100, 'g', -1, 64))...).Replace
	over := func(function, use, enough string) string {
		return fill(function + `((` + use + `)[HORIZON:STEP])` + enough)
	}
	if !ofContainers {
		return []Query{{Name: OvercommitNodes, Label: label, Value: over("avg_over_time", cpuValue, enoughOfNode),
			Deviation: over("stddev_over_time", cpuValue, ""), Timestamp: fill(newest(cpuTargets, cpuTargets))}}
	}
	timestamp := fill(newest(`container_cpu_usage_seconds_total{MATCHERS}`, rootUse))
	return []Query{
		{Name: OvercommitNodes, Label: label, Value: over("avg_over_time", ordinaryUse, enough),
			Deviation: over("stddev_over_time", ordinaryUse, ""), Timestamp: timestamp},
		{Name: OvercommitNow, Label: label, Value: fill(ordinaryUse), Timestamp: timestamp},
		{Name: OvercommitPods, Pods: true, Value: fill(podsPercentile), Timestamp: fill(podsTimestamp)},
	}
}
