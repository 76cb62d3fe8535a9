// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
)

// nodeCost are valid args with a table, as changed.
func nodeCost(change func(*config.NodeCostArgs)) *config.NodeCostArgs {
	args := &config.NodeCostArgs{
		InstanceTypeLabel: pointer.String("type"), ZoneLabel: pointer.String("zone"), CapacityTypeLabel: "capacity", Strategy: config.NodeCostCheapestNode,
		Prices: []config.NodeCostPrice{
			price("small", "a", "spot", "10m"), price("small", "", "spot", "0.012"), price("small", "", "", "30m"), price("", "", "", "0"),
		},
		Spot: &config.NodeCostSpot{CapacityTypes: []string{"spot", "preemptible"}, TolerationKey: "example.com/spot"},
	}
	change(args)
	return args
}

func price(instanceType, zone, capacityType, perHour string) config.NodeCostPrice {
	quantity := resource.MustParse(perHour)
	return config.NodeCostPrice{InstanceType: instanceType, Zone: zone, CapacityType: capacityType, PricePerHour: &quantity}
}

func prices(count int) []config.NodeCostPrice {
	var prices []config.NodeCostPrice
	for i := 0; i < count; i++ {
		prices = append(prices, price(fmt.Sprintf("type-%d", i), "", "", "1"))
	}
	return prices
}

func TestValidateNodeCostArgs(t *testing.T) {
	tests := []struct {
		name   string
		change func(*config.NodeCostArgs)
		// want is the beginning of each error, in order; none means that the args are valid.
		want []string
	}{
		{name: "a table", change: func(*config.NodeCostArgs) {}},
		{name: "as many rows as there may be", change: func(args *config.NodeCostArgs) { args.Prices = prices(1000) }},
		{
			name: "one row more", change: func(args *config.NodeCostArgs) { args.Prices = prices(1001) },
			want: []string{"args.prices: Too many: 1001: must have at most 1000"},
		},
		{
			name: "the largest price, and more", change: func(args *config.NodeCostArgs) {
				args.Prices = []config.NodeCostPrice{price("a", "", "", "1e9"), price("b", "", "", "1000000001"), price("c", "", "", "1E"), price("d", "", "", "-1n")}
			},
			want: []string{
				`args.prices[1].pricePerHour: Invalid value: "1000000001": must be between 0 and 1000000000, inclusive`,
				`args.prices[2].pricePerHour: Invalid value: "1E"`, `args.prices[3].pricePerHour: Invalid value: "-1n"`,
			},
		},
		{
			name: "a price that is not given is not free", change: func(args *config.NodeCostArgs) { args.Prices[0].PricePerHour = nil },
			want: []string{"args.prices[0].pricePerHour: Required value: the price of such a node for an hour"},
		},
		{
			name: "rows that an earlier one leaves nothing, among them the same again", change: func(args *config.NodeCostArgs) {
				args.Prices = []config.NodeCostPrice{
					price("a", "", "", "1"), price("b", "x", "", "1"), price("a", "x", "spot", "1"), price("b", "x", "", "2"), price("b", "", "", "1"),
				}
			},
			want: []string{
				"args.prices[2]: Forbidden: row 0 matches every node that this row matches", "args.prices[3]: Forbidden: row 1 matches every node that this row matches",
			},
		},
		{
			name: "what is no value of a label", change: func(args *config.NodeCostArgs) {
				args.Prices = []config.NodeCostPrice{price("a b", "c/d", "-", "1")}
			},
			want: []string{
				`args.prices[0].instanceType: Invalid value: "a b"`, `args.prices[0].zone: Invalid value: "c/d"`, `args.prices[0].capacityType: Invalid value: "-"`,
			},
		},
		{
			name: "values without their labels", change: func(args *config.NodeCostArgs) {
				args.InstanceTypeLabel, args.ZoneLabel, args.CapacityTypeLabel, args.Spot = pointer.String(""), pointer.String(""), "", nil
			},
			want: []string{"args.instanceTypeLabel: Required value", "args.zoneLabel: Required value", "args.capacityTypeLabel: Required value: the key of the node label"},
		},
		{
			name: "labels that no row needs", change: func(args *config.NodeCostArgs) {
				args.InstanceTypeLabel, args.ZoneLabel, args.CapacityTypeLabel, args.Spot, args.Prices = pointer.String(""), pointer.String(""), "", nil, args.Prices[3:]
			},
		},
		{
			name: "spot needs the label, too", change: func(args *config.NodeCostArgs) { args.CapacityTypeLabel, args.Prices = "", prices(1) },
			want: []string{"args.capacityTypeLabel: Required value"},
		},
		{
			name: "no prices at all, and an unknown strategy", change: func(args *config.NodeCostArgs) {
				args.PriceAnnotation, args.Prices, args.Strategy = pointer.String(""), nil, "Cheapest"
			},
			want: []string{
				"args: Required value: at least one of priceAnnotation, priceLabel and prices",
				`args.strategy: Unsupported value: "Cheapest": supported values: "CheapestNode", "CheapestShare"`,
			},
		},
		{
			name: "what is no key", change: func(args *config.NodeCostArgs) {
				args.PriceAnnotation, args.PriceLabel, args.InstanceTypeLabel, args.ZoneLabel, args.CapacityTypeLabel = pointer.String("a b"), "c d", pointer.String("e f"), pointer.String("g h"), "i j"
				args.Spot.TolerationKey = "k l"
			},
			want: []string{
				`args.priceAnnotation: Invalid value: "a b"`, `args.priceLabel: Invalid value: "c d"`, `args.instanceTypeLabel: Invalid value: "e f"`,
				`args.zoneLabel: Invalid value: "g h"`, `args.capacityTypeLabel: Invalid value: "i j"`, `args.spot.tolerationKey: Invalid value: "k l"`,
			},
		},
		{
			name: "spot that says nothing", change: func(args *config.NodeCostArgs) { args.Spot = &config.NodeCostSpot{} },
			want: []string{"args.spot.capacityTypes: Required value: 1 to 16", "args.spot.tolerationKey: Required value"},
		},
		{
			name: "spot that says it twice, or nothing, or what no label has", change: func(args *config.NodeCostArgs) {
				args.Spot.CapacityTypes = []string{"spot", "", "spot", "a b"}
			},
			want: []string{
				`args.spot.capacityTypes[1]: Invalid value: "": must not be empty`, `args.spot.capacityTypes[2]: Duplicate value: "spot"`,
				`args.spot.capacityTypes[3]: Invalid value: "a b"`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expectErrors(t, validate(t, "NodeCost", nodeCost(tt.change)), tt.want)
		})
	}
}
