// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"kube-scheduler-fork/test/inprocess/decision"
)

const (
	// heartbeatSeconds is the interval in which each node reports its status, and imagesPerNode is what a kubelet reports.
	heartbeatSeconds, imagesPerNode = 10, 50
)

// beating are the shapes of pods alone, and of those for which data of nodes is kept between decisions: by 0560, by 0570,
// by 0570 and 0575, and by 0590.
var beating = map[string]bool{
	"basic": true, "spread-hard": true, "affinity-zone-required": true, "anti-affinity-hostname-required": true,
	"unschedulable-too-large": true,
}

// BenchmarkHeartbeats times an attempt after a second's heartbeats, and one without, and the heartbeats alone; in the CPU
// time of the scheduler's cache and of the attempt. Each heartbeat has a new time and another image.
func BenchmarkHeartbeats(b *testing.B) {
	decision.Quiet(b)
	for i := range shapes {
		shape := &shapes[i]
		if !beating[shape.name] {
			continue
		}
		for _, nodes := range numbers(b, *nodesFlag) {
			var h *heartbeats
			for _, of := range []struct {
				name            string
				beats, attempts int
			}{
				{"attempt", 0, 1}, {"heartbeats", nodes / heartbeatSeconds, 0}, {"both", nodes / heartbeatSeconds, 1},
			} {
				b.Run(fmt.Sprintf("shape=%s/nodes=%d/of=%s", shape.name, nodes, of.name), func(sub *testing.B) {
					if h == nil {
						h = newHeartbeats(b, shape, nodes)
					}
					h.measure(sub, of.beats, of.attempts)
				})
			}
			if h != nil {
				h.Stop()
			}
		}
	}
}

// heartbeats is a cluster whose nodes have two versions each that alternate.
type heartbeats struct {
	*cluster
	versions [2][]*v1.Node
	beaten   int
}

func newHeartbeats(tb testing.TB, shape *shape, nodes int) *heartbeats {
	h := &heartbeats{cluster: newCluster(tb, shape, nodes, 1)}
	for version := range h.versions {
		for i, node := range h.nodes {
			node = node.DeepCopy()
			node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{
				Type: v1.NodeReady, Status: v1.ConditionTrue, LastHeartbeatTime: metav1.Unix(int64(version), 0),
			})
			for image := 0; image < imagesPerNode; image++ {
				name := fmt.Sprintf("example.com/image-%d-%d", i%10, image)
				if image == 0 {
					name = fmt.Sprintf("example.com/image-of-%d-%d", i, version)
				}
				node.Status.Images = append(node.Status.Images, v1.ContainerImage{Names: []string{name}, SizeBytes: 1 << 25})
			}
			h.versions[version] = append(h.versions[version], node)
		}
	}
	h.beat(len(h.nodes))
	return h
}

// beat has the scheduler's cache receive the next heartbeats, of one node after the other.
func (h *heartbeats) beat(count int) {
	for ; count > 0; count-- {
		node, round := h.beaten%len(h.nodes), h.beaten/len(h.nodes)
		h.SchedulerCache.UpdateNode(h.versions[(round+1)%2][node], h.versions[round%2][node])
		h.beaten++
	}
}

func (h *heartbeats) measure(b *testing.B, beats, attempts int) {
	pods := h.queue(b, b.N*attempts)
	runtime.GC()
	b.ReportAllocs()
	before := processorTime(b)
	b.ResetTimer()
	if attempts == 0 {
		for i := 0; i < b.N; i++ {
			h.beat(beats)
		}
	} else {
		h.Attempts(len(pods), func() { h.beat(beats) })
	}
	b.StopTimer()
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
	h.dequeue(b, pods)
}
