// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"

	"kube-scheduler-fork/build/swap"
)

// extender installs scheduler-extender with the commands of its page, binds a pod with it, ends it while it is required
// and while it is ignorable, and removes it. Before and after, kubeadm's scheduler runs.
func (o *operator) extender(t *testing.T) {
	p := readPage(t, filepath.Join("..", "..", "docs", "extender.md"))
	p.folder = o.page.folder
	p.do(t, o.node, "certificates")
	p.do(t, o.node, "extender")
	expect(t, p.do(t, o.node, "scheduler"), "bound it to", "done:")
	o.pod(t, "with-extender")
	o.run(t, until("kubectl --namespace kube-system logs scheduler-extender-cp1", "serving the profile default-scheduler"))
	o.run(t, "kubectl wait --for condition=PodScheduled --timeout "+stepTimeout.String()+" pod with-extender")

	// kubelet stops the static pod.
	o.run(t, "mv /etc/kubernetes/manifests/scheduler-extender.yaml /root/")
	o.run(t, "while kubectl --namespace kube-system get pod scheduler-extender-cp1 > /dev/null 2>&1; do sleep 0.1; done")
	o.pod(t, "required")
	o.run(t, until("kubectl get events --field-selector involvedObject.name=required", "connection refused"))
	o.run(t, "sed 's/ignorable: false/ignorable: true/' manifests/config/extender.yaml > ignorable.yaml")
	expect(t, o.run(t, "kube-scheduler-swap install --config ignorable.yaml"), "done:")
	pod, err := swap.Describe(o.read(t, manifestFile))
	if err != nil || pod.Swap.Mounts != "/etc/kubernetes/scheduler-extender" {
		t.Errorf("another configuration without --mount: the scheduler mounts %q (%v)", pod.Swap.Mounts, err)
	}
	o.run(t, "kubectl wait --for condition=PodScheduled --timeout "+stepTimeout.String()+" pod required")

	o.run(t, "mv /root/scheduler-extender.yaml /etc/kubernetes/manifests/")
	p.do(t, o.node, "remove")
	o.expectStock(t)
	o.run(t, "kubectl delete pod with-extender required --grace-period 0 --force 2>&1")
	p.complete(t)
}

// pod creates a pod that is never pulled.
func (o *operator) pod(t *testing.T, name string) {
	t.Helper()
	o.run(t, "kubectl run "+name+" --image none --image-pull-policy Never")
}
