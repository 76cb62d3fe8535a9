// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// taintReason is the reason of a filter, with the number of nodes that have it in the status of a pod, if the taint has a
// value.
var taintReason = regexp.MustCompile(`(\d+ )?node\(s\) had taint \{([^:}]+): [^}]+\}, that the pod didn't tolerate(, )?`)

// withoutTaintValues replaces these reasons in a line of a trace by the number of nodes for each key of a taint, because
// 0754 shows no value: nodes whose taints differ in it have one reason.
func withoutTaintValues(line string) string {
	nodes := map[string]int{}
	rest := taintReason.ReplaceAllStringFunc(line, func(reason string) string {
		found := taintReason.FindStringSubmatch(reason)
		number, _ := strconv.Atoi(strings.TrimSpace(found[1]))
		nodes[found[2]] += number
		return ""
	})
	if len(nodes) == 0 {
		return line
	}
	return fmt.Sprintf("%s; nodes with taints: %v", strings.ReplaceAll(rest, ", .", "."), nodes)
}
