// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReplaceableOrder checks that pods are placed again in the order of their second, then of their version, and then of
// the file, which does not depend on names: an anonymized snapshot has others.
func TestReplaceableOrder(t *testing.T) {
	pod := func(name string, second int64, version string) *v1.Pod {
		of := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}, Spec: v1.PodSpec{NodeName: "node"}}
		of.CreationTimestamp = metav1.NewTime(time.Unix(second, 0))
		return of
	}
	again, _ := Replaceable([]*v1.Pod{pod("f", 2, ""), pod("e", 2, ""), pod("c", 1, "1000"), pod("d", 1, "99"), pod("a", 0, "2000")})
	got := ""
	for _, of := range again {
		got += of.Name
	}
	if want := "adcfe"; got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
}
