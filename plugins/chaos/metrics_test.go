// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"reflect"
	"sort"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
)

// TestMetricLabels checks the name and the labels under which an operator finds the counters: from the start, and no
// others.
func TestMetricLabels(t *testing.T) {
	newCounters()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, family := range families {
		if family.GetName() != "scheduler_chaos_disturbances_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := ""
			for _, label := range metric.GetLabel() {
				labels += fmt.Sprintf("%s=%s ", label.GetName(), label.GetValue())
			}
			got = append(got, labels)
		}
	}
	for _, action := range []string{"reject", "score", "redirect", "spare"} {
		want = append(want, fmt.Sprintf("action=%s ", action))
	}
	sort.Strings(got)
	sort.Strings(want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
