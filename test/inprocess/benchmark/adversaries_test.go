// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// spreadOver returns a pod with constraints over zones and hostnames.
func spreadOver(pod *v1.Pod, when v1.UnsatisfiableConstraintAction, selector *metav1.LabelSelector) {
	pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{
		spread(5000, v1.LabelTopologyZone, when, selector), spread(5000, v1.LabelHostname, when, selector)}
}

func preferring(pod *v1.Pod, terms ...v1.WeightedPodAffinityTerm) {
	pod.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
}

var (
	// related prefers the zone of its application, and spreads over zones and hostnames.
	related = with(func(_ int, pod *v1.Pod) {
		preferring(pod, preferred(v1.LabelTopologyZone, ofApp())...)
		spreadOver(pod, v1.ScheduleAnyway, ofApp())
	})
	preferringApp = with(func(_ int, pod *v1.Pod) { preferring(pod, preferred(v1.LabelTopologyZone, ofApp())...) })
	ownLabel      = with(func(i int, pod *v1.Pod) { pod.Labels["job-name"] = fmt.Sprint("job-", i) })
	selectsOwn    = with(func(i int, pod *v1.Pod) {
		pod.Labels["job-name"] = fmt.Sprint("job-", i)
		preferring(pod, preferred(v1.LabelHostname, selector("job-name", fmt.Sprint("job-", i)))...)
	})
)

// spacious makes room for all pods.
func spacious(node *v1.Node) {
	for _, list := range []v1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		list[v1.ResourcePods], list[v1.ResourceCPU] = resource.MustParse("10000"), resource.MustParse("10000")
		list[v1.ResourceMemory] = resource.MustParse("100Ti")
	}
}

// requesting returns pods of so many kinds, in turn.
func requesting(kinds int) func(i, nodes int) *v1.Pod {
	return with(func(i int, pod *v1.Pod) {
		pod.Spec.Containers[0].Resources.Requests[v1.ResourceMemory] = *resource.NewQuantity(int64(1+i%kinds), resource.BinarySI)
	})
}

// removeOrAddNode removes a node, or adds it again.
func removeOrAddNode(tb testing.TB, c *cluster) {
	if c.changes++; c.changes%2 == 0 {
		c.SchedulerCache.AddNode(c.nodes[0])
	} else if err := c.SchedulerCache.RemoveNode(c.nodes[0]); err != nil {
		tb.Fatal(err)
	}
}

const topologyKeys = 17

func topologyKey(i int) string { return fmt.Sprint("topology-", i%topologyKeys) }

