// SPDX-License-Identifier: Apache-2.0

package nodefilter

import "k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"

var rejections = pluginmetrics.NewCounterVec("node_filter_rejections_total",
	"Number of nodes that NodeFilter evaluated and rejected, by profile and by the rule that decided; 'defaultAction' if no rule matched.",
	"profile", "rule")
