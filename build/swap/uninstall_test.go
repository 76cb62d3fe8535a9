// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestAnImageThatIsInUseIsNotRemoved(t *testing.T) {
	const image, tagged, id = "registry.k8s.io/kube-scheduler:v1.23.17-fork", "example.com/second:1", "sha256:1"
	own := swaptest.Container("kube-system", "kube-scheduler-cp1", id, cri.ContainerState_CONTAINER_EXITED)
	pod := func(name, node, image string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Image: image}}}}
	}
	for name, c := range map[string]struct {
		containers []*cri.Container
		pod        *corev1.Pod
		user       string
	}{
		"the scheduler's own container that ended": {containers: []*cri.Container{own}},
		"its own mirror, which is not up to date":  {pod: pod("kube-scheduler-cp1", "cp1", image)},
		"another image": {containers: []*cri.Container{swaptest.Container("kube-system", "second", "sha256:2", cri.ContainerState_CONTAINER_RUNNING)},
			pod: pod("second", "cp1", "another")},
		"a second scheduler": {user: "the container kube-scheduler of the pod kube-system/second",
			containers: []*cri.Container{own, swaptest.Container("kube-system", "second", id, cri.ContainerState_CONTAINER_RUNNING)}},
		"a container that ended": {user: "the container kube-scheduler of the pod kube-system/second",
			containers: []*cri.Container{swaptest.Container("kube-system", "second", id, cri.ContainerState_CONTAINER_EXITED)}},
		"a pod without a container":             {user: "the pod kube-system/second", pod: pod("second", "cp1", image)},
		"a pod with another name of that image": {user: "the pod kube-system/second", pod: pod("second", "cp1", tagged)},
	} {
		t.Run(name, func(t *testing.T) {
			tool := toolFor(t, swaptest.Stock)
			fakes := &swaptest.FakeRuntime{Images: map[string]string{image: id, tagged: id}, Containers: c.containers}
			tool.node.Runtime = &host.Runtime{Containers: fakes, Images: fakes, Endpoint: "/run/it.sock"}
			client := fake.NewSimpleClientset()
			if c.pod != nil {
				client = fake.NewSimpleClientset(c.pod)
			}
			tool.node.Cluster = &host.Cluster{Client: client}
			scheduler := swaptest.PodOf(t, swaptest.Stock)
			tool.removeImages(t.Context(), scheduler, map[string]string{image: id})
			said := said(tool)
			if kept := len(fakes.Removed) == 0; kept != (c.user != "") {
				t.Errorf("kept %v, want it for %q:\n%s", kept, c.user, said)
			}
			want := c.user + " uses it; once nothing needs it: ctr --address /run/it.sock --namespace k8s.io images rm " +
				image + " " + id
			if c.user != "" && !strings.Contains(said, want) {
				t.Errorf("want %q in:\n%s", want, said)
			}
		})
	}
}
