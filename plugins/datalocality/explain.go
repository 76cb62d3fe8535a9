// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	// explainedNodes is the largest number of nodes in an explanation.
	explainedNodes = 5
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
	text := make([]byte, 0, 512)
	if len(c.datasets) > 0 {
		text = append(appendBytes(append(text, "The pod reads "...), c.total), " of "...)
		text = append(strconv.AppendInt(text, int64(len(c.datasets)), 10), " dataset(s)."...)
		if len(nodes) > explainedNodes {
			nodes = nodes[:explainedNodes]
		}
		for _, name := range nodes {
			if nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(name); err == nil {
				text = pl.appendNode(append(append(text, ' '), name...), c, nodeInfo.Node())
			}
		}
	}
	if len(c.unknown) > 0 {
		text = append(sentence(text), "No node holds"...)
		for i := 0; i < len(c.unknown) && i < explainedNames; i++ {
			text = appendPart(text, i, c.unknown[i].name, "")
		}
		text = append(appendMore(text, len(c.unknown)), '.')
	}
	if ignored > 0 {
		text = append(sentence(text), "Ignored in the annotation:"...)
		for i, one := range c.ignored.first {
			text = appendPart(text, i, one.part, string(one.reason))
		}
		text = append(appendMore(text, ignored), '.')
	}
	if pl.index.ignored > 0 {
		text = strconv.AppendInt(sentence(text), int64(pl.index.ignored), 10)
		text = append(text, " name(s) of nodes and servers are ignored: malformed or too many."...)
	}
	return string(text)
}

// appendNode appends the bytes that the pod reads at each level of a node.
func (pl *DataLocality) appendNode(text []byte, c *cycle, node *v1.Node) []byte {
	held := pl.index.held(node)
	at, rest, separator := nearest(&held, c.bytes), c.total, ": "
	for level, key := range pl.keys {
		if at[level] > 0 {
			text = appendBytes(append(text, separator...), at[level])
			text = append(append(text, " in its "...), key...)
			rest -= at[level]
			separator = ", "
		}
	}
	if rest > 0 {
		text = append(appendBytes(append(text, separator...), rest), " further away"...)
	}
	return append(text, '.')
}

// appendPart appends one of several names.
func appendPart(text []byte, i int, name, why string) []byte {
	if i > 0 {
		text = append(text, ',')
	}
	text = append(text, ' ')
	if len(name) > shownBytes {
		text = append(strconv.AppendQuoteToASCII(text, name[:shownBytes]), "…"...)
	} else {
		text = strconv.AppendQuoteToASCII(text, name)
	}
	if why != "" {
		text = append(append(append(text, " ("...), why...), ')')
	}
	return text
}

// appendMore appends the number of names that are not shown.
func appendMore(text []byte, of int) []byte {
	if of <= explainedNames {
		return text
	}
	return append(strconv.AppendInt(append(text, ", "...), int64(of-explainedNames), 10), " more"...)
}

// sentence appends a space unless the text is empty.
func sentence(text []byte) []byte {
	if len(text) > 0 {
		return append(text, ' ')
	}
	return text
}

// appendBytes appends a number of bytes, rounded down, in the largest unit with a value of at least 10, for example
// 120Gi.
func appendBytes(text []byte, bytes int64) []byte {
	unit := ""
	for _, larger := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
		if bytes < 10<<10 {
			break
		}
		bytes, unit = bytes>>10, larger
	}
	return append(strconv.AppendInt(text, bytes, 10), unit...)
}
