// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

// TestParse has the text that takes for ever: it fails by the test's own time limit.
func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want int64
		not  bool
	}{
		{text: "0.096", want: 96000000},
		{text: "96m", want: 96000000},
		{text: "0", want: 0},
		{text: "0.0", want: 0},
		{text: "12", want: 12 * one},
		{text: "1k", want: 1000 * one},
		{text: "0.0000000001", want: 1},
		{text: "1000000000", want: maxPrice},
		{text: "1000000000.1", not: true},
		{text: "1T", not: true},
		{text: "-0.1", not: true},
		{text: "", not: true},
		{text: "free", not: true},
		{text: "$0.1", not: true},
		{text: "0,1", not: true},
		{text: " 0.1", not: true},
		{text: "NaN", not: true},
		{text: "1e3", not: true},
		{text: "1E", not: true},
		{text: "1e-1000000000", not: true},
		{text: "1e1000000000", not: true},
		{text: strings.Repeat("0", maxText-1) + "1", want: one},
		{text: strings.Repeat("0", maxText) + "1", not: true},
		{text: strings.Repeat("9", 256<<10), not: true},
	}
	for _, tt := range tests {
		if got, ok := parse(tt.text); ok == tt.not || got != tt.want {
			t.Errorf("parse(%.40q) = %d, %t, want %d, %t", tt.text, got, ok, tt.want, !tt.not)
		}
	}
}

// rowOf is a row of the table.
func rowOf(instanceType, zone, capacityType, price string) config.NodeCostPrice {
	quantity := resource.MustParse(price)
	return config.NodeCostPrice{InstanceType: instanceType, Zone: zone, CapacityType: capacityType, PricePerHour: &quantity}
}

// tableArgs are args with all three sources.
func tableArgs() *config.NodeCostArgs {
	return &config.NodeCostArgs{
		PriceAnnotation: pointer.String("price"), PriceLabel: "price-label",
		InstanceTypeLabel: pointer.String("type"), ZoneLabel: pointer.String("zone"), CapacityTypeLabel: "capacity", Strategy: config.NodeCostCheapestNode,
		Prices: []config.NodeCostPrice{
			rowOf("small", "a", "spot", "0.01"), rowOf("small", "", "spot", "0.02"), rowOf("small", "", "", "0.03"),
			rowOf("", "b", "", "0.04"), rowOf("", "", "spot", "0.05"),
		},
	}
}

func TestPricesOf(t *testing.T) {
	type labels map[string]string
	tests := []struct {
		name       string
		annotation string
		labels     labels
		change     func(*config.NodeCostArgs)
		want       string
		from       source
		ignored    bool
	}{
		{name: "the annotation counts before the label and the table", annotation: "1", labels: labels{"price-label": "2", "type": "small"}, want: "1", from: annotation},
		{name: "the label counts before the table", labels: labels{"price-label": "2m", "type": "small"}, want: "2m", from: label},
		{name: "the row of the type, zone and capacity type", labels: labels{"type": "small", "zone": "a", "capacity": "spot"}, want: "0.01", from: table},
		{name: "the row for any zone", labels: labels{"type": "small", "zone": "b", "capacity": "spot"}, want: "0.02", from: table},
		{name: "the row for any capacity type, before that of the zone", labels: labels{"type": "small", "zone": "b", "capacity": "on-demand"}, want: "0.03", from: table},
		{name: "the row of the zone", labels: labels{"type": "large", "zone": "b", "capacity": "spot"}, want: "0.04", from: table},
		{name: "a node without a type or a zone", labels: labels{"capacity": "spot"}, want: "0.05", from: table},
		{name: "no row", labels: labels{"type": "large", "zone": "a"}, from: nowhere},
		{name: "no labels", from: nowhere},
		{name: "an annotation that is no price, and a label", annotation: "cheap", labels: labels{"price-label": "2"}, want: "2", from: label, ignored: true},
		{name: "a negative price, and the table", annotation: "-1", labels: labels{"zone": "b"}, want: "0.04", from: table, ignored: true},
		{name: "a label that is no price, and nothing else", labels: labels{"price-label": "x"}, from: nowhere, ignored: true},
		{name: "a label that is no price does not matter beside an annotation", annotation: "0", labels: labels{"price-label": "x"}, want: "0", from: annotation},
		{
			name: "sources that are not named do not count", annotation: "1", labels: labels{"price-label": "2", "": "3"},
			change: func(args *config.NodeCostArgs) { args.PriceAnnotation, args.PriceLabel = pointer.String(""), "" }, from: nowhere,
		},
		{
			name: "a row for every node", change: func(args *config.NodeCostArgs) { args.Prices = []config.NodeCostPrice{rowOf("", "", "", "7")} },
			want: "7", from: table,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args, node := tableArgs(), st.MakeNode().Name("node").Obj()
			if tt.change != nil {
				tt.change(args)
			}
			if tt.annotation != "" {
				node.Annotations = map[string]string{"price": tt.annotation}
			}
			node.Labels = tt.labels
			want := int64(0)
			if tt.want != "" {
				quantity := resource.MustParse(tt.want)
				want = quantity.ScaledValue(resource.Nano)
			}
			if got, from, ignored := newPrices(args).of(node); got != want || from != tt.from || ignored != tt.ignored {
				t.Errorf("got %d from %s, ignored %t; want %d from %s, ignored %t",
					got, sourceNames[from], ignored, want, sourceNames[tt.from], tt.ignored)
			}
		})
	}
}

func TestIsSpot(t *testing.T) {
	args := tableArgs()
	without := newPrices(args)
	args.Spot = &config.NodeCostSpot{CapacityTypes: []string{"spot", "preemptible"}, TolerationKey: "spot"}
	with := newPrices(args)
	for value, want := range map[string]bool{"spot": true, "preemptible": true, "on-demand": false, "": false} {
		node := &v1.Node{}
		if value != "" {
			node.Labels = map[string]string{"capacity": value}
		}
		if without.isSpot(node) || with.isSpot(node) != want {
			t.Errorf("capacity type %q: spot is %t, want %t, and never where nothing is kept", value, with.isSpot(node), want)
		}
	}
}
