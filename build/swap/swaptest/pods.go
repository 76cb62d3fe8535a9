// SPDX-License-Identifier: Apache-2.0

package swaptest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/swap/manifest"
)

// StockWith returns the stock manifest with more flags.
func StockWith(flags ...string) string {
	lines := ""
	for _, flag := range flags {
		lines += "    - " + flag + "\n"
	}
	return strings.Replace(Stock, "    image:", lines+"    image:", 1)
}

// Overcommitting returns a pod, on a node or waiting, whose second container requests a resource.
func Overcommitting(name, scheduler, node string, of corev1.ResourceName) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}, Spec: corev1.PodSpec{
		SchedulerName: scheduler, NodeName: node, Containers: []corev1.Container{{}, {Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{of: resource.MustParse("1500")},
		}}},
	}}
}

// Stock is a manifest as kubeadm writes it, with fewer fields.
const Stock = `apiVersion: v1
kind: Pod
metadata:
  name: kube-scheduler
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-scheduler
    - --kubeconfig=/etc/kubernetes/scheduler.conf
    image: registry.k8s.io/kube-scheduler:v1.23.17
    livenessProbe:
      httpGet: {host: 127.0.0.1, path: /healthz, port: 10259, scheme: HTTPS}
    name: kube-scheduler
`

// PodWith returns the scheduler's pod with more flags.
func PodWith(t *testing.T, flags ...string) *manifest.Pod {
	t.Helper()
	return PodOf(t, StockWith(flags...))
}

// PodOf returns the pod of a manifest.
func PodOf(t *testing.T, content string) *manifest.Pod {
	t.Helper()
	pod, err := manifest.Describe([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return &pod
}

// Swapped returns a manifest after a swap.
func Swapped(t *testing.T, content string, swap manifest.Swap) string {
	t.Helper()
	edit, err := manifest.Apply([]byte(content), swap)
	if err != nil {
		t.Fatal(err)
	}
	return string(edit.Manifest)
}

// Restarted returns a manifest with a new restart time.
func Restarted(t *testing.T, content string) string {
	t.Helper()
	edit, err := manifest.Restart([]byte(content), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return string(edit.Manifest)
}

// Mounting returns the scheduler's manifest with a mount of a host path.
func Mounting(host, kind, at string) string {
	return Stock + "    volumeMounts:\n    - {name: more, mountPath: " + at + "}\n" +
		"  volumes:\n  - {name: more, hostPath: {path: " + host + ", type: \"" + kind + "\"}}\n"
}
