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

// auditPolicy makes the API server log each binding when it is complete.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [create], resources: [{group: "", resources: [pods/binding]}]}
- {level: None}
`

// auditConfiguration enables auditPolicy in kubeadm's ClusterConfiguration.
const auditConfiguration = `apiServer:
  extraArgs: {audit-policy-file: ` + auditPolicyFile + `, audit-log-path: ` + auditLogFile + `}
  extraVolumes:
  - {name: audit, hostPath: /etc/kubernetes/audit, mountPath: /etc/kubernetes/audit, pathType: DirectoryOrCreate}
`

// bindings returns how often each pod of a namespace was bound, from the audit log of a
// node's API server. It is 0 for a pod whose binding was requested without a successful
// response, for example because its scheduler was stopped before the response.
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
