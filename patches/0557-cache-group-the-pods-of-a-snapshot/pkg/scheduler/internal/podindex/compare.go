// SPDX-License-Identifier: Apache-2.0

package podindex

import (
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Compare counts the nodes of the index of the lister's snapshot again, and compares those that did not change since
// with the given ones. It returns a description of each difference.
func Compare(lister framework.SharedLister, cached map[string]*framework.NodeInfo) (differs []string) {
	x := indexOf(lister)
	if x == nil {
		return nil
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.slots == nil {
		return nil
	}
	again := &Index{keys: x.keys, nodes: make([]*v1.Node, len(x.nodes)), counted: make([]counted, len(x.nodes))}
	again.kinds.in = make(map[string]map[string]*group)
	if x.terms.in != nil {
		again.terms.in = make(map[string]map[string]*group)
	}
	for name, slot := range x.slots {
		node, n := x.nodes[slot], x.counted[slot]
		again.set(slot, node, n)
		if now := cached[name]; now != nil && now.Generation == n.generation && !reflect.DeepEqual(now.Pods, n.pods) {
			differs = append(differs, fmt.Sprintf("pods of the node %s", name))
		}
		for key, t := range x.topologies {
			value, ok := node.Labels[key]
			if number := t.numbers[slot]; ok != (number != NoValue) || ok && t.Names[number] != value {
				differs = append(differs, fmt.Sprintf("label %s=%q (%t) of the node %s: number %d",
					key, value, ok, name, number))
			}
		}
	}
	return append(append(differs, x.kinds.compare(again.kinds)...), x.terms.compare(again.terms)...)
}

func (gs groups) compare(want groups) (differs []string) {
	if gs.count != want.count || gs.members != want.members {
		differs = append(differs, fmt.Sprintf("%d groups of %d, want %d of %d",
			gs.count, gs.members, want.count, want.members))
	}
	for namespace, byText := range want.in {
		for text, g := range byText {
			if got := gs.in[namespace][text]; got == nil || !reflect.DeepEqual(got.on, g.on) {
				differs = append(differs, fmt.Sprintf("group %q in namespace %q", text, namespace))
			}
		}
	}
	return differs
}
