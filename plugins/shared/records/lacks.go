// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	podresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// valuesOfLabel limits the named values of a label, and namesOfPod the resources and the labels that are compared with
// all nodes.
const valuesOfLabel, namesOfPod = 5, 16

// Lacks returns sentences about what a pod that fits on no node lacks: the change that would open most nodes, and the
// resources and labels that no node has. rejections are the statuses of all filters, by node.
func Lacks(pod *v1.Pod, nodes []*framework.NodeInfo, rejections [][]*framework.Status) []string {
	sentences := nearest(nodes, rejections)
	var open []*framework.NodeInfo
	for i, node := range nodes {
		if len(rejections[i]) == 1 && rejections[i][0].FailedPlugin() == names.NodeResourcesFit {
			open = append(open, node)
		}
	}
	which := " that no other plugin rejects"
	if len(open) == 0 {
		open = nodes
	}
	if len(open) == len(nodes) {
		which = ""
	}
	requests, _ := podresource.PodRequestsAndLimits(pod)
	requests[v1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	for _, name := range sortedNames(requests) {
		if sentence := lacksResource(name, requests[v1.ResourceName(name)], open, which); sentence != "" {
			sentences = append(sentences, sentence)
		}
	}
	for _, statuses := range rejections {
		if !rejectedByPlugin(statuses, names.NodeAffinity) {
			return sentences
		}
	}
	return append(sentences, lacksLabels(pod, nodes)...)
}

func rejectedByPlugin(statuses []*framework.Status, plugin string) bool {
	for _, status := range statuses {
		if status.FailedPlugin() == plugin {
			return true
		}
	}
	return false
}

// nearest returns a sentence about the reason without which most nodes would take the pod.
func nearest(nodes []*framework.NodeInfo, rejections [][]*framework.Status) []string {
	count, example := map[string]int{}, map[string]string{}
	best := ""
	for i, statuses := range rejections {
		if len(statuses) != 1 || statuses[0].FailedPlugin() == "" {
			continue
		}
		reason := fmt.Sprintf("%s (%s)", strings.Join(statuses[0].Reasons(), ", "), statuses[0].FailedPlugin())
		if count[reason]++; count[reason] == 1 {
			example[reason] = nodes[i].Node().Name
		}
		if count[reason] > count[best] || count[reason] == count[best] && reason < best {
			best = reason
		}
	}
	if best == "" {
		return nil
	}
	return []string{fmt.Sprintf("One reason alone keeps it from %s, such as %s: %s.", counted(count[best], "node"), example[best], short(best))}
}

// sortedNames returns the names of requested resources.
func sortedNames(requests v1.ResourceList) []string {
	var names []string
	for name, request := range requests {
		if !request.IsZero() {
			names = append(names, string(name))
		}
	}
	sort.Strings(names)
	if len(names) > namesOfPod {
		names = names[:namesOfPod]
	}
	return names
}

// lacksResource returns a sentence about a resource of which none of the nodes has enough free, or "". which describes
// the nodes.
func lacksResource(name string, request resource.Quantity, nodes []*framework.NodeInfo, which string) string {
	var largest, most resource.Quantity
	largestNode, mostNode := "", ""
	for _, node := range nodes {
		allocatable := node.Node().Status.Allocatable[v1.ResourceName(name)]
		free := allocatable.DeepCopy()
		free.Sub(requested(node, v1.ResourceName(name)))
		if largestNode == "" || allocatable.Cmp(largest) > 0 {
			largest, largestNode = allocatable, node.Node().Name
		}
		if mostNode == "" || free.Cmp(most) > 0 {
			most, mostNode = free, node.Node().Name
		}
	}
	switch {
	case mostNode == "" || request.Cmp(most) <= 0:
		return ""
	case largest.IsZero():
		return fmt.Sprintf("It requests %s of %s; no node%s has any.", request.String(), name, which)
	case request.Cmp(largest) > 0:
		return fmt.Sprintf("It requests %s of %s; the largest node%s, %s, has %s.", request.String(), name, which, largestNode, largest.String())
	case name == string(v1.ResourcePods):
		return fmt.Sprintf("Each node%s has as many pods as it may have.", which)
	}
	return fmt.Sprintf("It requests %s of %s; the most that a node%s has free is %s, on %s.", request.String(), name, which, most.String(), mostNode)
}

// requested returns what the pods of a node request of a resource.
func requested(node *framework.NodeInfo, name v1.ResourceName) resource.Quantity {
	switch name {
	case v1.ResourceCPU:
		return *resource.NewMilliQuantity(node.Requested.MilliCPU, resource.DecimalSI)
	case v1.ResourceMemory:
		return *resource.NewQuantity(node.Requested.Memory, resource.BinarySI)
	case v1.ResourceEphemeralStorage:
		return *resource.NewQuantity(node.Requested.EphemeralStorage, resource.BinarySI)
	case v1.ResourcePods:
		return *resource.NewQuantity(int64(len(node.Pods)), resource.DecimalSI)
	}
	return *resource.NewQuantity(node.Requested.ScalarResources[name], resource.DecimalSI)
}

// lacksLabels returns sentences about labels of the node selector, and of required node affinity, that no node has.
func lacksLabels(pod *v1.Pod, nodes []*framework.NodeInfo) (sentences []string) {
	wanted := map[string][]string{}
	for key, value := range pod.Spec.NodeSelector {
		wanted[key] = append(wanted[key], value)
	}
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		if required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			for _, term := range required.NodeSelectorTerms {
				for _, expression := range term.MatchExpressions {
					if expression.Operator == v1.NodeSelectorOpIn || expression.Operator == v1.NodeSelectorOpExists {
						wanted[expression.Key] = append(wanted[expression.Key], expression.Values...)
					}
				}
			}
		}
	}
	keys := sets.StringKeySet(wanted).List()
	if len(keys) > namesOfPod {
		keys = keys[:namesOfPod]
	}
	for _, key := range keys {
		values, known := wanted[key], sets.NewString()
		for _, node := range nodes {
			if value, ok := node.Node().Labels[key]; ok {
				known.Insert(value)
			}
		}
		if known.Len() == 0 {
			sentences = append(sentences, fmt.Sprintf("No node has the label %s.", key))
		} else if len(values) > 0 && !known.HasAny(values...) {
			some := known.List()
			if len(some) > valuesOfLabel {
				some = append(some[:valuesOfLabel], "…")
			}
			sentences = append(sentences, fmt.Sprintf("No node has %s=%s; its values are %s.", key, short(strings.Join(values, " or ")), strings.Join(some, ", ")))
		}
	}
	return sentences
}