// adversaries are shapes where what is kept between decisions may cost more than it saves.
var adversaries = []shape{
	{name: "one-pod-replaced", pod: related, nodes: 2, podsPerNode: 5000, churn: replacePods(1)},
	{name: "one-pod-replaced", pod: related, nodes: 10, podsPerNode: 500, churn: replacePods(1)},
	{name: "all-pods-replaced", pod: related, nodes: 10, podsPerNode: 110, churn: replacePods(1100)},
	{name: "tenth-of-pods-replaced", pod: related, nodes: 1000, podsPerNode: 10, churn: replacePods(1000)},
	{name: "own-label", pod: preferringApp, running: ownLabel, nodes: 1000, podsPerNode: 100},
	{name: "own-label-selected", running: ownLabel, pod: selectsOwn, nodes: 1000, podsPerNode: 20},
	{name: "own-term", pod: selectsOwn, nodes: 1000, podsPerNode: 20},
	{name: "own-not-in-term", pod: with(func(i int, pod *v1.Pod) {
		preferring(pod, preferred(v1.LabelTopologyZone, &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: appLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprint("app-", i)}},
		}})...)
	}), nodes: 1000, podsPerNode: 20},
	{name: "preemption-hard-spread", fails: true,
		running: func(i, _ int) *v1.Pod { return sized(i, "3", int32(i%5)) },
		pod: func(i, _ int) *v1.Pod {
			pod := ofOwnSize(i, "2", 10)
			spreadOver(pod, v1.DoNotSchedule, ofApp())
			return pod
		}, nodes: 1000, podsPerNode: 1},
	{name: "other-node-labels-change", pod: related, nodes: 1000, podsPerNode: 20,
		churn: changeNodes(func(i int, node *v1.Node) { node.Labels["load"] = fmt.Sprint(i) })},
	{name: "own-taint-tolerated", node: ownTaint, pod: with(func(_ int, pod *v1.Pod) {
		pod.Spec.Tolerations = []v1.Toleration{{Key: "own", Operator: v1.TolerationOpExists}}
	}), nodes: 1000, podsPerNode: 1},
	{name: "own-taint", node: ownTaint, fails: true, nodes: 1000, podsPerNode: 1},
	{name: "300-selectors", pod: ofManyApps, nodes: 1000, podsPerNode: 10},
	{name: "nil-and-empty-selectors", pod: with(func(i int, pod *v1.Pod) {
		var selector *metav1.LabelSelector
		if i%2 == 0 {
			selector = &metav1.LabelSelector{}
		}
		spreadOver(pod, v1.ScheduleAnyway, selector)
	}), nodes: 1000, podsPerNode: 10},
	{name: "17-topology-keys", running: ownLabel, node: func(i int, node *v1.Node) {
		for key := 0; key < topologyKeys; key++ {
			node.Labels[topologyKey(key)] = fmt.Sprint(i % (key + 2))
		}
	}, pod: with(func(i int, pod *v1.Pod) { preferring(pod, preferred(topologyKey(i), ofApp())...) }),
		nodes: 1000, podsPerNode: 30},
	{name: "few-nodes", nodes: 1, podsPerNode: 10, churn: replacePods(1)},
	{name: "few-nodes", nodes: 2, podsPerNode: 10, churn: replacePods(1)},
	{name: "few-nodes", nodes: 3, podsPerNode: 10, churn: replacePods(1)},
	{name: "few-nodes-related", pod: related, nodes: 3, podsPerNode: 10, churn: replacePods(1)},
	{name: "own-requests", pod: requesting(1 << 30), nodes: 5000, podsPerNode: 1},
	{name: "1000-kinds-in-turn", pod: requesting(1000), nodes: 5000, podsPerNode: 1},
	{name: "node-removed-or-added", nodes: 5000, podsPerNode: 1, churn: removeOrAddNode},
	{name: "all-nodes-change", pod: related, nodes: 5000, podsPerNode: 4, churn: changeNodes(func(int, *v1.Node) {})},
}

func ownTaint(i int, node *v1.Node) {
	node.Spec.Taints = []v1.Taint{{Key: "own", Value: fmt.Sprint(i), Effect: v1.TaintEffectNoSchedule}}
}

func ofManyApps(i, nodes int) *v1.Pod {
	pod := basic(i, nodes)
	pod.Labels[appLabel] = fmt.Sprint("app-", i%300)
	spreadOver(pod, v1.ScheduleAnyway, selector(appLabel, pod.Labels[appLabel]))
	return pod
}

// replacePods replaces the oldest pods by others of their kind on the same nodes.
func replacePods(n int) func(tb testing.TB, c *cluster) {
	return func(tb testing.TB, c *cluster) {
		for i := 0; i < n; i++ {
			old := c.placed[0]
			pod := old.DeepCopy()
			pod.Name = fmt.Sprint("pod-", c.made)
			pod.UID = types.UID(pod.Name)
			c.made++
			if err := c.SchedulerCache.RemovePod(old); err != nil {
				tb.Fatal(err)
			}
			if err := c.SchedulerCache.AddPod(pod); err != nil {
				tb.Fatal(err)
			}
			c.placed = append(c.placed[1:], pod)
		}
	}
}

// changeNodes changes all nodes.
func changeNodes(change func(i int, node *v1.Node)) func(tb testing.TB, c *cluster) {
	return func(_ testing.TB, c *cluster) {
		for i, old := range c.nodes {
			node := old.DeepCopy()
			c.changes++
			change(c.changes, node)
			c.SchedulerCache.UpdateNode(old, node)
			c.nodes[i] = node
		}
	}
}
