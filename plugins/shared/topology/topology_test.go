// SPDX-License-Identifier: Apache-2.0

package topology

import (
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

func TestASumHoldsForItsRound(t *testing.T) {
	d := &Domain{}
	if got := d.Sum(1); got != 0 {
		t.Errorf("before anything is added the sum is %d", got)
	}
	d.Add(1, 2)
	d.Add(1, 3)
	if got, other := d.Sum(1), d.Sum(2); got != 5 || other != 0 {
		t.Errorf("the sums of rounds 1 and 2 are %d and %d, want 5 and 0", got, other)
	}
	d.Add(2, 1)
	if got := d.Sum(2); got != 1 {
		t.Errorf("the sum of round 2 is %d, want 1", got)
	}
}
