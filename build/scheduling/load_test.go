// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestLoads(t *testing.T) {
	var answer loads
	if err := json.Unmarshal([]byte(`{"profiles":[{"profile":"default-scheduler",
		"source":{"source":"0","state":"Degraded","since":"2024-05-06T07:00:00Z","problem":"only 1 of 2 nodes","endpoint":"http://p:9090",
			"lastError":"timeout","lastErrorTime":"2024-05-06T07:04:00Z","durationSeconds":0.012,"intervalSeconds":30,"warnings":["a store is down"]},
		"snapshot":12,"taken":"2024-05-06T07:04:50Z","unmatchedSeries":2,"unmatchedExample":"10.0.9.9:9100",
		"resources":[{"resource":"cpu","fresh":1,"nodes":2,"fallback":false,"thresholdPercent":80},{"resource":"memory","fresh":0,"nodes":2,"fallback":true}],
		"nodes":[{"node":"a","resources":[{"resource":"cpu","measuredPercent":50,"inFlightPercent":20.25,"predictedPercent":70.25,"ageSeconds":12,"capacity":10,"deviationPercent":5}]},
			{"node":"b","resources":[{"resource":"cpu","missing":"no_series"}]}]}]}`), &answer); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printer{&out, true, time.Date(2024, 5, 6, 7, 5, 0, 0, time.UTC)}.loads(answer)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"Profile default-scheduler, source 0: Degraded for 5m", "Problem: only 1 of 2 nodes", "Endpoint http://p:9090, refreshed every 30s",
		"Snapshot 12, taken 10s ago, the request took 12ms", "Last error, 60s ago: timeout", "Warning: a store is down",
		"2 series match no node, for example 10.0.9.9:9100", "cpu 1 2 80% yes", "memory 0 2 <none> no: too few are fresh",
		"a cpu 50.0% 20.2% 70.2% 12s <none> 5.0% 10", "b cpu <none> <none> <none> <none> no_series",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	printer{&out, false, time.Now()}.loads(loads{})
	if got := out.String(); got != "No profile enables NodeLoad.\n" {
		t.Errorf("without profiles: %s", got)
	}
}
