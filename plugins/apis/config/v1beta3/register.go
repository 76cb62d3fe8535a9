// SPDX-License-Identifier: Apache-2.0

package v1beta3

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulerv1beta2 "k8s.io/kube-scheduler/config/v1beta2"
	schedulerv1beta3 "k8s.io/kube-scheduler/config/v1beta3"
)

// localSchemeBuilder adds what does not depend on the version: the defaults, and the conversions, with which the
// generated code completes it.
var localSchemeBuilder = runtime.NewSchemeBuilder(RegisterDefaults)

// The types join the scheduler's own scheme builders, from which each of its schemes is built.
func init() {
	schedulerv1beta2.SchemeBuilder.Register(addKnownTypes(schedulerv1beta2.SchemeGroupVersion), localSchemeBuilder.AddToScheme)
	schedulerv1beta3.SchemeBuilder.Register(addKnownTypes(schedulerv1beta3.SchemeGroupVersion), localSchemeBuilder.AddToScheme)
}

// addKnownTypes returns the function that adds the types to a scheme as kinds of a version.
func addKnownTypes(version schema.GroupVersion) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(version,
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
}
