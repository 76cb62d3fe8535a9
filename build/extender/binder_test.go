// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBind binds a pod that may be bound already, while another request waits for a plugin. test/integration/extender
// binds pods in a real API server.
func TestBind(t *testing.T) {
	pod := newPod()
	another := pod.DeepCopy()
	another.UID = "of-another-pod-with-that-name"
	for name, test := range map[string]struct {
		node string
		of   *corev1.Pod
		// lost is set if the API server's response is an error, for example because it is lost.
		lost bool
		want string
	}{
		"free":                                 {"", pod, false, ""},
		"bound, but the answer was lost":       {"a", pod, true, ""},
		"not bound, and the answer was lost":   {"", pod, true, "connection reset"},
		"bound elsewhere":                      {"b", pod, true, "it is bound to node b"},
		"another pod with that name":           {"", another, false, "conflict"},
		"another pod with that name, bound":    {"a", another, true, "connection reset"},
		"another pod with that name, and lost": {"", another, true, "connection reset"},
	} {
		t.Run(name, func(t *testing.T) {
			there := pod.DeepCopy()
			there.Spec.NodeName = test.node
			f := newFixture(t, byDiskType, generous, there)
			f.decider.turn <- struct{}{}
			if test.lost {
				f.refuse = errors.New("connection reset")
			}
			client := upstreamsClient(t, extenderConfig(f.url))
			// A repeated request gets the same response.
			for range 2 {
				err := client.Bind(&corev1.Binding{ObjectMeta: test.of.ObjectMeta, Target: corev1.ObjectReference{Name: "a"}})
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
			after, err := f.client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
			if bound := test.node == "" && test.want == ""; err != nil || (after.Spec.NodeName == "a") != (bound || test.node == "a") {
				t.Errorf("the pod is on %q, %v", after.Spec.NodeName, err)
			}
		})
	}
}
