// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	// explainedNodes are told of.
	explainedNodes = 5
	// explainedNames are told of what is ignored, and of what is unknown; of each shownBytes.
	explainedNames = 3
	shownBytes     = 40
)

// Explain says for the decision records what the pod reads, at which level of some nodes it would read it, and what of
// its annotation does not count.
func (pl *DataLocality) Explain(_ *framework.CycleState, pod *v1.Pod, nodes []string) string {
	c := pl.current
	if c.pod != pod || len(c.datasets) == 0 && len(c.unknown) == 0 && len(c.ignored) == 0 {
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
		for i := range c.unknown {
			if text = appendPart(text, i, len(c.unknown), c.unknown[i].name, ""); i == explainedNames {
				break
			}
		}
		text = append(text, '.')
	}
	if len(c.ignored) > 0 {
		text = append(sentence(text), "Ignored of the annotation are"...)
		for i := range c.ignored {
			if text = appendPart(text, i, len(c.ignored), c.ignored[i].part, string(c.ignored[i].reason)); i == explainedNames {
				break
			}
		}
		text = append(text, '.')
	}
	if pl.index.ignored > 0 {
		text = strconv.AppendInt(sentence(text), int64(pl.index.ignored), 10)
		text = append(text, " name(s) of nodes and servers are ignored: malformed or too many."...)
	}
	return string(text)
}

// appendNode says how many bytes a node has at each level.
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

// appendPart appends one of several names; after three of them, how many there are more.
func appendPart(text []byte, i, of int, name, why string) []byte {
	if i > 0 {
		text = append(text, ',')
	}
	text = append(text, ' ')
	if i == explainedNames {
		return append(strconv.AppendInt(text, int64(of-i), 10), " more"...)
	}
	if len(name) > shownBytes {
		name = name[:shownBytes] + "…"
	}
	text = strconv.AppendQuoteToASCII(text, name)
	if why != "" {
		text = append(append(append(text, " ("...), why...), ')')
	}
	return text
}

// sentence appends a space where something stands before.
func sentence(text []byte) []byte {
	if len(text) > 0 {
		return append(text, ' ')
	}
	return text
}

// appendBytes appends a number of bytes in the largest unit of which there are ten or more, rounded down: 120Gi.
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
