// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// step returns an event, or several that belong together.
func (g *generator) step() []Step {
	switch g.Intn(18) {
	case 0:
		g.nodes++
		return []Step{{PutNode: g.node(g.nodes - 1)}}
	case 1:
		return []Step{{PutNode: g.node(g.Intn(g.nodes))}}
	case 2, 3:
		return []Step{{PutNode: g.changed(g.Intn(g.nodes))}}
	case 4:
		return []Step{{DeleteNode: fmt.Sprintf("node-%d", g.Intn(g.nodes))}}
	case 5:
		node := g.node(g.Intn(g.nodes))
		node.UID = g.nextUID()
		return []Step{{PutNode: node}}
	case 6:
		return []Step{{PutNamespace: g.namespace(g.of(namespaces...))}}
	case 7:
		return g.bound()
	case 8:
		return []Step{{DeletePod: g.existing()}}
	case 9:
		return g.changedPods()
	case 10:
		return []Step{{Vanish: true}}
	default:
		return []Step{{Schedule: g.workloads()}}
	}
}

// workloads returns pods to schedule: those of a workload are identical. Some have the name of an earlier pod.
func (g *generator) workloads() []*v1.Pod {
	if g.one(3) {
		g.profileInUse = g.Intn(g.profiles)
	}
	var pods []*v1.Pod
	earlier := g.created
	for len(pods) < 12 {
		pod := g.pod()
		if g.one(8) {
			// As after preemption by another instance of the scheduler.
			pod.Status.NominatedNodeName = fmt.Sprintf("node-%d", g.Intn(g.nodes+1))
		}
		for i := 1 + g.Intn(6); i > 0; i-- {
			replica := pod.DeepCopy()
			replica.Name = fmt.Sprintf("pod-%d", g.pods)
			g.pods++
			if len(earlier) > 0 && g.one(6) {
				n := g.Intn(len(earlier))
				replica.Namespace, replica.Name, replica.UID = earlier[n].Namespace, earlier[n].Name, g.nextUID()
				// A step has each name once.
				earlier = earlier[n+1:]
			} else {
				g.created = append(g.created, replica)
			}
			pods = append(pods, replica)
		}
	}
	return pods
}

// nextUID returns the UID of an object with a name that was used before.
func (g *generator) nextUID() types.UID {
	g.again++
	return types.UID(fmt.Sprintf("again-%d", g.again))
}

func (g *generator) namespace(name string) *v1.Namespace {
	labels := map[string]string{v1.LabelMetadataName: name}
	if team := g.of("red", "blue", ""); team != "" {
		labels["team"] = team
	}
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// existing returns the namespace and name of a pod that may exist.
func (g *generator) existing() string {
	if len(g.created) == 0 {
		return "default/pod-0"
	}
	pod := g.created[g.Intn(len(g.created))]
	return pod.Namespace + "/" + pod.Name
}

// changedPods returns changes of pods: some get other labels, some terminate, and some another UID.
func (g *generator) changedPods() []Step {
	var steps []Step
	for i := g.Intn(4); i >= 0 && len(g.created) > 0; i-- {
		pod := g.created[g.Intn(len(g.created))]
		change := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels}}
		switch g.Intn(5) {
		case 0:
			change.UID = g.nextUID()
		case 1, 2:
			change.DeletionTimestamp = &metav1.Time{Time: metav1.Unix(1, 0).Time}
		default:
			change.Labels = g.labels()
		}
		steps = append(steps, Step{PutPod: change})
	}
	return steps
}

// changed returns the last version of a node with one change.
func (g *generator) changed(number int) *v1.Node {
	node := g.last[fmt.Sprintf("node-%d", number)].DeepCopy()
	other := g.node(number)
	switch g.Intn(5) {
	case 0:
		node.Spec.Unschedulable = !node.Spec.Unschedulable
	case 1:
		node.Spec.Taints = other.Spec.Taints
	case 2:
		node.Status = other.Status
	default:
		key := g.of(keys...)
		delete(node.Labels, key)
		if value, ok := other.Labels[key]; ok {
			node.Labels[key] = value
		}
	}
	g.last[node.Name] = node
	return node
}
