// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// realNode is a node of 16 kB, as nodes with tens of images are.
func realNode(i int) *corev1.Node {
	node := diskNode(fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/250, i%250), []string{"ssd", "hdd"}[i%2])
	for j := range 44 {
		image := fmt.Sprintf("registry.example.com/team-%d/application-%d", j%7, j)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{image + "@sha256:" + strings.Repeat("0123456789abcdef", 4), image + ":v1.2.3"}, SizeBytes: 1 << 28,
		})
		metav1.SetMetaDataLabel(&node.ObjectMeta, fmt.Sprintf("node.example.com/label-%d", j), node.Name)
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, fmt.Sprintf("node.example.com/annotation-%d", j), node.Name)
	}
	return node
}

// BenchmarkVerbs asks about 5,000 nodes, each with 30 pods.
func BenchmarkVerbs(b *testing.B) {
	const count, podsEach = 5000, 30
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	for i := range count {
		node := realNode(i)
		nodes = append(nodes, node)
		for j := range podsEach {
			pods = append(pods, st.MakePod().Name(fmt.Sprintf("pod-%d-%d", i, j)).Namespace("default").
				UID(fmt.Sprintf("%d-%d", i, j)).Node(node.Name).
				Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "100m", corev1.ResourceMemory: "100Mi"}).Obj())
		}
	}
	f := newFixture(b, byDiskType, Limits{RequestTimeout: time.Hour, MaxBodyBytes: 1 << 30}, objects(nodes, pods...)...)
	for _, mode := range []string{"names", "whole nodes"} {
		body := encode(b, args(mode, nodes...))
		for _, verb := range []struct {
			name string
			ask  answerFunc
		}{
			{"filter", inTurn(f.decider, decodeQuestion, f.decider.filter)},
			{"prioritize", inTurn(f.decider, decodeQuestion, f.decider.prioritize)},
		} {
			b.Run(verb.name+" "+mode, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := verb.ask(b.Context(), body); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/count, "ns/node")
				b.ReportMetric(float64(len(body))/count, "bytes/node")
			})
		}
	}
}
