// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// overfull shows that a kubelet handles a pod without room on its node as docs/scenarios.md says; a scheduler has no
// part in that. The pod has a nodeName, so no scheduler is involved.
func (o *operator) overfull(t *testing.T) {
	const status = "kubectl get pod --namespace overfull too-large --output jsonpath='{.status.phase} {.status.reason} {.status.message}'"
	o.run(t, `kubectl create namespace overfull
kubectl run --namespace overfull too-large --image none --overrides '{"spec": {"nodeName": "cp1", "tolerations": [{"operator": "Exists"}],
  "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1000"}}}]}}'
`+until(status, "Failed"))
	expect(t, o.run(t, status), "Failed OutOfcpu Pod Node didn't have enough resource: cpu, requested: 1000000, used: ")
	o.run(t, "kubectl delete namespace overfull --wait=false")
}
