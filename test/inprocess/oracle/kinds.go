// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/pointer"
)

// A scheduler may remember the results of plugins for a kind of pod on a node. Scenarios with streams test this: most pods
// equal an earlier one, others differ from it in one field that one plugin reads. Between them nodes change, change back and
// are made again.

// streams returns the steps of such a scenario.
func (g *generator) streams() []Step {
	var steps []Step
	for i := 5 + g.Intn(4); i > 0; i-- {
		if len(g.kinds) == 0 || g.one(4) {
			g.kind()
		}
		steps = append(steps, g.stream())
		for g.Intn(4) > 0 {
			steps = append(steps, Step{Retry: true})
		}
		for g.Intn(3) > 0 {
			steps = append(steps, g.disturbance()...)
		}
	}
	return steps
}

// kind adds a pod to the kinds of the next streams, and others that differ from it in one field.
func (g *generator) kind() {
	pod := g.pod()
	if spec := &pod.Spec; !g.one(4) {
		// It fits some nodes, and no plugin that reads other nodes rejects one.
		spec.TopologySpreadConstraints, spec.Volumes, spec.NodeSelector, spec.Affinity = nil, nil, nil, &v1.Affinity{}
		for i := range spec.Containers {
			spec.Containers[i].Resources.Requests = v1.ResourceList{
				v1.ResourceCPU: resource.MustParse(g.of("50m", "250m")), "example.com/gpu": resource.MustParse(g.of("0", "0", "1")),
			}
		}
	}
	if g.one(2) {
		pod.Spec.Containers[0].Ports = g.hostPort()
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{
		Key: "dedicated", Operator: v1.TolerationOpEqual, Value: "web", Effect: v1.TaintEffectNoSchedule,
	})
	g.kinds = append(g.kinds, pod)
	for i := 3 + g.Intn(6); i > 0; i-- {
		other := pod.DeepCopy()
		g.vary(other)
		g.kinds = append(g.kinds, other)
	}
}

// stream returns a step that schedules pods of these kinds, in any profile. Some are nominated until their turn.
func (g *generator) stream() Step {
	var pods []*v1.Pod
	for n := 12 + g.Intn(20); len(pods) < n; {
		kind := g.kinds[g.Intn(len(g.kinds))]
		for i := 1 + g.Intn(8); i > 0; i-- {
			pod := kind.DeepCopy()
			pod.Name = fmt.Sprintf("pod-%d", g.pods)
			g.pods++
			if g.profiles > 1 && g.one(2) {
				pod.Spec.SchedulerName = profileNames[g.Intn(g.profiles)]
			}
			if g.one(12) {
				pod.Status.NominatedNodeName = fmt.Sprintf("node-%d", g.Intn(g.nodes+1))
			}
			g.created = append(g.created, pod)
			pods = append(pods, pod)
		}
	}
	return Step{Schedule: pods}
}

// disturbance returns events between streams, or with one among them.
func (g *generator) disturbance() []Step {
	number := g.Intn(g.nodes)
	name := fmt.Sprintf("node-%d", number)
	before := g.last[name].DeepCopy()
	var steps []Step
	switch g.Intn(8) {
	case 0:
		// It is made again, with the same content or another.
		steps = []Step{{DeleteNode: name}}
		if g.one(2) {
			before = g.node(number)
		}
		before.UID = g.nextUID()
	case 1, 2:
		steps = []Step{{PutNode: g.changed(number)}}
	case 3:
		// The scores of all nodes depend on the number of nodes that have an image.
		other := before.DeepCopy()
		if other.Status.Images = nil; g.one(2) {
			other.Status.Images = g.images()
		}
		steps = []Step{{PutNode: other}}
	case 4:
		// Another node takes its place.
		g.nodes++
		return []Step{{DeleteNode: name}, {PutNode: g.node(g.nodes - 1)}}
	case 5:
		for i := g.Intn(20); i >= 0; i-- {
			steps = append(steps, Step{DeletePod: g.existing()})
		}
		return steps
	default:
		return g.step()
	}
	if g.one(2) {
		steps = append(steps, g.stream())
	}
	g.last[name] = before
	return append(steps, Step{PutNode: before})
}

func (g *generator) hostPort() []v1.ContainerPort {
	return []v1.ContainerPort{{ContainerPort: 80, HostPort: int32(8080 + g.Intn(2)), HostIP: g.of("", "127.0.0.1", "10.0.0.1"),
		Protocol: v1.Protocol(g.of("TCP", "TCP", "UDP"))}}
}

// units are small amounts of resources, and what scores assume where a container requests none.
var units = map[string][]string{
	"cpu": {"1m", "100m", "0"}, "memory": {"1", "200Mi", "0"}, "ephemeral-storage": {"1"}, "example.com/gpu": {"1"},
}

// vary changes a field of a pod.
func (g *generator) vary(pod *v1.Pod) {
	spec := &pod.Spec
	container, t := &spec.Containers[g.Intn(len(spec.Containers))], &spec.Tolerations[len(spec.Tolerations)-1]
	switch g.Intn(14) {
	case 0:
		t.Key, t.Value = g.of("dedicated", "dedicate", "old", v1.TaintNodeUnschedulable), g.of("web", "dweb", "db")
	case 1:
		t.Effect = v1.TaintEffect(g.of("", string(v1.TaintEffectPreferNoSchedule), string(v1.TaintEffectNoExecute)))
	case 2:
		t.Operator, t.TolerationSeconds = v1.TolerationOpExists, pointer.Int64(int64(g.Intn(2)))
	case 3:
		// A character is at the end of the key, or at the beginning of the value.
		spec.NodeSelector = map[string]string{g.of("disk", "dis", "rack"): g.of("ssd", "kssd", "1")}
	case 4:
		spec.Affinity.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{g.nodeTerm()},
		}}
	case 5:
		spec.Affinity.NodeAffinity = &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{
			{Weight: 50, Preference: g.nodeTerm()}, {Weight: int32(10 * (1 + g.Intn(9))), Preference: g.nodeTerm()},
		}}
	case 6, 7:
		spec.Containers[0].Ports = g.hostPort()
	case 8:
		container.Resources.Requests["example.com/none"] = container.Resources.Requests["example.com/gpu"]
		delete(container.Resources.Requests, "example.com/gpu")
	case 9:
		name := g.of("cpu", "cpu", "memory", "ephemeral-storage", "example.com/gpu")
		amount := resource.MustParse(g.of(units[name]...))
		amount.Add(container.Resources.Requests[v1.ResourceName(name)])
		container.Resources.Requests[v1.ResourceName(name)] = amount
	case 10:
		more := []v1.Container{*container.DeepCopy()}
		if more[0].Name = "more"; g.one(2) {
			spec.Containers, more = append(spec.Containers, more...), nil
		}
		spec.InitContainers = append(spec.InitContainers, more...)
	case 11:
		spec.Overhead = v1.ResourceList{v1.ResourceName(g.of("cpu", "memory")): resource.MustParse(g.of("1m", "1"))}
	case 12:
		container.Image = g.of(append(images, "registry.example.com/web", "registry.example.com/none:v1")...)
	default:
		priority := *spec.Priority + 10
		spec.Priority, pod.Labels = &priority, g.labels()
	}
}
