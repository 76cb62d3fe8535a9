// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config
// +k8s:defaulter-gen=TypeMeta
// +k8s:defaulter-gen-input=k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/v1beta3
// +groupName=kubescheduler.config.k8s.io

// Package v1beta3 holds the plugins' arguments as users write them. They are the same in v1beta2 and v1beta3 of
// kubescheduler.config.k8s.io, so each type is registered in both versions, and a file of one version may hold args
// that name the other. Importing the package registers them; the scheduler's scheme package does.
package v1beta3 // import "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/v1beta3"
