// SPDX-License-Identifier: Apache-2.0

package records

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestLacks(t *testing.T) {
	quantities := func(name v1.ResourceName, amount string) v1.ResourceList {
		return v1.ResourceList{name: resource.MustParse(amount)}
	}
	node := func(name, cpu, disk string, pods ...*v1.Pod) *framework.NodeInfo {
		made := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: quantities(v1.ResourceCPU, cpu)}}
		made.Status.Allocatable[v1.ResourcePods] = resource.MustParse("2")
		if disk != "" {
			made.Labels = map[string]string{"disktype": disk}
		}
		info := framework.NewNodeInfo(pods...)
		info.SetNode(made)
		return info
	}
	requests := func(name v1.ResourceName, amount string) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: quantities(name, amount)}}}}}
	}
	uses := func(cpu string) *v1.Pod { return requests(v1.ResourceCPU, cpu) }
	affine := requests("example.com/gpu", "1")
	affine.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"x"}}, {Key: "gpu", Operator: v1.NodeSelectorOpExists},
			{Key: "disktype", Operator: v1.NodeSelectorOpExists},
		}}},
	}}}
	nodes := []*framework.NodeInfo{node("a", "8", "hdd", uses("100m")), node("b", "4", "ssd", uses("1"), uses("1")), node("c", "16", "")}
	fit, taint, affinity := rejectedBy("NodeResourcesFit", "Insufficient cpu"), rejectedBy("TaintToleration", "a taint"), rejectedBy("NodeAffinity", "a selector")
	for name, tt := range map[string]struct {
		pod        *v1.Pod
		rejections [][]*framework.Status
		want       []string
	}{
		// c has a taint, too, so its 16 CPUs are of no use.
		"too large": {uses("9"), [][]*framework.Status{{fit}, {fit}, {taint, fit}}, []string{
			"One reason alone keeps it from 2 nodes, such as a: Insufficient cpu (NodeResourcesFit).",
			"It requests 9 of cpu; the largest node that no other plugin rejects, a, has 8.",
		}},
		"not free": {uses("8"), [][]*framework.Status{{fit}, {fit}, {taint}}, []string{
			"One reason alone keeps it from 2 nodes, such as a: Insufficient cpu (NodeResourcesFit).",
			"It requests 8 of cpu; the most that a node that no other plugin rejects has free is 7900m, on a.",
		}},
		"as many pods as may be": {uses("1"), [][]*framework.Status{{taint}, {fit}, {taint}}, []string{
			"One reason alone keeps it from 2 nodes, such as a: a taint (TaintToleration).", "Each node that no other plugin rejects has as many pods as it may have.",
		}},
		"a typo in a label, and another value": {
			&v1.Pod{Spec: v1.PodSpec{NodeSelector: map[string]string{"disk-type": "ssd", "disktype": "nvme"}}},
			[][]*framework.Status{{fit, affinity}, {fit, affinity}, {fit, affinity}},
			[]string{"No node has the label disk-type.", "No node has disktype=nvme; its values are hdd, ssd."},
		},
		"a label of one of several terms": {
			&v1.Pod{Spec: v1.PodSpec{NodeSelector: map[string]string{"disk-type": "ssd"}}}, [][]*framework.Status{{fit, affinity}, {fit, taint}, {fit, affinity}}, nil,
		},
		"a resource that is nowhere, and node affinity": {
			affine,
			[][]*framework.Status{{fit, affinity}, {fit, affinity}, {fit, affinity}},
			[]string{"It requests 1 of example.com/gpu; no node has any.", "No node has the label gpu.", "No node has the label zone."},
		},
	} {
		if got := Lacks(tt.pod, nodes, tt.rejections); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got\n%q, want\n%q", name, got, tt.want)
		}
	}
}
