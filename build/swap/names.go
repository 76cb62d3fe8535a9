// SPDX-License-Identifier: Apache-2.0

package swap

import "kube-scheduler-fork/build/swap/manifest"

// The names of package manifest that users of the commands need, too.
const (
	ConfigFileName        = manifest.ConfigFileName
	ContainerConfigFolder = manifest.ContainerConfigFolder
	ContainerConfigPath   = manifest.ContainerConfigPath
	RestartedAtAnnotation = manifest.RestartedAtAnnotation
	NonRootUser           = manifest.NonRootUser
)

// Functions of package manifest.
var (
	Describe = manifest.Describe
	Restart  = manifest.Restart
	Diff     = manifest.Diff
)
