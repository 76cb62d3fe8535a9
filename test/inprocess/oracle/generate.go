// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"math/rand"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// generator creates scenarios from few values, so that pods and nodes often match.
type generator struct {
	*rand.Rand
	nodes, pods int // made so far
	// roomy marks a large cluster in which most pods fit most nodes, so more nodes fit than the scheduler searches for.
	roomy bool
	// profiles is the number of profiles in the configuration. If they are used inTurn, the others rest while one is.
	profiles, profileInUse int
	inTurn                 bool
	// claims are the names of volume claims by namespace; unbound are those that a step may bind.
	claims  map[string][]string
	unbound []*v1.PersistentVolumeClaim
	// created are the pods that may exist, and last the last versions of the nodes that may.
	created []*v1.Pod
	last    map[string]*v1.Node
	again   int // number of names used again so far
	// overcommits is that of the scenario.
	overcommits bool
	// remembers marks a scenario with streams of pods, and kinds are the pods that they copy.
	remembers bool
	kinds     []*v1.Pod
}

// Generate returns the scenario of a number.
func Generate(seed int64) *Scenario {
	if seed%100 == 50 {
		return rounding(seed)
	}
	g := &generator{Rand: rand.New(rand.NewSource(seed)), claims: map[string][]string{}, last: map[string]*v1.Node{}}
	g.overcommits, g.remembers = seed%5 == 3, seed%5 == 1
	size := g.size()
	if g.remembers {
		size = []int{5, 8, 15, 25, 40, 150, 200, 350}[g.Intn(8)]
	}
	g.roomy = size >= 100
	s := &Scenario{Seed: seed, Config: g.config(), Features: map[string]bool{}, Graceful: g.one(3), Overcommits: g.overcommits}
	for _, name := range namespaces {
		s.Namespaces = append(s.Namespaces, g.namespace(name))
	}
	for i := g.Intn(3); i > 0; i-- {
		s.Services = append(s.Services, &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: g.of(namespaces...), Name: fmt.Sprintf("service-%d", i)},
			Spec:       v1.ServiceSpec{Selector: map[string]string{"app": g.of(apps...)}},
		})
	}
	for i := g.Intn(3); i > 0; i-- {
		one := intstr.FromInt(g.Intn(2))
		s.Budgets = append(s.Budgets, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: g.of(namespaces...), Name: fmt.Sprintf("budget-%d", i)},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: g.selector()},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(g.Intn(2))},
		})
	}
	if g.one(8) {
		s.Features["PreferNominatedNode"] = false
	}
	for i := 0; i < size; i++ {
		s.Nodes = append(s.Nodes, g.node(g.nodes))
		g.nodes++
	}
	if g.one(3) {
		g.volumes(s)
	}
	placed, steps := g.Intn(size*2), 4+g.Intn(8)
	if g.roomy {
		placed, steps = g.Intn(60), 3+g.Intn(3)
	} else if g.one(8) {
		steps *= 4
	}
	for i := placed; i > 0; i-- {
		pod := g.pod()
		pod.Spec.NodeName = s.Nodes[g.Intn(size)].Name
		g.created = append(g.created, pod)
		s.Steps = append(s.Steps, Step{Place: pod})
	}
	if g.remembers {
		s.Steps, steps = append(s.Steps, g.streams()...), 0
	}
	for i := steps; i > 0; i-- {
		s.Steps = append(s.Steps, g.step()...)
		// Nothing changes before a second retry.
		for g.one(2) {
			s.Steps = append(s.Steps, Step{Retry: true})
		}
	}
	s.overcommit()
	return s
}

// size returns the number of nodes, rarely more than the 100 that the scheduler always searches.
func (g *generator) size() int {
	switch n := g.Intn(100); {
	case n < 25:
		return 3
	case n < 55:
		return 10
	case n < 86:
		return 30
	case n < 97:
		return 100 + g.Intn(60)
	default:
		return 300 + g.Intn(100)
	}
}

var (
	namespaces = []string{"default", "other"}
	apps       = []string{"web", "db", "batch"}
	zoneNames  = []string{"a", "b", "c"}
	images     = []string{
		"registry.example.com/web:v1", "registry.example.com/db:latest", "registry.example.com/batch:v2",
	}
	// keys are labels that distinguish nodes; several nodes may lack one.
	keys = []string{v1.LabelTopologyZone, v1.LabelHostname, "rack", "disk"}
)

func (g *generator) of(values ...string) string { return values[g.Intn(len(values))] }

// often returns n, or four times as much in a roomy cluster.
func (g *generator) often(n int) int {
	if g.roomy {
		return 4 * n
	}
	return n
}

// one returns true once in n times.
func (g *generator) one(n int) bool { return g.Intn(n) == 0 }

