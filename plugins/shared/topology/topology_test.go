// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func node(name, zone string) *v1.Node {
	made := st.MakeNode().Name(name).Label(v1.LabelHostname, name)
	if zone != "" {
		made.Label(v1.LabelTopologyZone, zone)
	}
	return made.Obj()
}

func TestNodesShareTheDomainsThatTheirLabelsSay(t *testing.T) {
	d := New([]string{v1.LabelHostname, v1.LabelTopologyZone})
	one, two, other, none := d.Enter(node("1", "a")), d.Enter(node("2", "a")), d.Enter(node("3", "b")), d.Enter(node("4", ""))
	if one[1] != two[1] || one[1] == other[1] || one[0] == two[0] {
		t.Errorf("nodes 1 and 2 are to share the zone alone: %v, %v, %v", one, two, other)
	}
	if none[1] != nil || none[0] == nil {
		t.Errorf("a node without a zone is in %v", none)
	}
	if !d.Same(one, node("1", "a")) || d.Same(one, node("1", "b")) || d.Same(one, node("1", "")) || d.Same(none, node("4", "a")) {
		t.Error("a node is in other domains when its label changes, comes or goes, and then only")
	}
	if one[1].Level != 1 || one[1].Value != "a" {
		t.Errorf("the zone is %+v", one[1])
	}
}

func TestADomainGoesWithItsLastNode(t *testing.T) {
	d := New([]string{v1.LabelTopologyZone})
	one, two := d.Enter(node("1", "a")), d.Enter(node("2", "a"))
	d.Leave(one)
	if again := d.Enter(node("1", "a")); again[0] != two[0] {
		t.Error("the zone is another one while it has a node")
	} else {
		d.Leave(again)
	}
	d.Leave(two)
	d.Leave(d.Enter(node("4", "")))
	if len(d.levels[0]) != 0 {
		t.Errorf("without nodes there is %v", d.levels[0])
	}
}

func TestNumbersAreOfOneDomainEach(t *testing.T) {
	d := New([]string{v1.LabelHostname, v1.LabelTopologyZone})
	there := map[string][]*Domain{}
	for round := 0; round < 50; round++ {
		for i := 0; i < 10; i++ {
			name := fmt.Sprint(i * round % 17)
			if domains := there[name]; domains != nil {
				d.Leave(domains)
				delete(there, name)
			} else {
				there[name] = d.Enter(node(name, fmt.Sprint(i%3)))
			}
		}
		numbered := map[int]*Domain{}
		for _, domains := range there {
			for _, domain := range domains {
				if other := numbered[domain.Number]; other != nil && other != domain || domain.Number >= d.Numbers() {
					t.Fatalf("%+v has the number of %+v, or one that is not below %d", domain, other, d.Numbers())
				}
				numbered[domain.Number] = domain
			}
		}
	}
	if d.Numbers() > 17+3 {
		t.Errorf("there were at most 20 domains at a time, and the numbers go up to %d", d.Numbers())
	}
}
