// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strings"
)

// nodeWith returns a node of a cluster, and what it says.
func nodeWith(c *Cluster) (*Node, *strings.Builder) {
	said := &strings.Builder{}
	return &Node{Kubelet: &Kubelet{NodeName: "cp1"}, Cluster: c, Say: func(format string, arguments ...any) { fmt.Fprintf(said, format+"\n", arguments...) }}, said
}
