// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=kubescheduler.config.k8s.io

// Package config holds the arguments of this project's plugins as API types, in the version that plugins work with. The
// package v1beta3 holds the types that users write, in v1beta2 too, and describes the fields. Both have the same values.
package config // import "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
