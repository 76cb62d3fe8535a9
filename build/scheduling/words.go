// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"k8s.io/apimachinery/pkg/util/duration"
)

// This file has the texts that tables and pages share.

// otherPlugins is the plugin name of the rejections in an answer that exceed the limit of separate texts.
const otherPlugins = "…"

// escape replaces characters that a terminal would interpret or hide by their number, as in JSON: control characters, and
// those that change the text direction.
func escape(text string) string { return escapeBut(text, "") }

// escapeBut does not replace the characters in kept.
func escapeBut(text, kept string) string {
	var safe strings.Builder
	for _, r := range text {
		if strconv.IsGraphic(r) || strings.ContainsRune(kept, r) {
			safe.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&safe, "\\u%04x", unit)
		}
	}
	return safe.String()
}

// Escaped writes whole texts of several lines to a terminal, and escapes them. JSON stays the same value.
type Escaped struct{ io.Writer }

func (e Escaped) Write(content []byte) (int, error) {
	_, err := io.WriteString(e.Writer, escapeBut(string(content), "\n\t"))
	return len(content), err
}

// argument quotes a text for a shell, unless it has only characters that no shell interprets.
func argument(text string) string {
	text = escape(text)
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=") == "" && text != "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// counted returns a number and a noun, which is in the plural unless the number is 1.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// plugin returns the name under which a plugin is shown.
func plugin(name string) string {
	if name == otherPlugins {
		return "other plugins"
	}
	return cmp.Or(name, "an extender")
}

// lasted formats a duration in seconds with a suitable unit.
func lasted(seconds float64) string {
	took := time.Duration(seconds * float64(time.Second))
	switch {
	case took < time.Millisecond:
		return took.Round(time.Microsecond).String()
	case took < 10*time.Second:
		return took.Round(10 * time.Microsecond).String()
	}
	return duration.HumanDuration(took)
}

// since returns the time since then as kubectl shows it; this machine's clock may be behind the scheduler's.
func since(now, then time.Time) string { return duration.HumanDuration(max(0, now.Sub(then))) }

func ago(now, then time.Time) string   { return since(now, then) + " ago" }
func until(now, then time.Time) string { return "in " + since(then, now) }
func stamp(t time.Time) string         { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// Tie returns a sentence about nodes that share the highest score, or "" if only one has it.
func (d decision) Tie() string {
	if d.Ties < 2 {
		return ""
	}
	return fmt.Sprintf("%d nodes have the highest total, and one of them is chosen at random.", d.Ties)
}

// Nodes returns the pods of a gang by node, in the order of the pods; those without a node have "".
func (g gang) Nodes() (nodes []gangVictims) {
	index := map[string]int{}
	for _, pod := range g.Pods {
		at, known := index[pod.Node]
		if !known {
			at, index[pod.Node] = len(nodes), len(nodes)
			nodes = append(nodes, gangVictims{Node: pod.Node})
		}
		nodes[at].Pods = append(nodes[at].Pods, pod.Name)
	}
	return nodes
}

// sentences describes the result of preemption. names shortens lists of names.
func (p preemption) sentences(names func([]string) string) string {
	var sentences []string
	if p.Candidates > 0 {
		sentences = append(sentences, fmt.Sprintf("Evictions would make room on %s, such as %s.", counted(p.Candidates, "node"), names(p.Sample)))
	}
	if p.Node != "" {
		victims := counted(max(p.VictimCount, len(p.Victims)), "pod")
		sentences = append(sentences, fmt.Sprintf("To be evicted from node %s: %s, %s.", p.Node, victims, names(p.Victims)))
	}
	if p.WhyNot != "" {
		sentences = append(sentences, "Nothing is evicted: "+p.WhyNot)
	}
	return strings.Join(sentences, " ")
}
