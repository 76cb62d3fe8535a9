// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"sort"
	"strconv"
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
	var text []byte
	explained := 0
	for _, rule := range append(append([]*rule(nil), c.about.rules...), c.about.scored...) {
		if rule.share == nil || c.standings == nil {
			continue
		}
		if explained++; explained > explainedRules {
			continue
		}
		now := c.standings[rule.share.place]
		text = append(append(append(text, "Rule "...), rule.name...), ": "...)
		text = strconv.AppendInt(text, now.inside, 10)
		text = append(text, " of "...)
		text = strconv.AppendInt(text, now.pods, 10)
		text = append(text, " pods are on its nodes, and "...)
		text = strconv.AppendInt(text, rule.share.least, 10)
		text = append(text, " to "...)
		text = strconv.AppendInt(text, rule.share.most, 10)
		text = append(text, " % should be. "...)
		switch {
		case now.closedInside && !now.closedOutside:
			text = append(text, "None of its nodes is open, so others are allowed. "...)
		case now.closedOutside && !now.closedInside:
			text = append(text, "No other node is open, so its nodes are allowed. "...)
		}
	}
	if explained > explainedRules {
		text = strconv.AppendInt(append(text, "And "...), int64(explained-explainedRules), 10)
		text = append(text, " more with a share. "...)
	}
	if text = c.about.appendDenied(text); len(text) > 0 && text[len(text)-1] == ' ' {
		text = text[:len(text)-1]
	}
	return string(text)
}

// appendDenied appends the rules that denied the most nodes, sorted by the number of nodes and then in their order.
func (p *podRules) appendDenied(text []byte) []byte {
	type denial struct {
		rule  int
		nodes int64
	}
	var denials []denial
	for i := range p.denied {
		if nodes := atomic.LoadInt64(&p.denied[i]); nodes > 0 {
			denials = append(denials, denial{i, nodes})
		}
	}
	if len(denials) == 0 {
		return text
	}
	sort.SliceStable(denials, func(i, j int) bool { return denials[i].nodes > denials[j].nodes })
	more := len(denials) - explainedRules
	if more > 0 {
		denials = denials[:explainedRules]
	}
	text = append(text, "Nodes denied: "...)
	for i, denied := range denials {
		name := filterrule.DefaultActionLabel
		if denied.rule < len(p.rules) {
			name = p.rules[denied.rule].name
		}
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(append(text, name...), ' ')
		text = strconv.AppendInt(text, denied.nodes, 10)
	}
	if more > 0 {
		text = strconv.AppendInt(append(text, ", and "...), int64(more), 10)
		text = append(text, " more rules"...)
	}
	return append(text, '.')
}
