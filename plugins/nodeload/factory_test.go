// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// TestQueriesOfNodeMatch checks that a built-in query has the label of its own resource.
func TestQueriesOfNodeMatch(t *testing.T) {
	window := &metav1.Duration{Duration: time.Minute}
	gpu := config.NodeLoadNodeMatch{Label: "Hostname", By: config.NodeLoadMatchName}
	args := &config.NodeLoadArgs{
		NodeMatch: config.NodeLoadNodeMatch{Label: "instance", By: config.NodeLoadMatchAuto},
		Resources: []config.NodeLoadResource{{Name: "cpu", Window: window}, {Name: "gpu", Window: window, NodeMatch: &gpu}},
	}
	queries, err := queriesOf(args)
	if err != nil {
		t.Fatal(err)
	}
	for i, label := range []string{"instance", "Hostname"} {
		if query := queries[i]; !strings.Contains(query.Value, "("+label+")") || !strings.Contains(query.Timestamp, "("+label+")") {
			t.Errorf("%s is asked by %q and %q, want both by the label %s", query.Name, query.Value, query.Timestamp, label)
		}
	}
	if got := matchOf(args, &args.Resources[0]); got != args.NodeMatch {
		t.Errorf("cpu is matched by %v, want by what the args say", got)
	}
	if got := matchOf(args, &args.Resources[1]); got != gpu {
		t.Errorf("gpu is matched by %v, want by %v", got, gpu)
	}
}

// TestSpecHasUnits checks that the collector knows the value of a fully used node in each unit.
func TestSpecHasUnits(t *testing.T) {
	for _, unit := range []config.NodeLoadUnit{config.NodeLoadRatio, config.NodeLoadPercent, config.NodeLoadAbsolute} {
		pl := &NodeLoad{args: arguments(cpu(0))}
		pl.args.Resources[0].Unit = unit
		pl.resources = []resource{newResource(&pl.args.Resources[0])}
		spec, err := pl.spec()
		if err != nil {
			t.Fatal(err)
		}
		got := spec.Resources[0]
		if got.Percent != (unit == config.NodeLoadPercent) || (got.Capacity.Annotation != "") != (unit == config.NodeLoadAbsolute) {
			t.Errorf("with the unit %s, the collector has %+v", unit, got)
		}
	}
}
