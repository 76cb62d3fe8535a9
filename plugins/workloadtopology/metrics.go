// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

var attempts = pluginmetrics.NewCounterVec("workload_topology_attempts_total",
	"Number of scheduling attempts, by profile and by whether any peer of the pod was placed: 'peers', 'no_peers', or 'not_concerned' for pods without a group in WorkloadTopology.",
	"profile", "result")

// counters are the metrics of one profile.
type counters struct {
	peers, noPeers, notConcerned metrics.CounterMetric
}

// newCounters returns the metrics of the handle's profile.
func newCounters(handle framework.Handle) counters {
	profile := services.ProfileOf(handle)
	return counters{
		peers:        attempts.WithLabelValues(profile, "peers"),
		noPeers:      attempts.WithLabelValues(profile, "no_peers"),
		notConcerned: attempts.WithLabelValues(profile, "not_concerned"),
	}
}

func (m *counters) count(c *cycle) {
	switch {
	case c.round == 0:
		m.notConcerned.Inc()
	case c.weight == 0:
		m.noPeers.Inc()
	default:
		m.peers.Inc()
	}
}
