// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	// maxPrices bounds the work for a changed node.
	maxPrices = 1000
	// maxPricePerHour fits into an int64 in billionths, the precision of a quantity.
	maxPricePerHour = 1000000000
	// maxCapacityTypes is more than any provider has.
	maxCapacityTypes = 16
)

// ValidateNodeCostArgs checks that there is a source of prices, that each row of the table has a price and can match a
// node, and that the labels for the rows and for spot are given.
func ValidateNodeCostArgs(path *field.Path, args *config.NodeCostArgs) error {
	errs := validateKey(path.Child("priceAnnotation"), *args.PriceAnnotation)
	errs = append(errs, validateKey(path.Child("priceLabel"), args.PriceLabel)...)
	if *args.PriceAnnotation == "" && args.PriceLabel == "" && len(args.Prices) == 0 {
		errs = append(errs, field.Required(path, "at least one of priceAnnotation, priceLabel and prices: without them no node has a price"))
	}
	errs = append(errs, validatePrices(path.Child("prices"), args.Prices)...)
	errs = append(errs, validateKey(path.Child("instanceTypeLabel"), *args.InstanceTypeLabel)...)
	errs = append(errs, validateKey(path.Child("zoneLabel"), *args.ZoneLabel)...)
	errs = append(errs, validateKey(path.Child("capacityTypeLabel"), args.CapacityTypeLabel)...)
	errs = append(errs, validateLabelsOfPrices(path, args)...)
	errs = append(errs, validateOneOf(path.Child("strategy"), string(args.Strategy),
		string(config.NodeCostCheapestNode), string(config.NodeCostCheapestShare))...)
	if args.Spot != nil {
		errs = append(errs, validateSpot(path.Child("spot"), args.Spot)...)
	}
	return errs.ToAggregate()
}

// validateKey checks the optional key of a label or an annotation.
func validateKey(path *field.Path, key string) field.ErrorList {
	if key == "" {
		return nil
	}
	return metav1validation.ValidateLabelName(key, path)
}

func validatePrices(path *field.Path, prices []config.NodeCostPrice) field.ErrorList {
	if len(prices) > maxPrices {
		return field.ErrorList{field.TooMany(path, len(prices), maxPrices)}
	}
	var errs field.ErrorList
	most := resource.NewQuantity(maxPricePerHour, resource.DecimalSI)
	for i := range prices {
		row, rowPath := &prices[i], path.Index(i)
		errs = append(errs, validateLabelValue(rowPath.Child("instanceType"), row.InstanceType)...)
		errs = append(errs, validateLabelValue(rowPath.Child("zone"), row.Zone)...)
		errs = append(errs, validateLabelValue(rowPath.Child("capacityType"), row.CapacityType)...)
		pricePath := rowPath.Child("pricePerHour")
		if row.PricePerHour == nil {
			errs = append(errs, field.Required(pricePath, "the price of such a node for an hour, such as 0.096; 0 is free"))
		} else if row.PricePerHour.Sign() < 0 || row.PricePerHour.Cmp(*most) > 0 {
			errs = append(errs, field.Invalid(pricePath, row.PricePerHour.String(), validation.InclusiveRangeError(0, maxPricePerHour)))
		}
		for earlier := range prices[:i] {
			if covers(&prices[earlier], row) {
				errs = append(errs, field.Forbidden(rowPath, fmt.Sprintf(
					"row %d matches every node that this row matches, so this row has no effect: "+
						"move it before that row, or remove it", earlier)))
				break
			}
		}
	}
	return errs
}

// covers reports whether a row matches every node that another one matches.
func covers(row, other *config.NodeCostPrice) bool {
	return (row.InstanceType == "" || row.InstanceType == other.InstanceType) &&
		(row.Zone == "" || row.Zone == other.Zone) &&
		(row.CapacityType == "" || row.CapacityType == other.CapacityType)
}

func validateLabelValue(path *field.Path, value string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// validateLabelsOfPrices checks that the label is given for each kind of value in the rows.
func validateLabelsOfPrices(path *field.Path, args *config.NodeCostArgs) field.ErrorList {
	var instanceType, zone, capacityType bool
	for i := range args.Prices {
		instanceType = instanceType || args.Prices[i].InstanceType != ""
		zone = zone || args.Prices[i].Zone != ""
		capacityType = capacityType || args.Prices[i].CapacityType != ""
	}
	var errs field.ErrorList
	if *args.InstanceTypeLabel == "" && instanceType {
		errs = append(errs, field.Required(path.Child("instanceTypeLabel"), "the key of the node label whose values instanceType in prices refers to"))
	}
	if *args.ZoneLabel == "" && zone {
		errs = append(errs, field.Required(path.Child("zoneLabel"), "the key of the node label whose values zone in prices refers to"))
	}
	if args.CapacityTypeLabel == "" && (capacityType || args.Spot != nil) {
		errs = append(errs, field.Required(path.Child("capacityTypeLabel"),
			"the key of the node label that marks spot nodes, such as karpenter.sh/capacity-type: prices or spot refer to its values"))
	}
	return errs
}

func validateSpot(path *field.Path, spot *config.NodeCostSpot) field.ErrorList {
	typesPath := path.Child("capacityTypes")
	errs := validateLength(typesPath, len(spot.CapacityTypes), maxCapacityTypes, "values of the label capacityTypeLabel")
	seen := sets.NewString()
	for i, value := range spot.CapacityTypes {
		if value == "" {
			errs = append(errs, field.Invalid(typesPath.Index(i), value, "must not be empty"))
		}
		errs = append(errs, validateLabelValue(typesPath.Index(i), value)...)
		errs = append(errs, validateUnique(typesPath.Index(i), value, seen)...)
	}
	if spot.TolerationKey == "" {
		return append(errs, field.Required(path.Child("tolerationKey"), "the key of the taint that pods for spot nodes tolerate"))
	}
	return append(errs, validateKey(path.Child("tolerationKey"), spot.TolerationKey)...)
}
