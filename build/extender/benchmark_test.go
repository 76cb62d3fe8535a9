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

// realNode is a node of the size that nodes have in clusters: with the 50 images that a kubelet reports, and with what
// the API server notes about who set which field.
func realNode(i int) *corev1.Node {
	name := fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/250, i%250)
	node := st.MakeNode().Name(name).Label("disktype", []string{"ssd", "hdd"}[i%2]).Obj()
	for key := range 15 {
		metav1.SetMetaDataLabel(&node.ObjectMeta, fmt.Sprintf("node.example.com/label-%d", key), name)
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, fmt.Sprintf("node.example.com/annotation-%d", key), name)
	}
	for image := range 50 {
		repository := fmt.Sprintf("registry.example.com/team-%d/application-%d", image%7, image)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{repository + "@sha256:" + strings.Repeat("0123456789abcdef", 4), repository + ":v1.2.3"}, SizeBytes: 1 << 28,
		})
	}
	for _, condition := range []corev1.NodeConditionType{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: condition, Status: "False", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			Reason: "KubeletReason", Message: "kubelet says so",
		})
	}
	for _, manager := range []string{"kubelet", "kube-controller-manager", "cloud-controller-manager"} {
		now := metav1.Now()
		node.ManagedFields = append(node.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", Time: &now,
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{` + strings.Repeat(`"f:annotations":{".":{}},`, 30) + `"f:labels":{}}}`)},
		})
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
