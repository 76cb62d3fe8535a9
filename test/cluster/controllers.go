// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster/supervisor"
)

// StartControllers starts Kubernetes' controllers of these names, and returns their supervisor, for further programs. At
// the end of the test it stops all of them, and removes all objects of some kinds.
func (c *Cluster) StartControllers(t testing.TB, names, kinds string, arguments ...string) *supervisor.Supervisor {
	t.Helper()
	processes, err := supervisor.New(t.TempDir(), &tls.Config{MinVersion: tls.VersionTLS12}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(processes.Failure(), processes.Stop()); err != nil {
			t.Error(err)
		}
		c.Kubectl(t, context.Background(), "delete", kinds, "--all", "--all-namespaces")
	})
	StartProgram(t, processes, "kube-controller-manager", "KUBE_CONTROLLER_MANAGER", append([]string{
		"--kubeconfig=" + c.Kubeconfig(), "--leader-elect=false", "--secure-port=0", "--controllers=" + names,
	}, arguments...)...)
	return processes
}

// StartProgram starts the program of a variable without a readiness check: the tests wait for its effects.
func StartProgram(t testing.TB, processes *supervisor.Supervisor, name, variable string, arguments ...string) *supervisor.Process {
	t.Helper()
	process, _, err := processes.Start(t.Context(), supervisor.Component{
		Name: name, Executable: Program(t, variable), Next: "read what its log says",
		Environment: []string{"HOME=" + processes.Folder()},
		Arguments:   func(int) []string { return arguments },
	})
	if err != nil {
		t.Fatal(err)
	}
	return process
}

// NewDeployment describes a Deployment of pods with the labels of the template.
func NewDeployment(name string, replicas int32, template corev1.PodTemplateSpec) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
		},
	}
}
