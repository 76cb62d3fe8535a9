// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"strconv"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
)

// explainedRules are told of, of each kind.
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
		if rule.share == nil || c.standings == nil || told == explainedRules {
			continue
		}
		told++
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
	told = 0
	for i := range c.about.denied {
		nodes := atomic.LoadInt64(&c.about.denied[i])
		if nodes == 0 || told == explainedRules {
			continue
		}
		separator := ", "
		if told++; told == 1 {
			separator = "Nodes denied: "
		}
		name := filterrule.DefaultActionLabel
		if i < len(c.about.rules) {
			name = c.about.rules[i].name
		}
		text = append(append(append(text, separator...), name...), ' ')
		text = strconv.AppendInt(text, nodes, 10)
	}
	if told > 0 {
		return string(append(text, '.'))
	}
	if len(text) > 0 {
		text = text[:len(text)-1]
	}
	return string(text)
}
