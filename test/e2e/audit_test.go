// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"kube-scheduler-fork/test/cluster"
	"kube-scheduler-fork/test/e2e/kubeadmnode"
)

const (
	auditPolicyFile = "/etc/kubernetes/audit/policy.yaml"
	auditLogFile    = "/etc/kubernetes/audit/log"
)

// auditPolicy has the API server write down each pod that is bound, when it was.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [create], resources: [{group: "", resources: [pods/binding]}]}
- {level: None}
`

// auditConfiguration are the lines of kubeadm's ClusterConfiguration for that.
const auditConfiguration = `apiServer:
  extraArgs: {audit-policy-file: ` + auditPolicyFile + `, audit-log-path: ` + auditLogFile + `}
  extraVolumes:
  - {name: audit, hostPath: /etc/kubernetes/audit, mountPath: /etc/kubernetes/audit, pathType: DirectoryOrCreate}
`

// bindings reads how often each pod of a namespace was bound, as the API server of a node saw it: 0 for one whose
// binding was asked for and not answered with success, which may be one whose scheduler was ended before the answer
// came.
func bindings(t *testing.T, node *kubeadmnode.Node, namespace string) map[string]int {
	t.Helper()
	bound := map[string]int{}
	for _, event := range cluster.ReadAudit(t, node.Root()+auditLogFile) {
		if event.ObjectRef == nil || event.ObjectRef.Namespace != namespace {
			continue
		}
		times := bound[event.ObjectRef.Name]
		if event.ResponseStatus != nil && event.ResponseStatus.Code == 201 {
			times++
		}
		bound[event.ObjectRef.Name] = times
	}
	return bound
}
