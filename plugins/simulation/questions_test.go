// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// placed returns a pod of an owner on a node. more are further fields of its spec.
func placed(name, owner, node, more string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, uid: uid-%[1]s, labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: %s, name: web, uid: owner, controller: true}]}
spec: {nodeName: %s, schedulerName: default-scheduler, containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]%s}
status: {phase: Running}
---
`, name, owner, node, more)
}

// allowing returns a budget of the pods with a label, which has status.
func allowing(name, selector, status string) string {
	return fmt.Sprintf(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %s}
spec: {maxUnavailable: 1, selector: %s}
status: %s
---
`, name, selector, status)
}

const (
	byApp = "{matchLabels: {app: web}}"
	one   = "{disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3}"
	none  = "{disruptionsAllowed: 0, currentHealthy: 3, desiredHealthy: 3, expectedPods: 3}"
	// disk is a volume with the claim of its pod.
	disk = `, volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: disk, resources: {requests: {storage: 1Gi}}}}}}]`
)

// zones returns two nodes, each in a zone of its own and with two places for disks, and a class.
func zones(class string) string {
	text := "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: disk, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}\nprovisioner: disks\n" + class + "\n---\n"
	for i, zone := range []string{"a", "b"} {
		text += strings.Replace(nodes(1), "node-0", fmt.Sprintf("node-%d, labels: {kubernetes.io/hostname: node-%d, topology.kubernetes.io/zone: %s}", i, i, zone), 1)
		text += fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: node-%d}\nspec: {drivers: [{name: disks, nodeID: id, topologyKeys: [topology.kubernetes.io/zone], allocatable: {count: 2}}]}\n---\n", i)
	}
	return text
}

const (
	waiting = "volumeBindingMode: WaitForFirstConsumer"
	inZoneA = "\nallowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [a]}]}]"
	bound   = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: web-0-data
  uid: claim
  annotations: {pv.kubernetes.io/bind-completed: 'yes'}
  ownerReferences: [{apiVersion: v1, kind: Pod, name: web-0, uid: uid-web-0, controller: true}]
spec: {accessModes: [ReadWriteOnce], storageClassName: disk, volumeName: pv}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: disk
  persistentVolumeReclaimPolicy: Delete
  claimRef: {namespace: default, name: web-0-data, uid: claim}
  csi: {driver: disks, volumeHandle: v}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]}]}}
