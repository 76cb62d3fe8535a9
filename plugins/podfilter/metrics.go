// SPDX-License-Identifier: Apache-2.0

package podfilter

import "k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"

var rejections = pluginmetrics.NewCounterVec("pod_filter_rejections_total",
	"Number of scheduling attempts that PodFilter rejected, by profile and by the rule that decided; 'defaultAction' if no rule matched.",
	"profile", "rule")
