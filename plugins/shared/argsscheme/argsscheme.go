// SPDX-License-Identifier: Apache-2.0

// Package argsscheme adds the plugins' args, in every version, to the scheduler's scheme. Import it for this effect.
//
// Outside the patched tree, nothing makes Go initialize the args before upstream's scheme, which is then built without
// them.
package argsscheme

import (
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/v1beta3" // adds them to the scheme's builders
)

func init() { scheme.AddToScheme(scheme.Scheme) }
