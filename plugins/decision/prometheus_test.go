// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/decision"
)

// fiveResources has NodeLoad filter and score by all its built-in resources but the GPU, and by one more.
const fiveResources = `{prometheus: {endpoints: [%q]}, resources: [{name: cpu, threshold: 90}, {name: memory, threshold: 90}, {name: network}, {name: diskIO},
  {name: pressure, query: pressure, timestampQuery: timestamp(pressure), weight: 1}]}`

// term finds what the plugin calls the expressions that it asks for: a number and v, t or d for value, timestamp and deviation.
var term = regexp.MustCompile(`"nodeload_term", "([0-9]+[vtd])"`)

// newPrometheus serves measurements of the nodes of measured: loads between 0 and a half, taken just now.
func newPrometheus(tb testing.TB, nodes int) string {
	all := decision.MixedNodes(nodes)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := float64(time.Now().UnixNano()) / 1e9
		out := bufio.NewWriter(w)
		defer out.Flush()
		fmt.Fprint(out, `{"status":"success","data":{"resultType":"vector","result":[`)
		comma := ""
		for _, found := range term.FindAllStringSubmatch(r.FormValue("query"), -1) {
			for i, node := range all {
				value := float64(i%50) / 100
				if found[1][len(found[1])-1] == 't' {
					value = now
				}
				fmt.Fprintf(out, `%s{"metric":{"instance":%q,"nodeload_term":%q},"value":[%.3f,"%f"]}`, comma, node.Name, found[1], now, value)
				comma = ","
			}
		}
		fmt.Fprint(out, `]}}`)
	}))
	tb.Cleanup(server.Close)
	return server.URL
}

// measuredAll says whether all nodes have a measurement of all five resources.
func measuredAll(tb testing.TB, nodes int) bool {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	complete := 0
	for _, family := range families {
		if family.GetName() != "scheduler_node_load_nodes" {
			continue
		}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				if label.GetName() == "state" && label.GetValue() == "fresh" && metric.GetGauge().GetValue() == float64(nodes) {
					complete++
				}
			}
		}
	}
	return complete >= 5
}
