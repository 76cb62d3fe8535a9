// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/swaptest"
)

// schedulerPod returns the pod of a scheduler in the cluster, with its configuration in a ConfigMap.
func schedulerPod(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "second", Name: name, Annotations: annotations},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Command:      []string{"/usr/local/bin/kube-scheduler", "--config=/etc/second/config.yaml"},
				VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/second"}},
			}},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "config-123"},
			}}}},
		},
	}
}

func TestAnotherSchedulerOfTheSameNameIsFound(t *testing.T) {
	const config = "leaderElection: {resourceNamespace: second, resourceName: second}\nprofiles: [{schedulerName: theirs}, {schedulerName: both}]\n"
	find := func(t *testing.T, served string, accepted []string, annotations map[string]string) Findings {
		t.Helper()
		client := fake.NewSimpleClientset(schedulerPod("a", annotations), schedulerPod("b", annotations), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "second", Name: "config-123"}, Data: map[string]string{"config.yaml": config},
		})
		tool := toolFor(t, swaptest.Stock)
		tool.node.Cluster = &host.Cluster{Client: client}
		ours, err := schedulerpod.ReadConfig([]byte(served))
		if err != nil {
			t.Fatal(err)
		}
		var findings Findings
		tool.checkSharedProfiles(t.Context(), &findings, &plan{afterPod: swaptest.PodWith(t, "--config=/c"), accepted: ours}, accepted)
		return findings
	}
	found := find(t, "profiles: [{}, {schedulerName: both}]", nil, nil)
	if len(found) != 1 || found.Problems() != 1 || !strings.Contains(found[0].What, "pod second/a serves both, too") ||
		!strings.HasSuffix(found[0].Next, "--accept shared-profiles") {
		t.Errorf("found %+v", found)
	}
	if found := find(t, "profiles: [{}, {schedulerName: both}]", []string{SharedProfiles}, nil); len(found) != 1 || found.Problems() != 0 {
		t.Errorf("though it is accepted: %+v", found)
	}
	if found := find(t, "profiles: [{}]", nil, nil); len(found) != 0 {
		t.Errorf("without a name in common: %+v", found)
	}
	if found := find(t, "leaderElection: {resourceNamespace: second, resourceName: second}\nprofiles: [{schedulerName: both}]", nil, nil); len(found) != 0 {
		t.Errorf("with the same lease: %+v", found)
	}
	static := map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	if found := find(t, "profiles: [{schedulerName: both}]", nil, static); len(found) != 0 {
		t.Errorf("another control-plane node's: %+v", found)
	}
}
