// SPDX-License-Identifier: Apache-2.0

// Package install makes the arguments of all plugins known to the scheduler, in every version. Importing it is all
// there is to do; the scheduler's scheme package does.
package install

import (
	// Each package registers its types, defaults and conversions when it is initialised.
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/v1beta2"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/v1beta3"
)
