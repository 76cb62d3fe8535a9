// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"kube-scheduler-fork/test/inprocess/decision"
)

// The weights are those of the framework, not of the configuration: with multiPoint, a plugin without a weight has 1.
func TestPageHasTheWeightsOfTheDefaultPlugins(t *testing.T) {
	var sums, points [2]int32
	for i, version := range []string{"v1beta3", "v1beta2"} {
		s := decision.New(t, decision.Options{Config: "apiVersion: kubescheduler.config.k8s.io/" + version + "\nkind: KubeSchedulerConfiguration\n"})
		for _, plugin := range s.Profiles["default-scheduler"].ListPlugins().Score.Enabled {
			sums[i] += plugin.Weight
			// It scores 0 without its feature gate.
			if plugin.Name != names.VolumeBinding {
				points[i] += 100 * plugin.Weight
			}
		}
	}
	page, err := os.ReadFile("../../../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(strings.Join(strings.Fields(string(page)), " "), ",", "")
	sum := fmt.Sprintf("%d in `v1beta3` and %d in `v1beta2`", sums[0], sums[1])
	want := []string{sum, fmt.Sprintf("%d points in `v1beta3` and %d in `v1beta2`", points[0], points[1]), sum}
	if got := regexp.MustCompile("\\d+ (?:points )?in `v1beta3` and \\d+ in `v1beta2`").FindAllString(text, -1); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("docs/plugins.md says %q, and the framework has %q", got, want)
	}
}
