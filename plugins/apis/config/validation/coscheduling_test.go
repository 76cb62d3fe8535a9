// SPDX-License-Identifier: Apache-2.0

package validation

var coschedulingTests = []argsTest{
	{"all at the upper end",
		`attemptTimeout: 10s, deniedPGExpirationTimeSeconds: 0, giveUpHalfGangsAfter: 24h,
			permitWaitingTimeSeconds: 900, preferredTopologyKey: rack,
			requiredTopologyKey: topology.kubernetes.io/zone, reservation: 1h`, nil},
	{"above the upper end",
		`attemptTimeout: 10.000000001s, giveUpHalfGangsAfter: "24h0m0.000000001s", reservation: "1h0m0.000000001s"`, []string{
			`args.attemptTimeout: Invalid value: "10.000000001s": must be between 1ms and 10s, inclusive`,
			`args.reservation: Invalid value: "1h0m0.000000001s": must be between 0s and 1h0m0s, inclusive`,
			`args.giveUpHalfGangsAfter: Invalid value: "24h0m0.000000001s": must be between 0s and 24h0m0s, inclusive`,
		}},
	{"everything wrong",
		`attemptTimeout: 0s, deniedPGExpirationTimeSeconds: -1, giveUpHalfGangsAfter: "-1ns",
			permitWaitingTimeSeconds: -1, preferredTopologyKey: /c, requiredTopologyKey: "a b", reservation: "-1ns"`, []string{
			"args.permitWaitingTimeSeconds: Invalid value: -1: must be greater than or equal to 0",
			"args.deniedPGExpirationTimeSeconds: Invalid value: -1", `args.requiredTopologyKey: Invalid value: "a b"`,
			`args.preferredTopologyKey: Invalid value: "/c"`, `args.attemptTimeout: Invalid value: "0s"`,
			`args.reservation: Invalid value: "-1ns"`, `args.giveUpHalfGangsAfter: Invalid value: "-1ns"`,
		}},
	{"the shortest timeout", `attemptTimeout: 1ms`, nil},
}
