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

// withoutTaintValues returns a trace without the values of taints, because 0754 shows none. Where only a value changed,
// stock writes the condition of a pod again.
func withoutTaintValues(trace []string) []string {
	var without []string
	conditions := map[string]string{}
	for _, line := range trace {
		line, found := countTaints(line)
		if pod, condition, ok := strings.Cut(line, ": PodScheduled "); ok {
			if found && conditions[pod] == condition {
				continue
			}
			conditions[pod] = condition
		}
		without = append(without, line)
	}
	return without
}

// countTaints replaces these reasons in a line of a trace by the number of nodes for each key of a taint: nodes whose taints
// differ in the value have one reason.
func countTaints(line string) (counted string, found bool) {
	nodes := map[string]int{}
	rest := taintReason.ReplaceAllStringFunc(line, func(reason string) string {
		found := taintReason.FindStringSubmatch(reason)
		number, _ := strconv.Atoi(strings.TrimSpace(found[1]))
		nodes[found[2]] += number
		return ""
	})
	if len(nodes) == 0 {
		return line, false
	}
	return fmt.Sprintf("%s; nodes with taints: %v", strings.ReplaceAll(rest, ", .", "."), nodes), true
}
