// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RunningImageCount selects what RunningImageLocality counts.
type RunningImageCount string

const (
	// CountImages counts each image of the incoming pod that runs on the node once, for any number of containers.
	CountImages RunningImageCount = "Images"
	// CountContainers counts every running container that uses an image of the incoming pod.
	CountContainers RunningImageCount = "Containers"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RunningImageLocalityArgs are the arguments of the plugin RunningImageLocality.
type RunningImageLocalityArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Count selects what is counted for a node's score. Default: Images.
	Count RunningImageCount `json:"count,omitempty"`
	// SizeWeight is the percentage of a match's value that depends on the image's size, 0 to 100. Default: 0.
	SizeWeight int32 `json:"sizeWeight"`
	// SpreadWeight is the percentage of a match's value that depends on the share of nodes that run the image, 0 to
	// 100. The value is lower if fewer nodes run the image, so that these do not attract all pods. Default: 100.
	SpreadWeight *int32 `json:"spreadWeight,omitempty"`
}

// setDefaults sets the defaults: each image counts once, independent of its size, and less if
// few nodes run it, as in ImageLocality.
func (args *RunningImageLocalityArgs) setDefaults() {
	if args.Count == "" {
		args.Count = CountImages
	}
	defaultInt32(&args.SpreadWeight, 100)
}
