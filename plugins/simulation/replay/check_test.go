// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/pointer"
)

// TestCheckOrder checks that pods are placed again in the order of their second, then of their version, and then of
// the file, which does not depend on names: an anonymized snapshot has others.
func TestCheckOrder(t *testing.T) {
	pod := func(name string, second int64, version string) *v1.Pod {
		of := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}, Spec: v1.PodSpec{NodeName: "node"}}
		of.CreationTimestamp = metav1.NewTime(time.Unix(second, 0))
		return of
	}
	again, _, _, _ := Again([]*v1.Pod{pod("f", 2, ""), pod("e", 2, ""), pod("c", 1, "1000"), pod("d", 1, "99"), pod("a", 0, "2000")}, true)
	got := ""
	for _, of := range again {
		got += of.Name
	}
	if want := "adcfe"; got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
}

// TestAgainOrder checks which pods are placed again, and in which order: one without the time of its creation comes last.
func TestAgainOrder(t *testing.T) {
	pod := func(name, node, owner string, at time.Time) *v1.Pod {
		of := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at)}, Spec: v1.PodSpec{NodeName: node}}
		if owner != "" {
			// An owner may be a pod, and even itself.
			of.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: name, Controller: pointer.Bool(true)}}
		}
		return of
	}
	gone := pod("gone", "n", "ReplicaSet", time.Unix(1, 0))
	gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)}
	again, waiting, stay, reasons := Again([]*v1.Pod{
		pod("unknown", "n", "ReplicaSet", time.Time{}), pod("late", "n", "Job", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)),
		pod("first", "n", "Pod", time.Unix(1, 0)), pod("second", "n", "ReplicaSet", time.Unix(2, 0)), gone, pod("bare", "n", "", time.Time{}),
		pod("agent", "n", "DaemonSet", time.Time{}), pod("static", "n", "Node", time.Time{}), pod("w2", "", "", time.Unix(4, 0)), pod("w1", "", "Job", time.Unix(3, 0)),
	}, false)
	got := ""
	for _, pods := range [][]*v1.Pod{again, waiting, stay} {
		for _, of := range pods {
			got += of.Name + " "
		}
		got += "| "
	}
	got += fmt.Sprint(reasons)
	if want := "first second late unknown | w1 w2 | gone bare agent static | map[being deleted:1 of DaemonSets:1 static:1 without a controller:1]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