status: {phase: Bound}
---
`
	database  = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {template: {spec: {containers: [{name: c, image: i}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}\n"
	withDisk  = "apiVersion: v1\nkind: Pod\nmetadata: {name: more}\nspec: {containers: [{name: c, image: i}]" + disk + "}\n"
	agent     = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec: {template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}}\n---\n"
	elsewhere = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: elsewhere}\nspec: {template: {spec: {nodeSelector: {gpu: 'yes'}, containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}}\n---\n"
)

// TestOthersAct verifies answers that depend on what others do than the scheduler.
func TestOthersAct(t *testing.T) {
	six := nodes(6) + allowing("web", byApp, one)
	for i := 0; i < 6; i++ {
		six += placed(fmt.Sprintf("web-%d", i), "ReplicaSet", fmt.Sprintf("node-%d", i), "")
	}
	two := nodes(3) + placed("web-0", "ReplicaSet", "node-0", "") + placed("web-1", "ReplicaSet", "node-0", "") + placed("web-2", "ReplicaSet", "node-1", "")
	unready := strings.Replace(two, "status: {phase: Running}", "status: {phase: Running, conditions: [{type: Ready, status: 'False'}]}", 1)
	migrated := strings.NewReplacer("provisioner: disks", "provisioner: kubernetes.io/aws-ebs", "name: disks", "name: ebs.csi.aws.com",
		"CSINode\nmetadata: {", "CSINode\nmetadata: {annotations: {storage.alpha.kubernetes.io/migrated-plugins: kubernetes.io/aws-ebs}, ").Replace(zones(waiting))
	for name, test := range map[string]struct{ snapshot, question, want string }{
		"a budget comes back when the successor runs": {six, "shrink", "5 of 6 nodes can go"},
		"pods of a budget go one after the other":     {two + allowing("web", byApp, one), "drain node-0", "can finish: 2 pods move, 0 stay"},
		"pods of a StatefulSet do": {strings.ReplaceAll(two, "ReplicaSet", "StatefulSet") + allowing("web", byApp, one), "drain node-0",
			"can finish: 2 pods move, 0 stay"},
		"two budgets of a pod": {two + allowing("a", byApp, one) + allowing("b", byApp, one), "drain node-0",
			"2 are blocked, 0 have no owner, 0 stay.\n  default/web-0: Kubernetes 1.23 does not evict a pod that several PodDisruptionBudgets select: default/a, default/b"},
		"an empty selector":                     {two + allowing("web", "{}", none), "drain --each node-0", "node-0: 2 pods move"},
		"a pod that does not run has no budget": {strings.Replace(two, "Running", "Pending", 1) + allowing("web", byApp, "{currentHealthy: 2, desiredHealthy: 3, expectedPods: 3}"), "drain node-0", "1 pods move, 0 would wait, 1 are blocked"},
		"a pod that is not ready is not needed": {unready + allowing("web", byApp, "{currentHealthy: 2, desiredHealthy: 2, expectedPods: 3}"), "drain node-0", "can finish: 2 pods move"},
		"a budget that always allows it":        {strings.Replace(unready+allowing("web", byApp, "{currentHealthy: 2, desiredHealthy: 3, expectedPods: 3}"), "maxUnavailable: 1", "maxUnavailable: 1, unhealthyPodEvictionPolicy: AlwaysAllow", 1), "drain node-0", "1 pods move, 0 would wait, 1 are blocked"},
		"claims of a StatefulSet":               {zones(waiting + inZoneA), "fit --pod db.yaml", "default/db: 2 more fit, on 1 nodes"},
		"claims that are bound at once":         {zones(inZoneA), "fit --pod db.yaml", "default/db: 2 more fit, on 1 nodes"},
		"claims of a migrated driver":           {migrated, "fit --pod db.yaml", "default/db: 4 more fit, on 2 nodes"},
		"a claim that the snapshot lacks":       {zones(waiting) + strings.Replace(placed("web-0", "ReplicaSet", "''", disk), "Running", "Pending", 1), "grow --node node.yaml", "0 pods wait"},
		"ephemeral volumes":                     {zones(waiting) + placed("web-0", "ReplicaSet", "node-0", disk) + bound, "fit --pod more.yaml", "default/more: 3 more fit, on 2 nodes"},
		"check of an ephemeral one":             {zones(waiting) + placed("web-0", "ReplicaSet", "node-0", disk) + bound, "check", "100.0 % of 1 pods agree"},
		"it is made again elsewhere":            {zones(waiting) + placed("web-0", "ReplicaSet", "node-0", disk) + bound, "drain --each node-0 node-0", "node-0: 1 pods move\nnode-0: 1 pods move\n"},
		"it is gone with its node":              {zones(waiting) + placed("web-0", "StatefulSet", "node-0", disk) + bound, "lose node-0", "1 pods have another node, 0 pods wait"},
		"DaemonSets take of new ones":           {nodes(1) + agent + elsewhere, "grow --node node.yaml --pod three.yaml", "3 pods wait. 2 new nodes give a place to 3 of them."},
		"DaemonSets that are missing":           {nodes(1) + placed("agent-0", "DaemonSet", "node-0", ""), "grow --node node.yaml --pod three.yaml", "Note: new nodes have no pods of DaemonSet default/web, which the snapshot lacks"},
		"budgets that are missing":              {two, "drain node-0", "Note: the snapshot has no PodDisruptionBudgets"},
		"pods that stand aside":                 {two + strings.Replace(placed("large", "ReplicaSet", "''", ", nodeSelector: {gpu: 'yes'}"), "Running", "Pending", 1), "drain --each", "Note: pending pods of the snapshot take no place that a drain frees, unlike in a trace: 1"},
		"nodes without the driver's key":        {strings.ReplaceAll(zones(waiting), "topologyKeys: [topology.kubernetes.io/zone]", "topologyKeys: [topology.disks/zone]"), "fit --pod db.yaml", "default/db: 4 more fit, on 2 nodes"},
		"the control plane stays":               {strings.Replace(two, "node-2", "node-2, labels: {node-role.kubernetes.io/master: ''}", 1), "shrink", "node-2: it is a node of the control plane: node-role.kubernetes.io/master"},
		"a budget before other reasons":         {strings.ReplaceAll(two, "cpu: 500m", "cpu: 3") + allowing("web", byApp, one), "shrink", "node-0: default/web-1 is blocked: PodDisruptionBudget default/web allows no disruption"},
		"pods that are placed again are ready":  {unready + allowing("web", byApp, "{currentHealthy: 2, desiredHealthy: 2, expectedPods: 3}"), "drain node-0 --for-each-configuration", "The drain of node-0 can finish: 1 pods move"},
		"budgets allow no more then":            {two + allowing("web", byApp, none), "drain node-0 --for-each-configuration", "PodDisruptionBudget default/web allows no disruption"},
		"what is left, also in JSON":            {six, "shrink -o json", "Not modelled:\n  eviction API: its rate limits\n"},
	} {
		test := test
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process := command(t, test.question+" --snapshot others.yaml")
			for file, text := range map[string]string{
				"others.yaml": test.snapshot, "db.yaml": database, "more.yaml": withDisk, "node.yaml": nodes(1),
				"three.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: three}\nspec: {replicas: 7, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}}\n",
			} {
				if err := os.WriteFile(filepath.Join(process.Dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := process.CombinedOutput(); err != nil || !strings.Contains(string(got), test.want) {
				t.Errorf("got %v\n%s\nwant %q", err, got, test.want)
			}
		})
	}
}
