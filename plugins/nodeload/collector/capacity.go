// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

// Capacity describes where a node's capacity for a resource is found.
type Capacity struct {
	// Annotation is the key of the node's annotation, which takes precedence.
	Annotation string
	// Default is the capacity of nodes without the annotation; 0 for the one in the node's status.
	Default float64
	// Status is the resource in the node's status; may be empty.
	Status v1.ResourceName
}

// Of returns the capacity of a node; false if it is unknown or not above zero.
func (c *Capacity) Of(node *v1.Node) (float64, bool) {
	if text, found := node.Annotations[c.Annotation]; found {
		if capacity, ok := ParseQuantity(text); ok && capacity > 0 {
			return capacity, true
		}
	}
	if c.Default > 0 {
		return c.Default, true
	}
	if c.Status == "" {
		return 0, false
	}
	quantity, found := node.Status.Capacity[c.Status]
	if !found || quantity.Sign() <= 0 {
		return 0, false
	}
	return quantity.AsApproximateFloat64(), true
}

const (
	longestQuantity = 24
	// longestExponent is in digits.
	longestExponent = 2
)

// ParseQuantity returns the quantity in an annotation; false if it is invalid, negative, or longer than necessary. A
// pod's annotation must not block the scheduler: a quantity with an exponent of millions takes minutes to parse.
func ParseQuantity(text string) (float64, bool) {
	if len(text) > longestQuantity {
		return 0, false
	}
	if e := strings.IndexAny(text, "eE"); e >= 0 && len(strings.TrimLeft(text[e+1:], "+-")) > longestExponent {
		return 0, false
	}
	quantity, err := apiresource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return 0, false
	}
	return quantity.AsApproximateFloat64(), true
}
