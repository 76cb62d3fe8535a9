// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"strings"
	"testing"
	"time"
)

var now = time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)

const (
	waits = `{
  "leader": true, "namespace": "shop", "name": "web-0", "result": "Unschedulable",
  "summary": "None of 6 nodes fits; 5: Insufficient cpu; 1: node(s) had taint {only: \u001b[31m}, that the pod didn't tolerate.",
  "attempts": [{
    "time": "2024-01-01T11:59:30Z", "attempt": 3, "profile": "default-scheduler", "queuedSeconds": 30.5, "sinceFirstSeconds": 95,
    "wokenBy": "NodeAdd", "cycleSeconds": 0.0123, "result": "Unschedulable", "nodes": 6, "evaluated": 6, "feasible": 0,
    "rejections": [
      {"plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"], "nodes": 5, "sample": ["n1", "n2", "n3", "n4", "n5"]},
      {"reasons": ["node(s) had taint {only: \u001b[31m}, that the pod didn't tolerate"], "nodes": 1, "sample": ["cp1"]}],
    "extenders": [{"url": "http://e", "verb": "filter", "seconds": 0.5, "nodesIn": 6, "nodesOut": 5}],
    "preemption": {"candidates": 2, "sample": ["n1", "n2"], "node": "n1", "victims": ["a/b"], "victimCount": 3},
    "words": [{"plugin": "Coscheduling", "text": "Gang shop/web needs places for 3 more pods, and found 2. Pod shop/web-2 fits on no node: 6 of 6 nodes have too little CPU."}]
  }, {"time": "2024-01-01T11:58:00Z", "attempt": 2, "queuedSeconds": 0.001, "result": "Unschedulable"}]}`
	waitsText = `None of 6 nodes fits; 5: Insufficient cpu; 1: node(s) had taint {only: \u001b[31m}, that the pod didn't tolerate.

Rejected:
NODES   PLUGIN             REASONS                                                              SUCH AS
5       NodeResourcesFit   Insufficient cpu                                                     n1, n2, n3, n4, …
1       an extender        node(s) had taint {only: \u001b[31m}, that the pod didn't tolerate   cp1

Preemption:
Evictions would make room on 2 nodes, such as n1, n2. To be evicted from node n1: 3 pods, a/b.

Extenders:
URL        VERB     TOOK    NODES IN   NODES OUT   ERROR
http://e   filter   500ms   6          5           <none>

From plugins:
Coscheduling: Gang shop/web needs places for 3 more pods, and found 2. Pod shop/web-2 fits on no node: 6 of 6 nodes have too little CPU.

Attempts:
NUMBER   AGE   WAITED   WOKEN BY   RESULT
3        30s   30s      NodeAdd    Unschedulable
2        2m    1ms      <none>     Unschedulable

next: kubectl scheduling --namespace shop what-if web-0 shows what it lacks
`
	placed = `{
  "leader": true, "summary": "Node n5 is chosen, and the pod waits for Permit plugins, or is being bound.",
  "permit": [{"plugin": "Coscheduling", "since": "2024-01-01T11:59:55Z"}],
  "attempts": [{
    "time": "2024-01-01T11:59:50Z", "attempt": 1, "profile": "p", "result": "Binding", "nodes": 9, "evaluated": 7, "feasible": 6, "node": "n5", "ties": 2,
    "steps": [{"extensionPoint": "Reserve", "seconds": 0.0002, "status": "Success"}],
    "scores": [
      {"node": "n1", "total": 101, "extenders": 1, "plugins": [{"name": "A", "raw": 7, "normalized": 50, "weight": 2, "weighted": 100}]},
      {"node": "n2", "total": 100, "plugins": [{"name": "A", "raw": 7, "normalized": 50, "weight": 2, "weighted": 100}]},
      {"node": "n3", "total": 100, "plugins": [{"name": "A", "raw": 7, "normalized": 50, "weight": 2, "weighted": 100}]},
      {"node": "n4", "total": 90, "plugins": [{"name": "A", "raw": 6, "normalized": 45, "weight": 2, "weighted": 90}]},
      {"node": "n6", "total": 88, "plugins": [{"name": "A", "raw": 6, "normalized": 44, "weight": 2, "weighted": 88}]},
      {"node": "n5", "total": 80, "plugins": [{"name": "A", "raw": 5, "normalized": 40, "weight": 2, "weighted": 80}]}]}]}`
	placedText = `Node n5 is chosen, and the pod waits for Permit plugins, or is being bound.

Waits for Permit plugins:
PLUGIN         SINCE
Coscheduling   5s

Scores of 5 of 6 nodes that fit:
PLUGIN      n1    n2    n3    n4    n5 (chosen)
A           100   100   100   90    80
extenders   1     0     0     0     0
total       101   100   100   90    80
2 nodes have the highest total, and one of them is chosen at random.

Steps after a node was chosen:
STEP      TOOK    STATUS
Reserve   200µs   Success

Attempts:
NUMBER   AGE   WAITED   WOKEN BY   RESULT
1        10s   0s       <none>     Binding
`
)

// printed returns a function that decodes an answer, and prints it.
func printed[T any](print func(printer, T)) func(printer, []byte) error {
	return func(p printer, content []byte) error {
		var answer T
		err := decode(content, &answer)
		print(p, answer)
		return err
	}
}