func (g *generator) node(number int) *v1.Node {
	name := fmt.Sprintf("node-%d", number)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{}}}
	for _, key := range keys {
		value := ""
		switch key {
		case v1.LabelTopologyZone:
			value = g.of(zoneNames...)
		case v1.LabelHostname:
			value = name
		case "rack":
			value = g.of("1", "2", "3", "4", "5")
		case "disk":
			value = g.of("ssd", "hdd")
		}
		if !g.one(12) {
			node.Labels[key] = value
		}
	}
	node.Status.Capacity = v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse(g.of("1", "2", "4", "8")),
		v1.ResourceMemory: resource.MustParse(g.of("1Gi", "4Gi", "8Gi")),
		v1.ResourcePods:   resource.MustParse(g.of("3", "10", "110")),
	}
	if g.one(4) {
		node.Status.Capacity["example.com/gpu"] = resource.MustParse(g.of("1", "4"))
	}
	if g.one(4) {
		node.Status.Capacity[v1.ResourceEphemeralStorage] = resource.MustParse("10Gi")
	}
	if g.one(5) {
		node.Status.Capacity["attachable-volumes-gce-pd"] = resource.MustParse(g.of("1", "2"))
	}
	if g.roomy {
		node.Status.Capacity[v1.ResourcePods] = resource.MustParse("110")
	}
	node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	node.Spec.Unschedulable = g.one(g.often(15))
	for g.one(g.often(4)) {
		node.Spec.Taints = append(node.Spec.Taints, v1.Taint{
			Key: g.of("dedicated", "old"), Value: g.of("web", "db"),
			Effect: v1.TaintEffect(g.of(
				string(v1.TaintEffectNoSchedule), string(v1.TaintEffectPreferNoSchedule), string(v1.TaintEffectNoExecute))),
		})
	}
	node.Status.Images = g.images()
	g.last[name] = node
	return node
}

// images returns those of a node.
func (g *generator) images() (some []v1.ContainerImage) {
	for _, image := range images {
		if g.one(3) {
			some = append(some, v1.ContainerImage{Names: []string{image}, SizeBytes: int64(1+g.Intn(900)) << 20})
		}
	}
	return some
}

func (g *generator) pod() *v1.Pod {
	number := g.pods
	g.pods++
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: g.of(namespaces...), Name: fmt.Sprintf("pod-%d", number), Labels: g.labels(),
	}}
	priority := int32(g.Intn(3) * 10)
	pod.Spec.Priority = &priority
	if g.one(8) {
		never := v1.PreemptNever
		pod.Spec.PreemptionPolicy = &never
	}
	for i := 1 + g.Intn(2); i > 0; i-- {
		pod.Spec.Containers = append(pod.Spec.Containers, g.container(i))
	}
	if g.one(5) {
		pod.Spec.InitContainers = []v1.Container{g.container(9)}
	}
	if g.one(8) {
		pod.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("50m")}
	}
	for g.one(3) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{
			Key: g.of("dedicated", "old", ""), Operator: v1.TolerationOpExists,
			Effect: v1.TaintEffect(g.of("", string(v1.TaintEffectNoSchedule), string(v1.TaintEffectPreferNoSchedule))),
		})
	}
	if g.one(6) {
		pod.Spec.NodeSelector = map[string]string{"disk": g.of("ssd", "hdd")}
	}
	if g.profiles > 1 && g.inTurn {
		pod.Spec.SchedulerName = profileNames[g.profileInUse]
	} else if g.profiles > 1 && g.one(3) {
		pod.Spec.SchedulerName = profileNames[1+g.Intn(g.profiles-1)]
	}
	if len(g.claims) > 0 || g.one(8) {
		g.mount(pod)
	}
	if g.roomy && !g.remembers && !g.one(3) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{Operator: v1.TolerationOpExists})
		return pod
	}
	pod.Spec.Affinity = &v1.Affinity{}
	g.nodeAffinity(pod)
	if g.one(3) {
		pod.Spec.Affinity.PodAffinity = &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  g.terms(6),
			PreferredDuringSchedulingIgnoredDuringExecution: g.preferred(2),
		}
	}
	if g.one(3) {
		pod.Spec.Affinity.PodAntiAffinity = &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  g.terms(3),
			PreferredDuringSchedulingIgnoredDuringExecution: g.preferred(2),
		}
	}
	if g.one(8) {
		// Each key once.
		for _, i := range g.Perm(len(keys)) {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
				MaxSkew: int32(1 + g.Intn(5)), TopologyKey: keys[i], LabelSelector: g.selector(),
				WhenUnsatisfiable: v1.ScheduleAnyway,
			})
		}
	} else if g.one(3) {
		for i := 1 + g.Intn(3); i > 0; i-- {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
				MaxSkew: int32(1 + g.Intn(3)), TopologyKey: g.of(keys...), LabelSelector: g.selector(),
				WhenUnsatisfiable: v1.UnsatisfiableConstraintAction(g.of(string(v1.DoNotSchedule), string(v1.ScheduleAnyway))),
			})
		}
	}
	return pod
}

