// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// born returns a pod that was created in a second, with an owner KIND/NAME if it has one. more are further fields of its spec.
func born(second int, name, owner, node, cpu, more string) string {
	reference := ""
	if parts := strings.Split(owner, "/"); len(parts) == 2 {
		reference = fmt.Sprintf("ownerReferences: [{apiVersion: apps/v1, kind: %s, name: %s, uid: %[2]s, controller: true}], ", parts[0], parts[1])
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, uid: uid-%[1]s, labels: {app: %s}, %screationTimestamp: 2026-11-01T00:00:%02[4]dZ}
spec: {nodeName: %[5]s, schedulerName: default-scheduler, containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]%s}
status: {phase: Running}
---
`, name, name[:strings.Index(name+"-", "-")], reference, second, node, cpu, more)
}

// used returns the measured use of a node, or of a pod.
func used(kind, name, cpu string) string {
	if kind == "PodMetrics" {
		return fmt.Sprintf("apiVersion: metrics.k8s.io/v1beta1\nkind: PodMetrics\nmetadata: {name: %s, namespace: default}\ncontainers: [{name: c, usage: {cpu: %s}}]\n---\n", name, cpu)
	}
	return fmt.Sprintf("apiVersion: metrics.k8s.io/v1beta1\nkind: NodeMetrics\nmetadata: {name: %s}\nusage: {cpu: %s}\n---\n", name, cpu)
}

// TestPlaceAgain verifies where the pods of a snapshot are placed, and figures of the end.
func TestPlaceAgain(t *testing.T) {
	high := "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n---\n"
	onWeb := ", affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {app: web}}, topologyKey: kubernetes.io/hostname}]}}"
	named := strings.Replace(nodes(1), "node-0", "node-0, labels: {kubernetes.io/hostname: node-0}", 1)
	hot := nodes(2) + born(1, "web-0", "ReplicaSet/web", "node-0", "1", "") + born(2, "web-1", "ReplicaSet/web", "node-0", "1", "") +
		used("NodeMetrics", "node-0", "3800m") + used("NodeMetrics", "node-1", "200m") + used("PodMetrics", "web-0", "1800m")
	for name, test := range map[string]struct {
		snapshot, arguments string
		// figures are those to print after the pods.
		figures, want string
	}{
		"in the order of their creation, and what stays": {
			nodes(1) + born(3, "a", "ReplicaSet/a", "node-0", "1500m", "") + born(1, "b", "ReplicaSet/b", "node-0", "1500m", "") +
				born(2, "c", "ReplicaSet/c", "''", "1500m", "") + born(9, "d", "", "node-0", "900m", "") + born(9, "e", "DaemonSet/e", "node-0", "50m", ""),
			"", "pods_placed pods_pending", "a@node-0 b@node-0 c@ pods_placed=2 pods_pending=1"},
		"a node with only a DaemonSet's pod is not used": {
			nodes(2) + born(1, "e-0", "DaemonSet/e", "node-0", "1", "") + born(1, "e-1", "DaemonSet/e", "node-1", "1", "") + born(2, "a", "ReplicaSet/a", "node-1", "1", ""),
			"", `nodes_used used_nodes_allocation_percent{resource="cpu"}`, `a@node-0 nodes_used=1 used_nodes_allocation_percent{resource="cpu"}=50`},
		"a bound volume keeps its pod in its zone": {
			zones(waiting) + born(1, "web-0", "StatefulSet/web", "node-0", "1", ", volumes: [{name: data, persistentVolumeClaim: {claimName: web-0-data}}]") + bound + born(2, "b", "", "node-0", "2", ""),
			"", "", "web-0@node-0"},
		"workloads in one zone": {
			zones("") + born(1, "web-0", "ReplicaSet/web", "node-0", "1", "") + born(2, "web-1", "ReplicaSet/web", "node-1", "1", ""),
			"--config packed.yaml", "workloads_in_one_zone zones", "web-0@node-0 web-1@node-0 workloads_in_one_zone=1 default/ReplicaSet/web=map[a:2]"},
		"a pod that waits for a later one comes before the next": {
			named + born(1, "a", "ReplicaSet/a", "node-0", "2", onWeb) + born(2, "web-0", "ReplicaSet/web", "node-0", "2", "") + born(3, "c", "ReplicaSet/c", "node-0", "2", ""),
			"", "", "a@node-0 c@ web-0@node-0"},
		"what is being deleted is gone": {
			nodes(1) + strings.Replace(born(9, "gone", "Job/gone", "node-0", "2", ", terminationGracePeriodSeconds: 315360000"), "creationT", "deletionTimestamp: 2026-11-01T00:00:30Z, creationT", 1) +
				born(1, "a", "ReplicaSet/a", "node-0", "2", "") + born(2, "b", "ReplicaSet/b", "node-0", "2", ""), "", "", "a@node-0 b@node-0"},
		"preemption": {
			high + named + born(1, "a", "ReplicaSet/a", "node-0", "3", "") + born(2, "web-0", "ReplicaSet/web", "node-0", "3", ", priorityClassName: high, priority: 1000") +
				born(3, "c", "ReplicaSet/c", "node-0", "1", onWeb) + born(4, "d", "ReplicaSet/d", "node-0", "1", ""),
			"", "preemptions pods_placed pods_pending", "a@node-0 a-again-2@ c@node-0 d@ web-0@node-0 preemptions=1 pods_placed=2 pods_pending=2"},
		"measured use moves":          {hot + used("PodMetrics", "web-1", "1800m"), "", "hot_nodes", "web-0@node-0 web-1@node-1 hot_nodes=0"},
		"use that is not a pod's":     {hot, "", "hot_nodes notes", "web-0@node-0 web-1@node-1 hot_nodes=1 1 pods have no measured use: what they use is still counted on the nodes where they were"},
		"only those that are pending": {nodes(1) + born(1, "a", "ReplicaSet/a", "node-0", "3", "") + born(2, "b", "ReplicaSet/b", "''", "3", ""), "--pending-only", "", "b@"},
	} {
		test := test
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process := command(t, test.arguments+" --output json --snapshot others.yaml")
			if err := os.WriteFile(filepath.Join(process.Dir, "others.yaml"), []byte(test.snapshot), 0o644); err != nil {
				t.Fatal(err)
			}
			output, err := process.Output()
			var c result.Comparison
			if err != nil || json.Unmarshal(output, &c) != nil {
				t.Fatalf("%v: %s", err, output)
			}
			var got []string
			for _, p := range c.Runs[0].Pods {
				got = append(got, strings.TrimPrefix(p.Name, "default/")+"@"+p.Node)
				if p.Bound > 0 && test.arguments != "--pending-only" {
					t.Errorf("%s has a time", p.Name)
				}
			}
			for _, name := range strings.Fields(test.figures) {
				for _, f := range c.Runs[0].Figures {
					if f.Name == name {
						got = append(got, fmt.Sprintf("%s=%g", name, f.Value))
					}
				}
				for _, w := range c.Runs[0].Workloads {
					if name == "zones" {
						got = append(got, fmt.Sprintf("%s=%v", w.Name, w.Zones))
					}
				}
				if name == "notes" {
					got = append(got, c.Runs[0].Notes...)
				}
			}
			if got := strings.Join(got, " "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
