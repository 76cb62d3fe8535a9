// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=kubescheduler.config.k8s.io

// Package config holds the arguments of this project's plugins as API types, in the version that plugins work with.
// The versions that users write stand in the folders v1beta2 and v1beta3.
package config // import "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
