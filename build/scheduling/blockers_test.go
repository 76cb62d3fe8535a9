// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
)

func TestBlockers(t *testing.T) {
	newPod := func(namespace, name, node string, port int32, labels map[string]string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: corev1.PodSpec{NodeName: node}}
		pod.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: port}}}}
		return pod
	}
	newNode := func(name, zone string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
	}
	asked := newPod("shop", "new", "", 80, nil)
	asked.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, TopologyKey: "zone",
		}},
	}}
	quota := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": map[string]any{"namespace": "shop", "name": "q"},
		"spec": map[string]any{"max": map[string]any{"cpu": "10", "memory": "1Gi"}}, "status": map[string]any{"used": map[string]any{"cpu": "9"}},
	}}
	rejections := []rejection{
		{Plugin: "NodePorts", Sample: []string{"n1"}}, {Plugin: "CapacityScheduling"},
		{Plugin: "InterPodAffinity", Reasons: []string{"node(s) didn't match pod anti-affinity rules"}, Sample: []string{"n1"}},
		{Plugin: "NodeResourcesFit", Reasons: []string{"Insufficient cpu"}, Sample: []string{"n1"}},
	}
	const quotas = "ElasticQuota shop/q has used: cpu 9 of at most 10, memory 0 of at most 1Gi."
	for name, tt := range map[string]struct {
		forbidden string
		want      string
	}{
		"an administrator": {"-", "Host port 80 is in use, for example by pod ingress/nginx on node n1.\n" + quotas +
			"\nIts required anti-affinity to app=web by zone keeps it from node n1 because of pod shop/web on node n2."},
		"a reader of one namespace": {"", "Host port 80 is in use, for example by a pod that you may not list.\n" + quotas +
			"\nIts required anti-affinity to app=web by zone keeps it from node n1 because of pod shop/web on node n2."},
		"a reader of another namespace": {"shop", "Host port 80 is in use, for example by pod ingress/nginx on node n1.\n" + quotas +
			"\nIts required anti-affinity to app=web by zone keeps it from node n1 because of a pod that you may not list."},
	} {
		client := fake.NewSimpleClientset(newNode("n1", "a"), newNode("n2", "a"), newNode("n3", "b"), newPod("ingress", "nginx", "n1", 80, nil),
			newPod("shop", "elsewhere", "n3", 80, map[string]string{"app": "web"}), newPod("shop", "web", "n2", 81, map[string]string{"app": "web"}),
			newPod("other", "web", "n1", 81, map[string]string{"app": "web"}))
		client.PrependReactor("list", "pods", func(action kubetesting.Action) (bool, runtime.Object, error) {
			return action.GetNamespace() == tt.forbidden, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
		})
		b := blockers{client, dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{elasticQuotas: "ElasticQuotaList"}, quota), *asked}
		if got := strings.Join(b.sentences(t.Context(), rejections), "\n"); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}
