// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// profileOf decodes a profile in YAML, without the outer braces, as a scheduler does.
func profileOf(t *testing.T, version, profile string) *schedulerconfig.KubeSchedulerProfile {
	t.Helper()
	text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/%s\nkind: KubeSchedulerConfiguration\nprofiles: [{%s}]", version, profile)
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles[0]
}

func TestPoints(t *testing.T) {
	// at enables a plugin at the points, without multiPoint.
	at := func(plugin, points string) string {
		var lists []string
		for _, point := range strings.Fields(points) {
			lists = append(lists, fmt.Sprintf("%s: {enabled: [{name: %s}]}", point, plugin))
		}
		return "plugins: {" + strings.Join(lists, ", ") + "}"
	}
	// with adds arguments.
	with := func(profile, plugin, args string) string {
		return profile + fmt.Sprintf(", pluginConfig: [{name: %s, args: {%s}}]", plugin, args)
	}
	const within = "requireWithin: topology.kubernetes.io/zone"
	const rules = `rules: [{name: d, action: Deny, nodeNames: ["*"]}, {name: p, action: Prefer, nodeNames: ["*"], weight: 1}, ` +
		`{name: s, action: Share, nodeNames: ["*"], maxPercent: 5, whenUnsatisfiable: DoNotSchedule}, {name: a, action: Share, nodeNames: ["*"], minPercent: 5}]`
	required := func(point, plugin, detail string) string {
		return fmt.Sprintf("profile.plugins.%s.enabled: Required value: {name: %s}: it %s", point, plugin, detail)
	}
	for name, test := range map[string]struct {
		version, profile string
		errs, notes      []string
	}{
		"the example of scheduler-plugins": {
			version: "v1beta2", profile: at("Coscheduling", "queueSort preFilter postFilter permit reserve postBind"),
			errs: []string{required("filter", "Coscheduling", "is enabled at other points, and otherwise the later pods of a gang leave its required topology")},
		},
		"multiPoint without filter": {
			profile: "plugins: {multiPoint: {enabled: [{name: Coscheduling}]}, filter: {disabled: [{name: Coscheduling}]}}",
			errs:    []string{required("filter", "Coscheduling", "is enabled at other points")},
		},
		"DataLocality that only prefers": {profile: at("DataLocality", "preScore score")},
		"data required with only score": {
			profile: with(at("DataLocality", "preScore score"), "DataLocality", within),
			errs:    []string{required("filter", "DataLocality", "has requireWithin, and otherwise pods run outside that level")},
		},
		"rules at score alone": {
			profile: with(at("NodeFilter", "score"), "NodeFilter", rules), errs: []string{
				required("filter", "NodeFilter", "has the action Deny, and otherwise it denies nothing"),
				required("filter", "NodeFilter", "has the action Share with DoNotSchedule"),
				required("preFilter", "NodeFilter", "has the action Share, and otherwise its pods are not scheduled"),
			},
		},
		"rules without score": {
			profile: with(at("NodeFilter", "preFilter filter"), "NodeFilter", rules), notes: []string{
				"profile: NodeFilter has the action Share with ScheduleAnyway and is not enabled at score: it prefers nothing",
				"profile: NodeFilter has the action Prefer and is not enabled at score: it prefers nothing",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.version == "" {
				test.version = "v1beta3"
			}
			profile := profileOf(t, test.version, test.profile)
			errs, notes := Points(field.NewPath("profile"), profile)
			expectErrors(t, utilerrors.NewAggregate(errs), test.errs)
			if len(notes) != len(test.notes) {
				t.Fatalf("notes %q, want %q", notes, test.notes)
			}
			for i := range notes {
				if !strings.HasPrefix(notes[i], test.notes[i]) {
					t.Errorf("note %q, want %q", notes[i], test.notes[i])
				}
			}
		})
	}
}
