// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulerv1beta2 "k8s.io/kube-scheduler/config/v1beta2"
	schedulerv1beta3 "k8s.io/kube-scheduler/config/v1beta3"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// arguments are the arguments of a plugin.
type arguments interface {
	runtime.Object
	// setDefaults sets the defaults of fields that are not given.
	setDefaults()
}

// kinds returns empty arguments of each plugin.
func kinds() []arguments {
	return []arguments{
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
	}
}

// The types join the scheduler's own scheme builders, from which it builds a scheme for each version when it first
// converts arguments. Its main scheme was built from them before, so it is built once more.
func init() {
	schedulerconfig.SchemeBuilder.Register(addTo(schedulerconfig.SchemeGroupVersion))
	schedulerv1beta2.SchemeBuilder.Register(addTo(schedulerv1beta2.SchemeGroupVersion))
	schedulerv1beta3.SchemeBuilder.Register(addTo(schedulerv1beta3.SchemeGroupVersion))
	scheme.AddToScheme(scheme.Scheme)
}

// addTo returns the function that adds the types to a scheme as kinds of a version, with their defaults. A scheme
// converts between versions by a deep copy, because the type is the same, and defaults what it decodes.
func addTo(version schema.GroupVersion) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		for _, kind := range kinds() {
			scheme.AddKnownTypes(version, kind)
			scheme.AddTypeDefaultingFunc(kind, func(decoded interface{}) { decoded.(arguments).setDefaults() })
		}
		return nil
	}
}
