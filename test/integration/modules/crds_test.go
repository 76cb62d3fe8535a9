// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

func TestAPluginWhoseDefinitionIsMissingStopsTheSchedulerWithTheNextStep(t *testing.T) {
	s := newStand(t)
	s.AddNodes(t, 1)
	for name, test := range map[string]struct{ config, plugin, crd, group, resource string }{
		"gang":  {"gang.yaml", "Coscheduling", "podgroups.scheduling.sigs.k8s.io", "scheduling.sigs.k8s.io/v1alpha1", "podgroups"},
		"quota": {"quota.yaml", "CapacityScheduling", "elasticquotas.scheduling.sigs.k8s.io", "scheduling.sigs.k8s.io/v1alpha1", "elasticquotas"},
		"numa": {
			"numa.yaml", "NodeResourceTopologyMatch", "noderesourcetopologies.topology.node.k8s.io", "topology.node.k8s.io/v1alpha1",
			"noderesourcetopologies",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.Kubectl(t, t.Context(), "delete", "customresourcedefinition", test.crd)
			t.Cleanup(func() { s.Kubectl(t, context.Background(), "apply", "-f", s.crds) })
			s.Await(t, "the API server to serve "+test.resource+" no more", func() error {
				list, err := s.Client().Discovery().ServerResourcesForGroupVersion(test.group)
				if apierrors.IsNotFound(err) {
					return nil
				}
				if err != nil {
					return err
				}
				for _, resource := range list.APIResources {
					if resource.Name == test.resource {
						return cluster.Unless(false, "it does")
					}
				}
				return nil
			})
			config := strings.ReplaceAll(cluster.Read(t, root+"/manifests/config/"+test.config),
				"/etc/kubernetes/scheduler.conf", s.Kubeconfig())
			file := filepath.Join(t.TempDir(), test.config)
			cluster.Write(t, file, config)
			program := cluster.Program(t, "KUBE_SCHEDULER")
			want := "the cluster does not have the CustomResourceDefinition " + test.crd +
				"; next: kubectl apply -f crds/" + test.crd + ".yaml"

			scheduler, err := s.ControlPlane.StartScheduler(t.Context(), program, file, localcluster.SchedulerOptions{})
			if err == nil {
				t.Errorf("the scheduler starts; stopped: %v", scheduler.Stop())
			} else if !strings.Contains(err.Error(), want) {
				t.Errorf("it does not start: %v\nwant it to say %q", err, want)
			}
			output, err := exec.CommandContext(t.Context(), program, "--config="+file, "--validate-config").CombinedOutput()
			if err != nil || !strings.Contains(string(output), "warning: plugin "+test.plugin+": "+want) {
				t.Errorf("--validate-config: %v, %s\nwant it to say %q", err, output, want)
			}
		})
	}
	// With the suggested files applied, it starts.
	s.CreateFrom(t, s.crds)
	s.start(t, "gang.yaml")
}
