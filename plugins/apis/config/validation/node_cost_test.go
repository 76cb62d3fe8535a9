// SPDX-License-Identifier: Apache-2.0

package validation

var nodeCostTests = []argsTest{
	{"a table", ``, nil},
	{"as many rows as there may be", `prices: ` + many(1000, `{instanceType: type-#, pricePerHour: "1"}`), nil},
	{"one row more", `prices: ` + many(1001, `{instanceType: type-#, pricePerHour: "1"}`),
		[]string{"args.prices: Too many: 1001: must have at most 1000"}},
	{"the largest price, and more",
		`prices: [{instanceType: a, pricePerHour: "1e9"}, {instanceType: b, pricePerHour: "1000000001"},
			{instanceType: c, pricePerHour: "1E"}, {instanceType: d, pricePerHour: "-1n"}]`, []string{
			`args.prices[1].pricePerHour: Invalid value: "1000000001": must be between 0 and 1000000000, inclusive`,
			`args.prices[2].pricePerHour: Invalid value: "1E"`, `args.prices[3].pricePerHour: Invalid value: "-1n"`,
		}},
	{"a price that is not given is not free",
		`prices: [{instanceType: small, capacityType: spot, zone: a}, {instanceType: small, capacityType: spot,
			pricePerHour: 12m}, {instanceType: small, pricePerHour: 30m}, {pricePerHour: "0"}]`,
		[]string{"args.prices[0].pricePerHour: Required value: the price of such a node for an hour"}},
	{"rows that an earlier one leaves nothing, among them the same again",
		`prices: [{instanceType: a, pricePerHour: "1"}, {instanceType: b, pricePerHour: "1", zone: x},
			{instanceType: a, capacityType: spot, pricePerHour: "1", zone: x}, {instanceType: b, pricePerHour: "2",
			zone: x}, {instanceType: b, pricePerHour: "1"}]`, []string{
			"args.prices[2]: Forbidden: row 0 matches every node that this row matches",
			"args.prices[3]: Forbidden: row 1 matches every node that this row matches",
		}},
	{"what is no value of a label", `prices: [{instanceType: "a b", capacityType: "-", pricePerHour: "1", zone: c/d}]`, []string{
		`args.prices[0].instanceType: Invalid value: "a b"`, `args.prices[0].zone: Invalid value: "c/d"`,
		`args.prices[0].capacityType: Invalid value: "-"`,
	}},
	{"values without their labels", `capacityTypeLabel: null, instanceTypeLabel: "", spot: null, zoneLabel: ""`, []string{
		"args.instanceTypeLabel: Required value", "args.zoneLabel: Required value",
		"args.capacityTypeLabel: Required value: the key of the node label",
	}},
	{"labels that no row needs",
		`capacityTypeLabel: null, instanceTypeLabel: "", prices: [{pricePerHour: "0"}], spot: null, zoneLabel: ""`, nil},
	{"spot needs the label, too", `capacityTypeLabel: null, prices: [{instanceType: type-0, pricePerHour: "1"}]`,
		[]string{"args.capacityTypeLabel: Required value"}},
	{"no prices at all, and an unknown strategy", `priceAnnotation: "", prices: null, strategy: Cheapest`, []string{
		"args: Required value: at least one of priceAnnotation, priceLabel and prices",
		`args.strategy: Unsupported value: "Cheapest": supported values: "CheapestNode", "CheapestShare"`,
	}},
	{"what is no key",
		`capacityTypeLabel: "i j", instanceTypeLabel: "e f", priceAnnotation: "a b", priceLabel: "c d",
			spot: {tolerationKey: "k l"}, zoneLabel: "g h"`, []string{
			`args.priceAnnotation: Invalid value: "a b"`, `args.priceLabel: Invalid value: "c d"`,
			`args.instanceTypeLabel: Invalid value: "e f"`, `args.zoneLabel: Invalid value: "g h"`,
			`args.capacityTypeLabel: Invalid value: "i j"`, `args.spot.tolerationKey: Invalid value: "k l"`,
		}},
	{"spot that says nothing", `spot: {capacityTypes: null, tolerationKey: null}`,
		[]string{"args.spot.capacityTypes: Required value: 1 to 16", "args.spot.tolerationKey: Required value"}},
	{"spot that says it twice, or nothing, or what no label has", `spot: {capacityTypes: [spot, "", spot, "a b"]}`, []string{
		`args.spot.capacityTypes[1]: Invalid value: "": must not be empty`,
		`args.spot.capacityTypes[2]: Duplicate value: "spot"`, `args.spot.capacityTypes[3]: Invalid value: "a b"`,
	}},
	{"the label alone", `priceLabel: price, prices: null`, nil},
}
