// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=kubescheduler.config.k8s.io

// Package config holds the arguments of this project's plugins as API types. They are the same in v1beta2, in v1beta3
// and in the scheduler's internal version of kubescheduler.config.k8s.io, so each type is registered in all three, and a
// file of one version may hold arguments that name the other. Importing the package registers them.
//
// Each file holds a plugin's types with their defaults, and is named like the file of their validation. A field is a
// pointer where its zero value is not its default; and if it is a duration, which cannot be decoded from null.
package config // import "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
