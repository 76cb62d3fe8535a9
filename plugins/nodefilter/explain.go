// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"fmt"
	"sort"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
)

// explainedRules is the largest number of rules of each kind in an explanation. The others are counted.
const explainedRules = 5

// Explain returns, for the decision records, the shares that concern the pod, and the number of nodes that the rules
// denied.
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
	return strings.Join(append(sentences, c.about.explainDenied()...), " ")
}

// explainDenied names the rules that denied the most nodes, sorted by the number of nodes and then in their order.
func (p *podRules) explainDenied() []string {
	type denial struct {
		rule  string
		nodes int64
	}
	var denials []denial
	for i := range p.denied {
		name := filterrule.DefaultActionLabel
		if i < len(p.rules) {
			name = p.rules[i].name
		}
		if nodes := atomic.LoadInt64(&p.denied[i]); nodes > 0 {
			denials = append(denials, denial{name, nodes})
		}
	}
	if len(denials) == 0 {
		return nil
	}
	sort.SliceStable(denials, func(i, j int) bool { return denials[i].nodes > denials[j].nodes })
	var parts []string
	for i, denied := range denials {
		if i == explainedRules {
			parts = append(parts, fmt.Sprintf("and %d more rules", len(denials)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", denied.rule, denied.nodes))
	}
	return []string{"Nodes denied: " + strings.Join(parts, ", ") + "."}
}
