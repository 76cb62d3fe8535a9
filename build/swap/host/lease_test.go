// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/schedulerpod"
)

func TestOnlyTheLeaseOfTheDeadIsReleased(t *testing.T) {
	dead, other := "cp1_1234", "cp2_5678"
	for _, c := range []struct {
		name, holder, after string
	}{
		{"the dead one holds it", dead, ""},
		{"another one holds it by now", other, other},
		{"no scheduler holds it", "", ""},
	} {
		held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.holder}}
		client := fake.NewSimpleClientset(held)
		free, err := (&Cluster{Client: client}).release(context.Background(), schedulerpod.DefaultLease, dead)
		if err != nil || !free {
			t.Errorf("%s: free %v, %v", c.name, free, err)
		}
		now, err := client.CoordinationV1().Leases("kube-system").Get(context.Background(), "kube-scheduler", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := *now.Spec.HolderIdentity; got != c.after {
			t.Errorf("%s: %q holds it, want %q", c.name, got, c.after)
		}
	}
}
