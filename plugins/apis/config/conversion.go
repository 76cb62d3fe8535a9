// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/conversion"
)

// Convert_Pointer_resource_Quantity_To_resource_Quantity converts an optional quantity to its internal form, which has
// no nil. The generated conversions call it, like those for numbers in the package metav1.
func Convert_Pointer_resource_Quantity_To_resource_Quantity(in **resource.Quantity, out *resource.Quantity, s conversion.Scope) error {
	if *in == nil {
		*out = resource.Quantity{}
		return nil
	}
	*out = (*in).DeepCopy()
	return nil
}

// Convert_resource_Quantity_To_Pointer_resource_Quantity converts a quantity to its optional form.
func Convert_resource_Quantity_To_Pointer_resource_Quantity(in *resource.Quantity, out **resource.Quantity, s conversion.Scope) error {
	quantity := in.DeepCopy()
	*out = &quantity
	return nil
}
