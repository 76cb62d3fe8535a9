// SPDX-License-Identifier: Apache-2.0

package validation

var workloadTopologyTests = []argsTest{
	{"nothing", `podSelector: {matchLabels: null}, groupBy: null, levels: []`,
		[]string{"args.groupBy: Required value: 1 to 8 keys of labels", "args.levels: Required value: 1 to 8 levels"}},
	{"valid", ``, nil},
	{"no edges, for spread alone", `edges: []`, nil},
	{"all that may be",
		`avoidAbove: 100, edges: [{}, {from: {matchLabels: {app: job}}, scope: Group,
			to: {matchLabels: {app: job}}, weight: 100}, {}, {}], maxPerNode: 1000, namespaces: [streaming-*],
			podSelector: null, spreadWeight: 100`, nil},
	{"keys that are none, twice, or too many", `groupBy: ["a b", app, app, d, e, f, g, h, i]`,
		[]string{"args.groupBy: Too many", "args.groupBy[0]: Invalid value", "args.groupBy[2]: Duplicate value"}},
	{"only pods with the annotation", `groupBy: null, podSelector: null`, nil},
	{"all pods with the labels", `podSelector: {matchLabels: null}`, nil},
	{"groups of all pods, as in earlier versions", `podSelector: null`, []string{
		"args.podSelector: Required value: this or namespaces, because groupBy no longer concerns all pods; select the pods of jobs, or write podSelector: {} for all pods with the labels of groupBy",
	}},
	{"pods without groups", `groupBy: null`, []string{"args.groupBy: Required value"}},
	{"selectors that select nothing", `namespaces: ["["], podSelector: {matchLabels: {"a b": "", app: null}}`,
		[]string{"args.namespaces[0]: Invalid value", "args.podSelector.matchLabels: Invalid value"}},
	{"what was removed", `edges: [{scope: Namespace, within: zone}], peersAnnotation: example.com/peers, roleLabel: component`, []string{
		"args.edges[0].scope: Forbidden: was removed; edges connect pods of a group; for pods of other groups, write podAffinity",
		"args.edges[0].within: Forbidden: was removed; write podAffinity with this topologyKey",
		"args.peersAnnotation: Forbidden: was removed; write edges",
		"args.roleLabel: Forbidden: was removed; write the label into",
	}},
	{"costs that do not grow, or reach that of a peer far away",
		`levels: [{topologyKey: host, cost: -1}, {topologyKey: rack, cost: 5}, {topologyKey: zone, cost: 5},
			{topologyKey: rack, cost: 100}]`, []string{
			"args.levels[0].cost: Invalid value: -1: must be between 0 and 99",
			"args.levels[2].cost: Invalid value: 5: must be between 6 and 99", "args.levels[3].topologyKey: Duplicate value",
			"args.levels[3].cost: Invalid value: 100: must be between 6 and 99",
		}},
	{"edges", `edges: [{weight: 101}, {weight: 0}, {from: {matchLabels: {"a b": ""}}}]`, []string{
		"args.edges[0].weight: Invalid value: 101", "args.edges[1].weight: Invalid value: 0",
		"args.edges[2].from.matchLabels: Invalid value",
	}},
	{"too many edges", `edges: [{}, {}, {}, {}, {}]`, []string{
		"args.edges: Invalid value: 5: must have at most 4 edges; select several roles in one edge, by matchExpressions with the operator In",
	}},
	{"numbers", `avoidAbove: 0, maxPerNode: 0, spreadWeight: 101`, []string{
		"args.maxPerNode: Invalid value: 0", "args.spreadWeight: Invalid value: 101", "args.avoidAbove: Invalid value: 0",
	}},
}
