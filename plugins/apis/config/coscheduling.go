// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/pointer"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CoschedulingArgs are the arguments of the plugin Coscheduling.
type CoschedulingArgs struct {
	metav1.TypeMeta `json:",inline"`

	// PermitWaitingTimeSeconds is not used, because no pod waits for its gang on a node. It is here for configurations
	// of the plugin in sigs.k8s.io/scheduler-plugins. At least 0. Default: 60.
	PermitWaitingTimeSeconds *int64 `json:"permitWaitingTimeSeconds,omitempty"`
	// DeniedPGExpirationTimeSeconds is not used either. At least 0. Default: none.
	DeniedPGExpirationTimeSeconds *int64 `json:"deniedPGExpirationTimeSeconds,omitempty"`
	// RequiredTopologyKey is the key of a node label that has the same value on all nodes of a gang. The annotation
	// coscheduling.scheduler/required-topology-key of a PodGroup overrides it. Default: none.
	RequiredTopologyKey string `json:"requiredTopologyKey,omitempty"`
	// PreferredTopologyKey is the key of a node label that has the same value on all nodes of a gang if possible. The
	// annotation coscheduling.scheduler/preferred-topology-key of a PodGroup overrides it. Default: none.
	PreferredTopologyKey string `json:"preferredTopologyKey,omitempty"`
	// AttemptTimeout limits an attempt to place a gang, in which no other pod is scheduled: 1ms to 10s. Default: 1s.
	AttemptTimeout *metav1.Duration `json:"attemptTimeout,omitempty"`
	// Reservation is for how long a failed attempt keeps the nodes that it found from other pods with the same or a
	// lower priority: 0s to 1h. 0s keeps none. Default: 0s.
	Reservation *metav1.Duration `json:"reservation,omitempty"`
	// GiveUpHalfGangsAfter is the time after which the pods of a gang are evicted if fewer than its minMember have
	// nodes, while others wait: 0s to 24h. 0s never evicts. Default: 0s.
	GiveUpHalfGangsAfter *metav1.Duration `json:"giveUpHalfGangsAfter,omitempty"`
}

// setDefaults sets the defaults: an attempt blocks other pods for at most a second.
func (args *CoschedulingArgs) setDefaults() {
	if args.PermitWaitingTimeSeconds == nil {
		args.PermitWaitingTimeSeconds = pointer.Int64(60)
	}
	defaultDuration(&args.AttemptTimeout, time.Second)
	defaultDuration(&args.Reservation, 0)
	defaultDuration(&args.GiveUpHalfGangsAfter, 0)
}
