// SPDX-License-Identifier: Apache-2.0

package v1beta3

import (
	"k8s.io/apimachinery/pkg/runtime"
	schedulerv1beta3 "k8s.io/kube-scheduler/config/v1beta3"
)

// localSchemeBuilder is the scheduler's own scheme builder for this version, from which each of its schemes is built;
// the generated code adds its conversions to it.
var localSchemeBuilder = &schedulerv1beta3.SchemeBuilder

func init() {
	localSchemeBuilder.Register(addKnownTypes, addDefaultingFuncs)
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(schedulerv1beta3.SchemeGroupVersion,
		&ChaosArgs{},
		&DataLocalityArgs{},
		&ExtensionPointLoggerArgs{},
		&MyScorePluginArgs{},
		&NodeCostArgs{},
		&NodeFilterArgs{},
		&NodeLoadArgs{},
		&PodFilterArgs{},
		&RandScoreArgs{},
		&RunningImageLocalityArgs{},
		&WorkloadTopologyArgs{},
	)
	return nil
}
