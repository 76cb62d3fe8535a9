// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
)

func TestGangOfManifest(t *testing.T) {
	w := newWorld(t, nil)
	w.group("g", 3, 0, requiredAnnotation, "zone")
	w.set(podOf("waits", "g"), podOf("runs", "g").Node("n"))
	drafts := func(group string) []*v1.Pod { return []*v1.Pod{podOf("draft", group).Obj()} }
	for name, test := range map[string]struct {
		object                   *unstructured.Unstructured
		group, reason, key, runs string
		minMember                int
	}{
		"a PodGroup of the cluster":      {group: "g", key: "zone", minMember: 3, runs: "runs"},
		"another one in the manifest":    {group: "g", object: podGroupOf("g", 5, 0, requiredAnnotation, "rack"), key: "rack", minMember: 5, runs: "runs"},
		"a new one":                      {group: "new", object: podGroupOf("new", 2, 0), minMember: 2},
		"none":                           {group: "new", reason: noPodGroup},
		"an invalid one in the manifest": {group: "g", object: podGroupOf("g", -1, 0), reason: badMinMember},
		"nothing in the manifest":        {group: "g", object: &unstructured.Unstructured{Object: map[string]interface{}{"spec": "x"}}, reason: badMinMember},
	} {
		gang, reason := w.GangOfManifest(test.object, drafts(test.group))
		if reason != test.reason || (gang == nil) != (reason != "") {
			t.Errorf("%s: %q, %+v", name, reason, gang)
		} else if gang != nil && (gang.Name != "ns/"+test.group || gang.MinMember != test.minMember || gang.Required != test.key ||
			names(gang.Waiting) != "draft" || names(gang.Placed) != test.runs) {
			t.Errorf("%s: %+v", name, gang)
		}
	}
	if gang, reason := w.GangOf(podOf("waits", "g").Obj()); gang != nil || reason != "PodGroup ns/g"+gangs.TooFew {
		t.Errorf("the gang of the cluster is %+v, %q", gang, reason)
	}
}
