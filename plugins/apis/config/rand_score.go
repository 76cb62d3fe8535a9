// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RandScoreArgs are the arguments of the plugin RandScore.
type RandScoreArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Seed determines the scores: with the same seed, a pod gets the same scores at the same attempt. Only attempts in
	// which nodes are scored are counted. Default: 0.
	Seed int64 `json:"seed"`
}

// setDefaults has nothing to set.
func (args *RandScoreArgs) setDefaults() {}
