// SPDX-License-Identifier: Apache-2.0

package configurations

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// outcome is the parsed output of a run.
type outcome struct {
	text string
	// pods are the rows of the first table, by the pod's name.
	pods map[string]pod
	// onNode is the number of pods of each profile on each node, from the second table.
	onNode map[string]map[string]int
	// measured is the measured load of each node.
	measured map[string]string
	// used is the number of nodes with pods, as printed: "3 of 5".
	used string
	// events are the rows of the third table.
	events []event
}

// pod is a row. For a Pending pod the node is empty, and pending has the reason.
type pod struct{ scheduler, node, diskType, pending string }

type event struct{ pod, reason, message string }

var (
	columns = regexp.MustCompile(" {3,}")
	used    = regexp.MustCompile(`nodes with pods: (\d+ of \d+)`)
)

// parseOutput reads the tables: each begins with a line of headings, and ends with an empty line.
func parseOutput(text string) *outcome {
	o := &outcome{text: text, pods: map[string]pod{}, onNode: map[string]map[string]int{}, measured: map[string]string{}}
	if match := used.FindStringSubmatch(text); match != nil {
		o.used = match[1]
	}
	var headings []string
	for _, line := range strings.Split(text, "\n") {
		cells := columns.Split(line, -1)
		switch {
		case line == "":
			headings = nil
		case len(cells) > 1 && (cells[0] == "POD" || cells[0] == "NODE"):
			headings = cells
		case len(headings) == len(cells) && headings[0] == "NODE":
			o.addNode(headings, cells)
		case len(headings) == len(cells) && headings[1] == "EVENT":
			o.events = append(o.events, event{cells[0], cells[1], cells[2]})
		case len(headings) == len(cells) && headings[1] == "SCHEDULER":
			o.addPod(cells)
		}
	}
	return o
}

func (o *outcome) addPod(cells []string) {
	if why, pending := strings.CutPrefix(cells[4], "Pending: "); pending {
		o.pods[cells[0]] = pod{pending: why}
		return
	}
	o.pods[cells[0]] = pod{scheduler: cells[1], node: cells[2], diskType: cells[3]}
}

func (o *outcome) addNode(headings, cells []string) {
	counts := map[string]int{}
	for i, heading := range headings {
		if _, profile, is := strings.Cut(heading, "BY "); is {
			counts[profile], _ = strconv.Atoi(cells[i])
		}
		if heading == "MEASURED LOAD" {
			o.measured[cells[0]] = cells[i]
		}
	}
	o.onNode[cells[0]] = counts
}

// expect checks that a profile bound a pod to an expected node.
func (o *outcome) expect(t *testing.T, name, scheduler string, nodes ...string) {
	t.Helper()
	pod, there := o.pods[name]
	if !there || pod.scheduler != scheduler || !slices.Contains(nodes, pod.node) {
		t.Errorf("pod %s: %+v, want it bound by %s to one of %v", name, pod, scheduler, nodes)
	}
}

// expectPending checks that a pod stays Pending, and that the message has the reason.
func (o *outcome) expectPending(t *testing.T, name, why string) {
	t.Helper()
	if pod := o.pods[name]; pod.node != "" || !strings.Contains(pod.pending, why) {
		t.Errorf("pod %s: %+v, want it Pending, and %q in the message", name, pod, why)
	}
}

// expectDiskType checks the nodes of all pods that a profile bound.
func (o *outcome) expectDiskType(t *testing.T, scheduler, diskType string) {
	t.Helper()
	found := 0
	for name, pod := range o.pods {
		if pod.scheduler != scheduler {
			continue
		}
		found++
		if pod.diskType != diskType {
			t.Errorf("pod %s of %s: node %s with disktype %s, want %s", name, scheduler, pod.node, pod.diskType, diskType)
		}
	}
	if found == 0 {
		t.Errorf("%s bound no pod", scheduler)
	}
}

// expectBound checks how many pods each profile bound.
func (o *outcome) expectBound(t *testing.T, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for _, counts := range o.onNode {
		for profile, count := range counts {
			got[profile] += count
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("pods by profile: %v, want %v", got, want)
	}
}

// expectUneven checks that not all nodes, node-1 to node-N, have as many pods as the first.
func (o *outcome) expectUneven(t *testing.T, scheduler string, nodes int) {
	t.Helper()
	var counts []int
	for i := range nodes {
		counts = append(counts, o.onNode[fmt.Sprintf("node-%d", i+1)][scheduler])
	}
	if slices.Min(counts) == slices.Max(counts) {
		t.Errorf("pods of %s on the nodes: %v, which is even", scheduler, counts)
	}
}

// expectCool checks that node-1 is shown as hot and the others as cool, and that a profile bound no pod to node-1.
func (o *outcome) expectCool(t *testing.T, scheduler string) {
	t.Helper()
	for node := range o.onNode {
		want := "cpu 20%, memory 20%"
		if node == "node-1" {
			want = "cpu 90%, memory 20%"
		}
		if got := o.measured[node]; !strings.HasPrefix(got, want) {
			t.Errorf("the measured load of %s is %q, want %q", node, got, want)
		}
	}
	if n := o.onNode["node-1"][scheduler]; n != 0 {
		t.Errorf("%s bound %d pods to the hot node", scheduler, n)
	}
}
