// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/chaos"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/datalocality"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/extensionpointlogger"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/myscoreplugin"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodecost"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodefilter"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/overcommit"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podfilter"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/randscore"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/runningimagelocality"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/workloadtopology"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Plugins are the plugins that an extender can serve: all of this project's.
func Plugins() frameworkruntime.Registry {
	collectors := collector.New()
	return frameworkruntime.Registry{
		chaos.Name:                chaos.New,
		datalocality.Name:         datalocality.New,
		extensionpointlogger.Name: extensionpointlogger.New,
		myscoreplugin.Name:        myscoreplugin.New,
		nodecost.Name:             nodecost.New,
		nodefilter.Name:           nodefilter.New,
		nodeload.Name:             nodeload.Factory(collectors),
		overcommit.Name:           overcommit.Factory(collectors),
		podfilter.Name:            podfilter.New,
		randscore.Name:            randscore.New,
		runningimagelocality.Name: runningimagelocality.New,
		workloadtopology.Name:     workloadtopology.New,
	}
}
