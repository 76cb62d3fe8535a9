// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// extend answers as an extender. Its path begins with how: picky rejects two of the four nodes, scores the last one, and
// preempts there, willing accepts each node, silent never answers, and reset breaks the connection.
func extend(w http.ResponseWriter, r *http.Request) {
	var args struct {
		extenderv1.ExtenderArgs
		NodeNameToMetaVictims map[string]*extenderv1.MetaVictims
	}
	_ = json.NewDecoder(r.Body).Decode(&args)
	var answer interface{}
	switch how, verb := path.Split(r.URL.Path); how + verb {
	case "/picky/filter":
		filtered := extenderv1.ExtenderFilterResult{NodeNames: &[]string{}, FailedNodes: map[string]string{}}
		for _, name := range *args.NodeNames {
			if filtered.FailedNodes[name] = "does not please"; name >= "node-2" {
				delete(filtered.FailedNodes, name)
				*filtered.NodeNames = append(*filtered.NodeNames, name)
			}
		}
		answer = filtered
	case "/picky/prioritize":
		answer = extenderv1.HostPriorityList{{Host: "node-3", Score: 10}}
	case "/picky/preempt":
		answer = extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{"node-3": args.NodeNameToMetaVictims["node-3"]}}
	case "/willing/filter":
		answer = extenderv1.ExtenderFilterResult{Nodes: args.Nodes}
	case "/willing/prioritize":
		answer = extenderv1.HostPriorityList{}
	case "/reset/filter":
		connection, _, _ := w.(http.Hijacker).Hijack()
		_ = connection.(*net.TCPConn).SetLinger(0)
		_ = connection.Close()
		return
	default:
		<-r.Context().Done()
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// TestExtenders compares a configuration with an extender with the default one. Times and figures like its own show that
// virtual time stands still while an extender answers.
func TestExtenders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(extend))
	defer server.Close()
	extended := func(extender, trace, arguments string) []byte {
		process := command(t, arguments+" --config extender.yaml --extender")
		for name, text := range map[string]string{
			"trace.csv":     "time,name,count,cpu,duration,priority\n" + trace,
			"extender.yaml": "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nextenders: [{" + strings.Replace(extender, "ADDRESS", server.URL, 1) + "}]\n",
			"placed.yaml":   nodes(4) + "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: default}\nspec: {nodeName: node-2, containers: [{name: c}]}\n",
		} {
			if err := os.WriteFile(filepath.Join(process.Dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out, err := process.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	}
	const all = "filterVerb: filter, prioritizeVerb: prioritize, preemptVerb: preempt, weight: 9, nodeCacheCapable: true, "
	for name, test := range map[string]struct {
		extender, trace string
		nodes           string // of all pods, evicted ones included; "same": pods and figures are those of the default configuration
		note            string
	}{
		"filters and scores":   {"urlPrefix: ADDRESS/picky, " + all, "0s,web,5,1,,\n", "node-3 node-3 node-3 node-3 node-2", ": 9 requests, and"},
		"preempts":             {"urlPrefix: ADDRESS/picky, preemptVerb: preempt, nodeCacheCapable: true, ", "0s,web,4,3,,\n1m,high,1,3,,9\n", "node-3", ": 1 requests, and"},
		"accepts, and binds":   {"urlPrefix: ADDRESS/willing, bindVerb: bind, filterVerb: filter, prioritizeVerb: prioritize, weight: 9", "0s,web,6,1,5m,\n1m,big,3,3,,\n", "same", "9 pods bound"},
		"no answer, ignorable": {"urlPrefix: ADDRESS/silent, ignorable: true, httpTimeout: 20ms, " + all, "0s,web,6,1,5m,\n1m,big,3,3,,\n", "same", "failed, first with: Post"},
		"down":                 {"urlPrefix: 'http://user:secret@127.0.0.1:1', " + all, "0s,web,1,1,,\n", "", "http://127.0.0.1:1: 4 requests, of which 4 failed"},
		"breaks connections":   {"urlPrefix: ADDRESS/reset, " + all, "0s,web,1,1,,\n", "", "4 requests, of which 4 failed"},
	} {
		const arguments = "--snapshot cluster.yaml --trace trace.csv --config stock --output json"
		out := extended(test.extender, test.trace, arguments)
		if again := extended(test.extender, test.trace, arguments); !bytes.Equal(out, again) {
			t.Errorf("%s: two runs differ: %s", name, cmp.Diff(out, again))
		}
		var report struct{ Runs []result.Run }
		if err := json.Unmarshal(out, &report); err != nil {
			t.Fatal(err)
		}
		stock, got, nodes := report.Runs[0], report.Runs[1], ""
		for _, p := range got.Pods {
			nodes += " " + p.Node
		}
		if len(got.Preemptions) > 0 {
			nodes = got.Preemptions[0].Node
		} else if cmp.Equal(stock.Pods, got.Pods) && cmp.Equal(stock.Figures, got.Figures) {
			nodes = "same"
		}
		if strings.TrimSpace(nodes) != test.nodes || !strings.Contains(got.Notes[0], test.note) || strings.Contains(string(out), "secret") {
			t.Errorf("%s: the nodes are %q, want %q; the notes are %q", name, nodes, test.nodes, got.Notes)
		}
	}
	for arguments, want := range map[string]string{
		"fit --snapshot cluster.yaml --pod pod.yaml": "2 more fit, on 2 nodes\n  the next one does not: 0/4 nodes are available: 2 Insufficient cpu, 2 does not please.",
		"check --snapshot placed.yaml":               "  1 pods, for example default/a: with the extenders' answers, another node is chosen now\n",
	} {
		if out := extended("urlPrefix: ADDRESS/picky, "+all, "", arguments); !strings.Contains(string(out), want) {
			t.Errorf("%s: got\n%s", arguments, out)
		}
	}
}
