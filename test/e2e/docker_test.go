// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"kube-scheduler-fork/test/e2e/kubeadmnode"
)

// TestDocker swaps the scheduler of a node whose kubelet uses Docker, through its dockershim, and rolls it back.
func TestDocker(t *testing.T) {
	node := start(t, kubeadmnode.NodeOptions{Name: "cp1", Docker: true})
	if err := node.Init(t.Context(), kubeadmnode.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	o := &operator{page: readPage(t, filepath.Join("..", "..", "docs", "operations.md")), node: node}
	o.connect(t)
	o.original = o.read(t, manifestFile)
	o.copyBundle(t, node)
	o.page.do(t, node, "unpack")
	o.page.folder = strings.TrimSpace(o.run(t, "realpath kube-scheduler-*/"))
	expect(t, o.run(t, "kubectl get node cp1 --output jsonpath='{.status.nodeInfo.containerRuntimeVersion}'"), "docker://")

	expect(t, o.page.do(t, node, "check"), "nothing found")
	o.dockerDiskFull(t)
	expect(t, o.interrupt(t, os.Interrupt, "loading ", "--archive", path.Join(o.page.folder, "kube-scheduler.tar")),
		"interrupted before anything was changed")
	output := o.page.do(t, node, "install")
	t.Log(output)
	expect(t, output, "loaded registry.k8s.io/kube-scheduler:", "it holds the lease", "bound it to", "done:")
	o.verify(t)
	o.run(t, "sed 's/weight: 25/weight: 30/' manifests/config/my-scheduler.yaml > my-scheduler.yaml")
	o.powerCut(t)
	o.expectConfig(t, "weight: 30")

	archive := filepath.Join(t.TempDir(), "crash.tar")
	err := kubeadmnode.BuildImage(archive, "registry.k8s.io/kube-scheduler:crash", setting(t, "E2E_CRASH"), "/usr/local/bin/kube-scheduler")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, o.refused(t, "kube-scheduler-swap install --archive "+archive+" 2>&1"),
		"exited with status 3", "crash: the fault of this scheduler shows when it runs", "the old one runs again")
	o.expectDone(t)

	// A running container has no need of its image's name.
	o.run(t, "docker rmi --force registry.k8s.io/kube-scheduler:v1.23.17")
	expect(t, o.page.do(t, node, "rollback"), "which is no longer on this node, from "+stateFolder, "done:")
	o.expectStock(t)
	o.page.do(t, node, "rollback-previous")
	o.expectDone(t)
	output = o.page.do(t, node, "uninstall")
	t.Log(output)
	expect(t, output, "removed the image registry.k8s.io/kube-scheduler:v1.23.17_", "removed "+stateFolder, "done:")
	o.expectStock(t)
	if left := o.run(t, "docker images --quiet --filter reference='*/kube-scheduler*:*fork*'"); left != "" {
		t.Errorf("uninstall left the image %s", left)
	}
}

// dockerDiskFull loads the image while Docker's disk is full.
func (o *operator) dockerDiskFull(t *testing.T) {
	before := o.sums(t)
	o.run(t, `mount -o remount,size=$(($(df --output=used -k /var/lib/docker | tail -n 1) + 20000))k /var/lib/docker`)
	// The tool's own directory is on the same disk.
	output := o.refused(t, "kube-scheduler-swap install --archive kube-scheduler.tar --state /run/state 2>&1")
	o.run(t, "mount -o remount,size=50% /var/lib/docker")
	expect(t, output, "docker load --input kube-scheduler.tar: ", "no space left on device", "df -h")
	if left := o.run(t, "docker images --quiet --filter reference='*/kube-scheduler*:*fork*'"); left != "" {
		t.Errorf("a failed load left the image %s", left)
	}
	if after := o.sums(t); after != before {
		t.Errorf("a failed load changed files:\n%s\nbefore:\n%s", after, before)
	}
}
