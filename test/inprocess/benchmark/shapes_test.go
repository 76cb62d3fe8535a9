// SPDX-License-Identifier: Apache-2.0

// Package benchmark measures the cost of scheduling decisions, for clusters and pods of many shapes. It only imports
// upstream's packages, so that it compiles with stock Kubernetes and with the patched tree.
package benchmark

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const (
	zones = 10
	// group is the number of pods of one application.
	group      = 100
	gpu        = v1.ResourceName("example.com/gpu")
	appLabel   = "app"
	groupLabel = "group"
)

// shape is a kind of cluster with a kind of pods. The pods of a shape are created by number.
type shape struct {
	name string
	// node changes a node before it is created, given the number of nodes; nil changes nothing.
	node func(i int, node *v1.Node)
	// objects returns the objects that are created before the pods: those for the nodes, and for pods up to a number.
	objects func(pods, nodes int) []runtime.Object
	// pod returns the pod to schedule; nil means a basic one.
	pod func(i, nodes int) *v1.Pod
	// running returns the pods that already run on the nodes; nil means pods of the same kind.
	running func(i, nodes int) *v1.Pod
	// podsPerNode is how many of them are on each node; if 0, the scheduler places them.
	podsPerNode int
	// fails is true if no node fits, so that preemption is tried.
	fails bool
	// churn changes the cluster before each decision; nil changes nothing.
	churn func(tb testing.TB, c *cluster)
	// nodes is the number of nodes of an adversary.
	nodes int
}

// basic returns a pod that only has requests.
func basic(i, _ int) *v1.Pod { return sized(i, "100m", 0) }

// inEachZone returns a basic pod; the first ones cover all zones, independent of random ties.
func inEachZone(i, nodes int) *v1.Pod {
	pod := basic(i, nodes)
	pod.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%zones)}
	return pod
}

// sized returns a pod with a CPU request and a priority.
func sized(i int, cpu string, priority int32) *v1.Pod {
	return st.MakePod().Namespace(metav1.NamespaceDefault).Name(fmt.Sprintf("pod-%d", i)).Priority(priority).
		Label(appLabel, "app").Label(groupLabel, fmt.Sprint(i/group)).
		Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: "200Mi"}).Obj()
}

// ofOwnSize returns a pod with other requests than every other one, so that an attempt cannot use those of others.
func ofOwnSize(i int, cpu string, priority int32) *v1.Pod {
	pod := sized(i, cpu, priority)
	pod.Spec.Containers[0].Resources.Requests[v1.ResourceMemory] = *resource.NewQuantity(200<<20+int64(i)<<10, resource.BinarySI)
	return pod
}

func ofApp() *metav1.LabelSelector { return selector(appLabel, "app") }

func ofGroup(i int) *metav1.LabelSelector { return selector(groupLabel, fmt.Sprint(i/group)) }

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// with returns a changed basic pod.
func with(change func(i int, pod *v1.Pod)) func(i, nodes int) *v1.Pod {
	return func(i, nodes int) *v1.Pod {
		pod := basic(i, nodes)
		change(i, pod)
		return pod
	}
}

func term(topologyKey string, selector *metav1.LabelSelector) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{TopologyKey: topologyKey, LabelSelector: selector}
}

func preferred(topologyKey string, selector *metav1.LabelSelector) []v1.WeightedPodAffinityTerm {
	return []v1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term(topologyKey, selector)}}
}

func inZones(zones ...string) *v1.NodeAffinity {
	return pinned(v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
		{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: zones},
	}})
}

func pinned(term v1.NodeSelectorTerm) *v1.NodeAffinity {
	selector := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}
	return &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}
}

func spread(maxSkew int32, topologyKey string, when v1.UnsatisfiableConstraintAction,
	selector *metav1.LabelSelector) v1.TopologySpreadConstraint {
	return v1.TopologySpreadConstraint{
		MaxSkew: maxSkew, TopologyKey: topologyKey, WhenUnsatisfiable: when, LabelSelector: selector}
}

