// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// overfull shows what a kubelet does with a pod for which its node has no room, as docs/scenarios.md says: a scheduler
// could give it nothing more. The pod names its node, so none is asked.
func (o *operator) overfull(t *testing.T) {
	const status = "kubectl get pod --namespace overfull too-large --output jsonpath='{.status.phase} {.status.reason} {.status.message}'"
	o.run(t, `kubectl create namespace overfull
kubectl run --namespace overfull too-large --image none --overrides '{"spec": {"nodeName": "cp1", "tolerations": [{"operator": "Exists"}],
  "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1000"}}}]}}'
`+until(status, "Failed"))
	expect(t, o.run(t, status), "Failed OutOfcpu Pod Node didn't have enough resource: cpu, requested: 1000000, used: ")
	o.run(t, "kubectl delete namespace overfull --wait=false")
}