func (g *generator) labels() map[string]string {
	labels := map[string]string{"app": g.of(apps...)}
	if g.one(3) {
		labels["tier"] = g.of("front", "back")
	}
	return labels
}

func (g *generator) container(number int) v1.Container {
	requests := v1.ResourceList{}
	if !g.one(5) {
		requests[v1.ResourceCPU] = resource.MustParse(g.of("50m", "300m", "1", "3"))
	}
	if !g.one(5) {
		requests[v1.ResourceMemory] = resource.MustParse(g.of("64Mi", "500Mi", "2Gi"))
	}
	if g.one(10) {
		requests["example.com/gpu"] = resource.MustParse("1")
	}
	if g.one(10) {
		requests[v1.ResourceEphemeralStorage] = resource.MustParse("3Gi")
	}
	container := v1.Container{
		// The container runtime adds a missing tag.
		Name: fmt.Sprintf("c%d", number), Image: strings.TrimSuffix(g.of(images...), ":latest"),
		Resources: v1.ResourceRequirements{Requests: requests},
	}
	if g.one(12) {
		container.Ports = []v1.ContainerPort{
			{ContainerPort: 80, HostPort: int32(8080 + g.Intn(2)), Protocol: v1.ProtocolTCP}}
	}
	return container
}

func (g *generator) selector() *metav1.LabelSelector {
	if g.one(8) {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOperator(g.of("Exists", "DoesNotExist"))},
		}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": g.of(apps...)}}
}

func (g *generator) nodeAffinity(pod *v1.Pod) {
	if !g.one(4) {
		return
	}
	affinity := &v1.NodeAffinity{}
	if g.one(4) {
		// Like the pods of a DaemonSet.
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn,
				Values: []string{fmt.Sprintf("node-%d", g.Intn(g.nodes+1))},
			}},
		}}}
	} else if g.one(2) {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{}
		for i := 1 + g.Intn(2); i > 0; i-- {
			required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, g.nodeTerm())
		}
	}
	for g.one(2) {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
			affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			v1.PreferredSchedulingTerm{Weight: int32(1 + g.Intn(50)), Preference: g.nodeTerm()})
	}
	pod.Spec.Affinity.NodeAffinity = affinity
}

func (g *generator) nodeTerm() v1.NodeSelectorTerm {
	requirement := v1.NodeSelectorRequirement{Key: g.of("disk", "rack"), Operator: v1.NodeSelectorOperator(g.of("In", "NotIn"))}
	requirement.Values = [][]string{{"ssd"}, {"1"}, {"ssd", "1"}, {"ssd1"}, {"2"}}[g.Intn(5)]
	switch g.Intn(6) {
	case 0:
		requirement.Key, requirement.Values = metav1.ObjectNameField, []string{fmt.Sprintf("node-%d", g.Intn(g.nodes+1))}
		return v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{requirement}}
	case 1:
		requirement.Operator, requirement.Values = v1.NodeSelectorOperator(g.of("Exists", "DoesNotExist")), nil
	case 2:
		requirement.Operator, requirement.Values = v1.NodeSelectorOperator(g.of("Gt", "Lt")), []string{"2"}
	}
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{requirement}}
}

// terms returns one or two terms once in n times, and none otherwise.
func (g *generator) terms(n int) []v1.PodAffinityTerm {
	var terms []v1.PodAffinityTerm
	if g.one(n) {
		for i := 1 + g.Intn(2); i > 0; i-- {
			terms = append(terms, g.term())
		}
	}
	return terms
}

func (g *generator) term() v1.PodAffinityTerm {
	term := v1.PodAffinityTerm{TopologyKey: g.of(keys...), LabelSelector: g.selector()}
	switch g.Intn(5) {
	case 0:
		term.Namespaces = []string{g.of(namespaces...)}
	case 1:
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": g.of("red", "blue")}}
	case 2:
		term.NamespaceSelector = &metav1.LabelSelector{}
	}
	return term
}

func (g *generator) preferred(n int) []v1.WeightedPodAffinityTerm {
	var terms []v1.WeightedPodAffinityTerm
	for g.one(n) {
		terms = append(terms, v1.WeightedPodAffinityTerm{Weight: int32(1 + g.Intn(100)), PodAffinityTerm: g.term()})
	}
	return terms
}
