// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"kube-scheduler-fork/build/localcluster"
)

// Rank is the label by which RankedConfig orders the nodes.
const Rank = "example.com/rank"

// RankedConfig returns a configuration in which no two of the first ShapedNodes have the same score: NodeAffinity gives each
// another number from 0 to 100, and the weights of all other plugins are multiples of 101.
func RankedConfig(nodes int) string {
	var text strings.Builder
	text.WriteString(`apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
parallelism: 1
percentageOfNodesToScore: 100
profiles:
  - plugins:
      score:
        disabled: [{name: "*"}]
        enabled:
          - {name: NodeAffinity, weight: 1}
          - {name: NodeResourcesFit, weight: 101}
          - {name: NodeResourcesBalancedAllocation, weight: 101}
          - {name: PodTopologySpread, weight: 202}
          - {name: InterPodAffinity, weight: 101}
          - {name: TaintToleration, weight: 303}
    pluginConfig:
      - name: NodeAffinity
        args:
          addedAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
`)
	for i := range nodes {
		fmt.Fprintf(&text, "              - {weight: %d, preference: {matchExpressions: [{key: %s, operator: In, values: [\"%d\"]}]}}\n", i+1, Rank, i)
	}
	return text.String()
}

// ShapedNode returns one of the nodes, of different sizes in three zones.
func ShapedNode(i int) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("orion-%02d", i), Labels: map[string]string{
		corev1.LabelTopologyZone: fmt.Sprintf("zone-%c", 'a'+i%3), "disk": []string{"nimbus", "cirrus"}[i%2], Rank: fmt.Sprint(i),
	}}}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(10+2*(i%5)), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(24+4*(i%7))<<30, resource.BinarySI),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	node.Status.Allocatable = node.Status.Capacity
	switch i % 10 {
	case 0:
		node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "vega", Effect: corev1.TaintEffectNoSchedule}}
	case 1:
		node.Spec.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	return node
}

// ShapedPod returns one of the pods, of eight shapes and more sizes. Its name does not tell when it is created.
func ShapedPod(i int) *corev1.Pod {
	app := map[string]string{"app": fmt.Sprintf("lyra-%d-%d", i%8, i/100)}
	pod := localcluster.NewPod(fmt.Sprintf("%s-%03d", app["app"], i), "")
	pod.Labels = app
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app["app"], UID: "1", Controller: &controller,
	}}
	spec, selector := &pod.Spec, &metav1.LabelSelector{MatchLabels: app}
	spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "andromeda"}}
	spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(100+70*(i%7)), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(256+128*(i%5))<<20, resource.BinarySI),
	}
	spread := func(key string, skew int32, when corev1.UnsatisfiableConstraintAction) {
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: when, LabelSelector: selector})
	}
	term := func(key string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: selector}
	}
	switch i % 8 {
	case 1:
		spec.NodeSelector = map[string]string{"disk": "cirrus"}
	case 2:
		spread(corev1.LabelTopologyZone, 1, corev1.DoNotSchedule)
	case 3:
		spread(corev1.LabelTopologyZone, 2, corev1.DoNotSchedule)
		spread(corev1.LabelHostname, 1, corev1.ScheduleAnyway)
	case 4:
		spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(corev1.LabelTopologyZone)}}}
	case 5:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(corev1.LabelHostname)}}}
	case 6:
		spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term(corev1.LabelHostname)}}}}
	}
	return pod
}

// AwaitRunning waits until a pod runs, and returns its node. Then the versions of pods are in the order of their bindings.
func AwaitRunning(t testing.TB, watched watch.Interface, name string) string {
	t.Helper()
	for {
		select {
		case event, open := <-watched.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !open || !ok {
				t.Fatalf("the watch of pods ended: %v", event.Object)
			}
			if pod.Name != name {
				continue
			}
			if pod.Status.Phase == corev1.PodRunning {
				return pod.Spec.NodeName
			}
			if why := WhyPending(pod); why != "" {
				t.Fatalf("%s was not bound: %s", name, why)
			}
		case <-t.Context().Done():
			t.Fatal("the test ended")
		}
	}
}
