// SPDX-License-Identifier: Apache-2.0

package trimaran

import (
	"testing"

	clientcache "k8s.io/client-go/tools/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestDeleteFinalStateUnknown passes the event that an informer sends when an object is gone after a relist.
func TestDeleteFinalStateUnknown(t *testing.T) {
	handler := New()
	pod := st.MakePod().Namespace("ns").Name("pod").UID("pod").Node("node").Obj()
	handler.OnAdd(pod)
	handler.OnDelete(clientcache.DeletedFinalStateUnknown{Key: "ns/pod", Obj: pod})
	if n := len(handler.ScheduledPodsCache["node"]); n != 0 {
		t.Errorf("%d pods are kept after the only one was deleted", n)
	}
}
