// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config
// +k8s:defaulter-gen=TypeMeta
// +k8s:defaulter-gen-input=k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/v1beta2
// +groupName=kubescheduler.config.k8s.io

// Package v1beta2 holds the plugins' arguments as they are written in a KubeSchedulerConfiguration of version
// kubescheduler.config.k8s.io/v1beta2.
package v1beta2 // import "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/v1beta2"