// shapes are the measured shapes.
var shapes = []shape{
	{name: "basic"},
	{name: "node-affinity", pod: with(func(_ int, pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: inZones("zone-1", "zone-2")}
	})},
	{name: "affinity-zone-required", pod: with(func(_ int, pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term(v1.LabelTopologyZone, ofApp())},
		}}
	})},
	{name: "affinity-zone-preferred", pod: with(func(_ int, pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: preferred(v1.LabelTopologyZone, ofApp()),
		}}
	})},
	{name: "affinity-hostname-preferred", pod: with(func(i int, pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: preferred(v1.LabelHostname, ofGroup(i)),
		}}
	})},
	{name: "anti-affinity-zone-required", fails: true, running: inEachZone, pod: with(func(_ int, pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term(v1.LabelTopologyZone, ofApp())},
		}}
	})},
	{name: "anti-affinity-hostname-required", pod: with(func(i int, pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term(v1.LabelHostname, ofGroup(i))},
		}}
	})},
	{name: "anti-affinity-zone-preferred", pod: with(func(i int, pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: preferred(v1.LabelTopologyZone, ofGroup(i)),
		}}
	})},
	{name: "anti-affinity-hostname-preferred", pod: with(func(i int, pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: preferred(v1.LabelHostname, ofGroup(i)),
		}}
	})},
	{name: "spread-hard", pod: with(func(_ int, pod *v1.Pod) {
		pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{
			spread(5, v1.LabelTopologyZone, v1.DoNotSchedule, ofApp())}
	})},
	{name: "spread-soft", pod: with(func(_ int, pod *v1.Pod) {
		pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{
			spread(5, v1.LabelTopologyZone, v1.ScheduleAnyway, ofApp()), spread(5, v1.LabelHostname, v1.ScheduleAnyway, ofApp()),
		}
	})},
	{name: "spread-default", objects: func(int, int) []runtime.Object {
		return []runtime.Object{&v1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "app"},
			Spec:       v1.ServiceSpec{Selector: map[string]string{appLabel: "app"}},
		}}
	}},
	{name: "images", node: func(i int, node *v1.Node) {
		for n := 0; n < 20; n++ {
			node.Status.Images = append(node.Status.Images,
				v1.ContainerImage{Names: []string{image(i + n)}, SizeBytes: int64(100+n) << 20})
		}
	}, pod: with(func(i int, pod *v1.Pod) { pod.Spec.Containers[0].Image = image(i / group) })},
	{name: "taints", node: func(i int, node *v1.Node) {
		node.Spec.Taints = []v1.Taint{{Key: "team", Value: fmt.Sprint(i % 4), Effect: v1.TaintEffectNoSchedule}}
		if i%2 == 0 {
			node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: "old", Effect: v1.TaintEffectPreferNoSchedule})
		}
	}, pod: with(func(_ int, pod *v1.Pod) {
		pod.Spec.Tolerations = []v1.Toleration{
			{Key: "team", Operator: v1.TolerationOpEqual, Value: "1"}, {Key: "team", Operator: v1.TolerationOpEqual, Value: "2"},
		}
	})},
	{name: "extended-resources", node: func(i int, node *v1.Node) {
		if i%4 == 0 {
			node.Status.Capacity[gpu], node.Status.Allocatable[gpu] = resource.MustParse("16"), resource.MustParse("16")
		}
	}, pod: with(func(_ int, pod *v1.Pod) { pod.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1") })},
	{name: "host-ports", pod: with(func(i int, pod *v1.Pod) {
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: int32(8000 + i/group), ContainerPort: 80}}
	})},
	{name: "volumes", objects: volumes, pod: with(func(i int, pod *v1.Pod) {
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim(i)},
		}}}
	})},
	{name: "namespace-selectors", objects: func(int, int) []runtime.Object {
		var namespaces []runtime.Object
		for i := 0; i < teams; i++ {
			namespaces = append(namespaces, &v1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: team(i), Labels: map[string]string{"half": fmt.Sprint(i % 2)}},
			})
		}
		return namespaces
	}, pod: with(func(i int, pod *v1.Pod) {
		pod.Namespace = team(i)
		away := term(v1.LabelHostname, ofGroup(i))
		away.NamespaceSelector = selector("half", fmt.Sprint(i%2))
		pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{away},
		}}
	})},
	{name: "unschedulable-too-large", fails: true, running: basic,
		pod: func(i, _ int) *v1.Pod { return ofOwnSize(i, "64", 0) }},
	{name: "unschedulable-fits-when-empty", fails: true, podsPerNode: 1,
		running: func(i, _ int) *v1.Pod { return sized(i, "1", 0) },
		pod:     func(i, _ int) *v1.Pod { return ofOwnSize(i, "3500m", 0) }},
	{name: "unschedulable-with-victims", fails: true, podsPerNode: 1,
		running: func(i, _ int) *v1.Pod { return sized(i, "3", int32(i%5)) },
		pod:     func(i, _ int) *v1.Pod { return ofOwnSize(i, "2", 10) }},
	{name: "daemonset", pod: func(i, nodes int) *v1.Pod {
		pod := basic(i, nodes)
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: pinned(v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{nodeName(i % nodes)}},
		}})}
		return pod
	}},
	{name: "mixed", churn: changeSome, pod: with(func(i int, pod *v1.Pod) {
		switch i % 10 {
		case 0, 1:
			pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{
				spread(5, v1.LabelTopologyZone, v1.ScheduleAnyway, ofGroup(i))}
		case 2:
			pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: preferred(v1.LabelHostname, ofGroup(i)),
			}}
		case 3:
			pod.Spec.Affinity = &v1.Affinity{NodeAffinity: inZones("zone-1", "zone-2")}
		case 4:
			pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{
				spread(50, v1.LabelTopologyZone, v1.DoNotSchedule, ofApp())}
		}
	})},
}

