// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/draw"
)

// DrawnNode is the node that a pod goes to at its first attempt, if all nodes are feasible and it is redirected.
func DrawnNode(seed int64, uid types.UID, nodes []*v1.Node) string {
	k := newKeys(draw.Key(seed, string(uid), "1"))
	return k.drawNode(nodes)
}

// WaitForNoGoroutines fails the test if the plugin's goroutines do not end.
func WaitForNoGoroutines(t testing.TB) {
	t.Helper()
	waitForNoGoroutines(t)
}
