// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
)

var (
	attempts = pluginmetrics.NewCounterVec("coscheduling_attempts_total",
		"Number of attempts to place a gang, by profile and by result: 'placed', 'preempting', 'unschedulable', or 'late' after attemptTimeout.",
		"profile", "result")
	durations = pluginmetrics.NewHistogramVec("coscheduling_attempt_duration_seconds",
		"Duration of attempts to place a gang, in which no other pod is scheduled, by profile and by result.",
		metrics.ExponentialBuckets(0.001, 2, 14), "profile", "result")
	halfGangs = pluginmetrics.NewGaugeVec("coscheduling_half_gangs",
		"Number of gangs of which some pods have nodes, but fewer than minMember, and others wait.")
)
