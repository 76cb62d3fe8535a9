// SPDX-License-Identifier: Apache-2.0

package util

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestPatchOfOnePod checks that a patch names the pod's UID: the API server refuses one for another pod with its name.
func TestPatchOfOnePod(t *testing.T) {
	for _, test := range []struct{ name, nominated, becomes, patch string }{
		{"a nomination is cleared", "node", "", `{"metadata":{"uid":"42"},"status":{"nominatedNodeName":null}}`},
		{"nothing changes", "node", "node", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0", UID: "42"}}
			pod.Status.NominatedNodeName = test.nominated
			client := clientsetfake.NewSimpleClientset(pod)
			if err := PatchPodStatus(client, pod, &v1.PodStatus{NominatedNodeName: test.becomes}); err != nil {
				t.Fatal(err)
			}
			patch := ""
			for _, action := range client.Actions() {
				patch += string(action.(clienttesting.PatchAction).GetPatch())
			}
			if patch != test.patch {
				t.Errorf("got the patch %q, want %q", patch, test.patch)
			}
		})
	}
}
