// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/swap/manifest"
)

func TestKubeletsWordsAreThoseOfThisVersion(t *testing.T) {
	mirror := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler-cp1", Annotations: map[string]string{manifest.RestartedAtAnnotation: "now", staticPodUID: "u"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"},
		}}}},
	}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "e"}, Reason: "FailedMount", Message: "/absent is not there"}
	c := &Cluster{Client: fake.NewSimpleClientset(mirror, event)}
	got, err := c.kubeletStatusOf(t.Context(), "kube-system", "kube-scheduler-cp1", "now")
	if want := (kubeletStatus{true, "ErrImagePull: no such host; FailedMount: /absent is not there"}); got != want || err != nil {
		t.Errorf("kubelet says %+v, %v", got, err)
	}
	if got, err := c.kubeletStatusOf(t.Context(), "kube-system", "kube-scheduler-cp1", "before"); got != (kubeletStatus{}) || err != nil {
		t.Errorf("of another version kubelet says %+v, %v", got, err)
	}
	if got, err := c.kubeletStatusOf(t.Context(), "kube-system", "kube-scheduler-cp2", "now"); got != (kubeletStatus{}) || err != nil {
		t.Errorf("of another node's kubelet says %+v, %v", got, err)
	}
}
