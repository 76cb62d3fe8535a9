// SPDX-License-Identifier: Apache-2.0

// Package modules runs Coscheduling and the plugins of other projects that are in the image, on a local control plane
// with their CustomResourceDefinitions. It needs programs that were built before, so it has its own make target.
package modules

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	root = "../../.."
	rbac = root + "/manifests/rbac"
	// customResources are all custom resources that the plugins read, for kubectl.
	customResources = "podgroups,elasticquotas,noderesourcetopologies"
)

var shared = cluster.Shared{AuditPolicy: cluster.AllRequests}

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// stand is the control plane with the definitions and the permissions that the plugins need.
type stand struct {
	*cluster.Cluster
	crds string
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{Cluster: shared.Get(t), crds: cluster.CRDs(t, root)}
	s.CreateFrom(t, s.crds)
	s.CreateFrom(t, rbac)
	t.Cleanup(func() {
		s.Kubectl(t, context.Background(), "delete", customResources, "--all", "--all-namespaces")
	})
	return s
}

// create creates the objects in a text.
func (s *stand) create(t *testing.T, format string, arguments ...any) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	cluster.Write(t, file, fmt.Sprintf(format, arguments...))
	s.CreateFrom(t, file)
}

// start starts the scheduler with a configuration of manifests/config,
// in which some texts are replaced: old, new, old, new.
func (s *stand) start(t *testing.T, name string, replacements ...string) *localcluster.Scheduler {
	t.Helper()
	config := cluster.Read(t, root+"/manifests/config/"+name)
	for pair := range slices.Chunk(replacements, 2) {
		if strings.Count(config, pair[0]) != 1 {
			t.Fatalf("%s does not have %q once", name, pair[0])
		}
		config = strings.ReplaceAll(config, pair[0], pair[1])
	}
	file := filepath.Join(t.TempDir(), name)
	cluster.Write(t, file, config)
	return s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), file)
}

// newPod describes a pod with a request for CPU.
func newPod(namespace, name, cpu string) *corev1.Pod {
	pod := localcluster.NewPod(name, corev1.DefaultSchedulerName)
	pod.Namespace = namespace
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	return pod
}

// pods returns the pods of a namespace by name.
func (s *stand) pods(t *testing.T, namespace string) map[string]*corev1.Pod {
	t.Helper()
	list, err := s.Client().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods
}
