// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// explainedRules is the largest number of rules in an explanation. The others are counted.
const explainedRules = 5

// Explain returns, for the decision records, the shares that concern the pod.
func (pl *NodeFilter) Explain(state *framework.CycleState, _ *v1.Pod, _ []string) string {
	c, err := cycleOf(state)
	if err != nil {
		return ""
	}
	var sentences []string
	shares := 0
	for _, rule := range append(append([]*rule(nil), c.about.rules...), c.about.scored...) {
		if rule.share == nil || c.standings == nil {
			continue
		}
		if shares++; shares > explainedRules {
			continue
		}
		now := c.standings[rule.share.place]
		sentences = append(sentences, fmt.Sprintf("Rule %s: %d of %d pods are on its nodes, and %d to %d %% should be.",
			rule.name, now.inside, now.pods, rule.share.least, rule.share.most))
		switch {
		case now.closedInside && !now.closedOutside:
			sentences = append(sentences, "None of its nodes is open, so others are allowed.")
		case now.closedOutside && !now.closedInside:
			sentences = append(sentences, "No other node is open, so its nodes are allowed.")
		}
	}
	if more := shares - explainedRules; more > 0 {
		sentences = append(sentences, fmt.Sprintf("And %d more with a share.", more))
	}
	return strings.Join(sentences, " ")
}
