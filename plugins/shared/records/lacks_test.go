// SPDX-License-Identifier: Apache-2.0

package records

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestLacks(t *testing.T) {
	node := func(name, cpu, disk string, pods ...*v1.Pod) *framework.NodeInfo {
		made := st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourcePods: "2"})
		if disk != "" {
			made.Label("disktype", disk)
		}
		info := framework.NewNodeInfo(pods...)
		info.SetNode(made.Obj())
		return info
	}
	uses := func(cpu string) *v1.Pod {
		return st.MakePod().Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu}).Obj()
	}
	nodes := []*framework.NodeInfo{node("a", "8", "hdd", uses("100m")), node("b", "4", "ssd", uses("1"), uses("1")), node("c", "16", "")}
	fit, taint := rejectedBy("NodeResourcesFit", "Insufficient cpu"), rejectedBy("TaintToleration", "a taint")
	for name, tt := range map[string]struct {
		pod        *v1.Pod
		rejections [][]*framework.Status
		want       []string
	}{
		// c has a taint, too, so its 16 CPUs are of no use.
		"too large": {uses("9"), [][]*framework.Status{{fit}, {fit}, {taint, fit}}, []string{
			"One reason alone keeps it from 2 nodes, such as a: Insufficient cpu (NodeResourcesFit).",
			"It requests 9 of cpu; the largest node, a, has 8.",
		}},
		"not free": {uses("8"), [][]*framework.Status{{fit}, {fit}, {taint}}, []string{
			"One reason alone keeps it from 2 nodes, such as a: Insufficient cpu (NodeResourcesFit).",
			"It requests 8 of cpu; the most that is free is 7900m, on a.",
		}},
		"as many pods as may be": {uses("1"), [][]*framework.Status{{taint}, {fit}, {taint}}, []string{
			"One reason alone keeps it from 2 nodes, such as a: a taint (TaintToleration).", "Each node has as many pods as it may have.",
		}},
		"a typo in a label, and another value": {
			st.MakePod().NodeSelector(map[string]string{"disk-type": "ssd", "disktype": "nvme"}).Obj(),
			[][]*framework.Status{{fit, taint}, {fit, taint}, {fit, taint}},
			[]string{"No node has disktype=nvme; its values are hdd, ssd.", "No node has the label disk-type."},
		},
		"a resource that is nowhere, and node affinity": {
			st.MakePod().Req(map[v1.ResourceName]string{"example.com/gpu": "1"}).NodeAffinityIn("zone", []string{"x"}).Obj(),
			[][]*framework.Status{{fit, taint}, {fit, taint}, {fit, taint}},
			[]string{"It requests 1 of example.com/gpu, which no node has.", "No node has the label zone."},
		},
	} {
		if got := Lacks(tt.pod, nodes, tt.rejections); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got\n%q, want\n%q", name, got, tt.want)
		}
	}
}
