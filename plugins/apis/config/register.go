// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// The types join the scheduler's own scheme builder, from which each of its schemes is built.
func init() {
	schedulerconfig.SchemeBuilder.Register(addKnownTypes)
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(schedulerconfig.SchemeGroupVersion,
		&ChaosArgs{},
		&CoschedulingArgs{},
		&DataLocalityArgs{},
		&ExtensionPointLoggerArgs{},
		&MyScorePluginArgs{},
		&NodeCostArgs{},
		&NodeFilterArgs{},
		&NodeLoadArgs{},
		&OvercommitArgs{},
		&PodFilterArgs{},
		&RandScoreArgs{},
		&RunningImageLocalityArgs{},
		&WorkloadTopologyArgs{},
	)
	return nil
}
