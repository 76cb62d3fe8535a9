// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

const (
	// explainedNames is the largest number of ignored and of unknown names in an explanation, each with up to
	// shownBytes.
	explainedNames = 3
	shownBytes     = 40
)

// Explain returns, for the decision records, how much the pod reads, at which level of some nodes, and which parts of
// its annotation are ignored.
func (pl *DataLocality) Explain(_ *framework.CycleState, pod *v1.Pod, nodes []string) string {
	c := pl.current
	ignored := c.ignored.count()
	if c.pod != pod || len(c.datasets) == 0 && len(c.unknown) == 0 && ignored == 0 {
		return ""
	}
	var sentences, names []string
	if len(c.datasets) > 0 {
		sentences = append(sentences, fmt.Sprintf("The pod reads %s of %d dataset(s).", rounded(c.total), len(c.datasets)))
		for _, nodeInfo := range services.Explained(pl.handle, nodes) {
			sentences = append(sentences, nodeInfo.Node().Name+": "+pl.distances(c, nodeInfo.Node())+".")
		}
	}
	if len(c.unknown) > 0 {
		for i := 0; i < len(c.unknown) && i < explainedNames; i++ {
			names = append(names, quoted(c.unknown[i].name))
		}
		sentences = append(sentences, "No node holds "+listed(names, len(c.unknown))+".")
	}
	if ignored > 0 {
		names = nil
		for _, one := range c.ignored.first {
			names = append(names, fmt.Sprintf("%s (%s)", quoted(one.part), one.reason))
		}
		sentences = append(sentences, "Ignored in the annotation: "+listed(names, ignored)+".")
	}
	if pl.index.ignored > 0 {
		sentences = append(sentences, fmt.Sprintf("%d name(s) of nodes and servers are ignored: malformed or too many.", pl.index.ignored))
	}
	return strings.Join(sentences, " ")
}

// distances returns the bytes that the pod reads at each level of a node.
func (pl *DataLocality) distances(c *cycle, node *v1.Node) string {
	held := pl.index.held(node)
	at, rest := nearest(&held, c.bytes), c.total
	var parts []string
	for level, key := range pl.keys {
		if at[level] > 0 {
			parts = append(parts, rounded(at[level])+" in its "+key)
			rest -= at[level]
		}
	}
	if rest > 0 {
		parts = append(parts, rounded(rest)+" further away")
	}
	return strings.Join(parts, ", ")
}

// quoted returns the beginning of a name in quotes.
func quoted(name string) string {
	if len(name) > shownBytes {
		return strconv.QuoteToASCII(name[:shownBytes]) + "…"
	}
	return strconv.QuoteToASCII(name)
}

// listed returns the first names, and the number of the others.
func listed(first []string, count int) string {
	if count > explainedNames {
		first = append(first, fmt.Sprintf("%d more", count-explainedNames))
	}
	return strings.Join(first, ", ")
}

// rounded returns a number of bytes, rounded down, in the largest unit with a value of at least 10, for example 120Gi.
func rounded(bytes int64) string {
	unit := ""
	for _, larger := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
		if bytes < 10<<10 {
			break
		}
		bytes, unit = bytes>>10, larger
	}
	return strconv.FormatInt(bytes, 10) + unit
}