func TestTables(t *testing.T) {
	all := func(p printer, answer queue) { p.queue(answer, "") }
	for _, tt := range []struct {
		name, content, want string
		wide                bool
		print               func(printer, []byte) error
	}{
		{"a pod that waits", waits, waitsText, false, printed(printer.pod)},
		{"a pod with a node", placed, placedText, false, printed(printer.pod)},
		{"each node", `{"summary": "It fits.", "verdicts": [{"node": "n1", "fits": true, "total": 300}, {"node": "n2", "rejections": [
			{"plugin": "A", "reasons": ["a", "b"]}, {"plugin": "B", "reasons": ["c"]}, {"reasons": ["d"]}]}]}`,
			"It fits.\n\nNODE   FITS   SCORE    REASON\nn1     yes    300      <none>\nn2     no     <none>   A: a, b; … (2 more)\n", false, printed(printer.nodes)},
		{"each node with all reasons", `{"summary": "None fits.", "verdicts": [{"node": "n2", "rejections": [
			{"plugin": "A", "reasons": ["a", "b"]}, {"plugin": "B", "reasons": ["c"]}, {"reasons": ["d"]}]}]}`,
			"None fits.\n\nNODE   FITS   SCORE    REASON\nn2     no     <none>   A: a, b; B: c; an extender: d\n", true, printed(printer.nodes)},
		{"the queue", `{"items": [{"namespace": "a", "name": "b", "where": "Backoff", "first": "2024-01-01T11:00:00Z", "attempts": 3, "waitsFor": ["A", "B"]}]}`,
			"NAMESPACE   NAME   WHERE     WAITS   ATTEMPTS   WAITS FOR\na           b      Backoff   60m     3          A, B\n", false, printed(all)},
		{"no room by evictions", `{"summary": "None fits.", "preemption": {"candidates": 0, "whyNot": "It may not evict."}}`,
			"None fits.\n\nPreemption:\nNothing is evicted: It may not evict.\n", false, printed(printer.whatIf)},
		{"a gang", `{"summary": "The gang a/b needs places for 4 pods, and found 2.", "rejections": [{"plugin": "A", "reasons": ["a"], "nodes": 3}], "evaluated": 3,
			"gang": {"domains": [{"domain": "zone=a", "found": 1}, {"domain": "zone=b", "found": 2}], "unfit": "a/b-2", "pods": [
				{"name": "b-0", "node": "n1"}, {"name": "b-1", "node": "n2"}, {"name": "b-2"}, {"name": "b-3", "node": "n1"}],
				"victims": [{"node": "n3", "pods": ["a/x", "a/y"]}]}}`,
			"The gang a/b needs places for 4 pods, and found 2.\n\nRejected:\nNODES   PLUGIN   REASONS   SUCH AS\n3       A        a         <none>\n" +
				"\nOther domains:\nDOMAIN   PLACES\nzone=a   1\nzone=b   2\n" +
				"\nPods of the gang:\nNODE     PODS   NAMES\nn1       2      b-0, b-3\nn2       1      b-1\n<none>   1      b-2\n" +
				"\nTo be evicted:\nNODE   PODS   NAMES\nn3     2      a/x, a/y\n", false, printed(printer.whatIf)},
		{"an empty queue", `{"items": []}`, "No pods are pending.\n", false, printed(all)},
		{"the queue with all", `{"items": [{"namespace": "a", "name": "b", "where": "Backoff", "profile": "p", "priority": 7,
			"first": "2024-01-01T11:00:00Z", "since": "2024-01-01T12:00:05Z", "until": "2024-01-01T12:00:04Z", "summary": "None fits."}]}`,
			"NAMESPACE   NAME   WHERE     WAITS   ATTEMPTS   WAITS FOR   PROFILE   PRIORITY   SINCE   TRIED IN   NOMINATED NODE   SUMMARY\n" +
				"a           b      Backoff   60m     0          <none>      p         7          0s      4s         <none>           None fits.\n", true, printed(all)},
	} {
		var out strings.Builder
		if err := tt.print(printer{&out, tt.wide, now}, []byte(tt.content)); err != nil || out.String() != tt.want {
			t.Errorf("%s: got (%v)\n%s\nwant\n%s", tt.name, err, out.String(), tt.want)
		}
	}
	var out strings.Builder
	if err := printed(printer.pod)(printer{&out, true, now}, []byte(placed)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"n6", "100 = 50 × 2 (raw 7)", "7 of 9", "Scores of 6 of 6 nodes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("wide: want %q in\n%s", want, out.String())
		}
	}
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"plain ‘Ünïcode’ – 世界": "plain ‘Ünïcode’ – 世界",
		"\x1b]0;title\a\r\n\t": `\u001b]0;title\u0007\u000d\u000a\u0009`,
		"\u202eback\u009b2J":   `\u202eback\u009b2J`,
		"C:\\x1b \"quoted\"":   `C:\x1b "quoted"`,
		"\U000e0041":           `\udb40\udc41`,
	} {
		if got := escape(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestArgumentsAreQuotedForAShell(t *testing.T) {
	for text, want := range map[string]string{
		"web-0": "web-0", "./pods/web.yaml": "./pods/web.yaml", "": "''", "a b": "'a b'", "$(reboot)": "'$(reboot)'", "a;rm -rf ~": "'a;rm -rf ~'",
		"it's": `'it'\''s'`, "a\u202eb\x1b": `'a\u202eb\u001b'`,
	} {
		if got := argument(text); got != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
	if got, want := new(scheduler).elsewhere(t.Context(), "shop/a;reboot", whatIfPath), "kubectl --namespace shop get pod 'a;reboot'"; got != want {
		t.Errorf("the next command is %s, want %s", got, want)
	}
}