// teams is the number of namespaces in addition to the default one.
const teams = 20

func team(i int) string { return fmt.Sprintf("team-%d", i%teams) }

func image(i int) string { return fmt.Sprintf("registry.example.com/team/app-%d:v1", i%50) }

func claim(i int) string { return fmt.Sprintf("claim-%d", i) }

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// cluster returns the nodes of a shape.
func (s *shape) cluster(n int) []*v1.Node {
	var nodes []*v1.Node
	for i := 0; i < n; i++ {
		node := st.MakeNode().Name(nodeName(i)).
			Label(v1.LabelHostname, nodeName(i)).Label(v1.LabelTopologyZone, fmt.Sprintf("zone-%d", i%zones)).
			Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "4", v1.ResourceMemory: "32Gi", v1.ResourcePods: "110"}).Obj()
		if s.nodes > 0 && !s.fails {
			spacious(node)
		}
		if s.node != nil {
			s.node(i, node)
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// volumes returns a claim for each pod with a volume that is usable in one zone, and the CSINodes of the driver.
func volumes(pods, nodes int) []runtime.Object {
	var objects []runtime.Object
	limit := int32(25)
	for i := 0; i < nodes; i++ {
		objects = append(objects, &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
				{Name: "csi.example.com", NodeID: nodeName(i), Allocatable: &storagev1.VolumeNodeResources{Count: &limit}},
			}},
		})
	}
	for i := 0; i < pods; i++ {
		claim, volume := claim(i), fmt.Sprintf("volume-%d", i)
		size := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
		objects = append(objects, &v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: volume},
			Spec: v1.PersistentVolumeSpec{
				Capacity: size, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
				PersistentVolumeSource: v1.PersistentVolumeSource{
					CSI: &v1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: volume}},
				ClaimRef: &v1.ObjectReference{Namespace: metav1.NamespaceDefault, Name: claim, UID: types.UID(claim)},
				NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
					MatchExpressions: []v1.NodeSelectorRequirement{
						{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{fmt.Sprintf("zone-%d", i%zones)}},
					},
				}}}},
			},
		}, &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: claim, UID: types.UID(claim),
				Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"},
			},
			Spec: v1.PersistentVolumeClaimSpec{
				VolumeName: volume, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}},
			Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, Capacity: size},
		})
	}
	return objects
}
