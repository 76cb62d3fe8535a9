// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"math"
	"strconv"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
)

// explainedRules are told of, of each kind; the others are counted.
const explainedRules = 5

// Explain says for the decision records how the shares stood that concern the pod, and how many nodes the rules denied.
func (pl *NodeFilter) Explain(state *framework.CycleState, _ *v1.Pod, _ []string) string {
	c, err := cycleOf(state)
	if err != nil {
		return ""
	}
	var text []byte
	told := 0
	for _, rule := range c.about.rules {
		if rule.share == nil || c.standings == nil {
			continue
		}
		if told++; told > explainedRules {
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
		text = append(text, " % may be. "...)
	}
	if told > explainedRules {
		text = strconv.AppendInt(append(text, "And "...), int64(told-explainedRules), 10)
		text = append(text, " more with a share. "...)
	}
	if text = c.about.appendDenied(text); len(text) > 0 && text[len(text)-1] == ' ' {
		text = text[:len(text)-1]
	}
	return string(text)
}

// appendDenied tells of the rules that denied the most nodes, from the one with the most, those with equally many in their
// order.
func (p *podRules) appendDenied(text []byte) []byte {
	denying := 0
	for i := range p.denied {
		if atomic.LoadInt64(&p.denied[i]) > 0 {
			denying++
		}
	}
	if denying == 0 {
		return text
	}
	text = append(text, "Nodes denied: "...)
	last, most := -1, int64(math.MaxInt64)
	for told := 0; told < denying && told < explainedRules; told++ {
		next, nodes := -1, int64(0)
		for i := range p.denied {
			n := atomic.LoadInt64(&p.denied[i])
			// It comes after the last one that was told, and before what was found so far.
			if (n < most || n == most && i > last) && n > nodes {
				next, nodes = i, n
			}
		}
		if next < 0 {
			break
		}
		last, most = next, nodes
		name := filterrule.DefaultActionLabel
		if next < len(p.rules) {
			name = p.rules[next].name
		}
		if told > 0 {
			text = append(text, ", "...)
		}
		text = append(append(text, name...), ' ')
		text = strconv.AppendInt(text, nodes, 10)
	}
	if denying > explainedRules {
		text = append(text, ", and "...)
		text = strconv.AppendInt(text, int64(denying-explainedRules), 10)
		text = append(text, " more rules"...)
	}
	return append(text, '.')
}
