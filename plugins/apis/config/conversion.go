// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/conversion"
)

// Convert_Pointer_resource_Quantity_To_resource_Quantity is for a quantity whose zero is told from none in the versions
// only. The generated conversions of all versions call it, as they call those for numbers in the package metav1.
func Convert_Pointer_resource_Quantity_To_resource_Quantity(in **resource.Quantity, out *resource.Quantity, s conversion.Scope) error {
	if *in == nil {
		*out = resource.Quantity{}
		return nil
	}
	*out = (*in).DeepCopy()
	return nil
}

// Convert_resource_Quantity_To_Pointer_resource_Quantity is the way back.
func Convert_resource_Quantity_To_Pointer_resource_Quantity(in *resource.Quantity, out **resource.Quantity, s conversion.Scope) error {
	quantity := in.DeepCopy()
	*out = &quantity
	return nil
}
