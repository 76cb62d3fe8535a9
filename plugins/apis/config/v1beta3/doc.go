// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config
// +k8s:defaulter-gen=TypeMeta
// +k8s:defaulter-gen-input=k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/v1beta3
// +groupName=kubescheduler.config.k8s.io

// Package v1beta3 holds the plugins' arguments as they are written in a KubeSchedulerConfiguration of version
// kubescheduler.config.k8s.io/v1beta3.
package v1beta3 // import "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/v1beta3"
