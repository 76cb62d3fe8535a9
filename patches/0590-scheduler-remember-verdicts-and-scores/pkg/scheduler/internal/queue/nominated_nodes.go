// SPDX-License-Identifier: Apache-2.0

package queue

// NominatedNodes returns the names of the nodes for which pods are nominated.
func (npm *nominator) NominatedNodes() []string {
	npm.RLock()
	defer npm.RUnlock()
	names := make([]string, 0, len(npm.nominatedPods))
	for name := range npm.nominatedPods {
		names = append(names, name)
	}
	return names
}
