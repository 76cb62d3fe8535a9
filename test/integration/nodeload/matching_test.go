// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// everyInstance checks that the default nodeMatch finds all names of a node: node_exporter's address and port,
// kube-prometheus' node name, and others. The GPU series have the node's name in a different label.
func everyInstance(t *testing.T) {
	s := newStand(t, &shared)
	instances := map[string]string{
		s.nodes[0]: "worker-001", s.nodes[1]: "worker-002:9100", s.nodes[2]: "host-003", s.nodes[3]: "host-004:9100",
		s.nodes[4]: "[fd00::5]:9100", s.nodes[5]: "fd00:0::6", s.nodes[6]: "machine-007:9100", s.nodes[7]: "test:///zone/machine-008",
		// This one has the instance of another node, which is then measured twice.
		s.nodes[8]: "worker-010",
	}
	for node, instance := range instances {
		s.exporters.breaks(fault{instance: instance}, node)
	}
	s.exporters.load(0.5, append(s.nodes[:8:8], s.nodes[9])...)
	gpu := builtIn("gpu")
	gpu["nodeMatch"] = object{"label": "Hostname"}
	scheduler := s.startScheduler(t, "kube-scheduler", s.configuration(t, "matching",
		profile(corev1.DefaultSchedulerName, s.args(time.Second, 5*time.Minute, builtIn("cpu"), gpu))))

	want := map[string]string{s.nodes[8]: "no_series", s.nodes[9]: "ambiguous"}
	s.await(t, "each node to be measured by its own series", func() error {
		page, err := s.page(scheduler)
		if err != nil {
			return err
		}
		for i, node := range s.nodes {
			busy := 10.0
			if i < 10 && i != 8 {
				busy = 50
			}
			measured := page.of[corev1.DefaultSchedulerName][node]
			if cpu := measured["cpu"]; cpu.missing != want[node] || cpu.missing == "" && (cpu.percent < busy-5 || cpu.percent > busy+5) {
				return fmt.Errorf("%s: cpu is at %.1f %% (%q), want about %v (%q)", node, cpu.percent, cpu.missing, busy, want[node])
			}
			if gpu := measured["gpu"]; gpu.missing != "" || gpu.percent < busy-5 || gpu.percent > busy+5 {
				return fmt.Errorf("%s: gpu is at %.1f %% (%q), want about %v", node, gpu.percent, gpu.missing, busy)
			}
		}
		return nil
	})
}
