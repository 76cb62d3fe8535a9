// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
)

func TestValidateCoschedulingArgs(t *testing.T) {
	of := func(duration time.Duration) *metav1.Duration { return &metav1.Duration{Duration: duration} }
	for name, tt := range map[string]struct {
		args config.CoschedulingArgs
		want []string
	}{
		"all at the upper end": {args: config.CoschedulingArgs{
			PermitWaitingTimeSeconds: pointer.Int64(900), DeniedPGExpirationTimeSeconds: pointer.Int64(0), RequiredTopologyKey: "topology.kubernetes.io/zone",
			PreferredTopologyKey: "rack", AttemptTimeout: of(10 * time.Second), Reservation: of(time.Hour), GiveUpHalfGangsAfter: of(24 * time.Hour),
		}},
		"above the upper end": {
			args: config.CoschedulingArgs{AttemptTimeout: of(10*time.Second + 1), Reservation: of(time.Hour + 1), GiveUpHalfGangsAfter: of(24*time.Hour + 1)},
			want: []string{
				`args.attemptTimeout: Invalid value: "10.000000001s": must be between 1ms and 10s, inclusive`,
				`args.reservation: Invalid value: "1h0m0.000000001s": must be between 0s and 1h0m0s, inclusive`,
				`args.giveUpHalfGangsAfter: Invalid value: "24h0m0.000000001s": must be between 0s and 24h0m0s, inclusive`,
			},
		},
		"everything wrong": {
			args: config.CoschedulingArgs{
				PermitWaitingTimeSeconds: pointer.Int64(-1), DeniedPGExpirationTimeSeconds: pointer.Int64(-1), RequiredTopologyKey: "a b", PreferredTopologyKey: "/c",
				AttemptTimeout: of(0), Reservation: of(-1), GiveUpHalfGangsAfter: of(-1),
			},
			want: []string{
				"args.permitWaitingTimeSeconds: Invalid value: -1: must be greater than or equal to 0", "args.deniedPGExpirationTimeSeconds: Invalid value: -1",
				`args.requiredTopologyKey: Invalid value: "a b"`, `args.preferredTopologyKey: Invalid value: "/c"`,
				`args.attemptTimeout: Invalid value: "0s"`, `args.reservation: Invalid value: "-1ns"`, `args.giveUpHalfGangsAfter: Invalid value: "-1ns"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectErrors(t, validate(t, "Coscheduling", &tt.args), tt.want)
		})
	}
}
