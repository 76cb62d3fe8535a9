// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	// maxPrice is the largest valid price. Prices are integers in billionths per hour, so that scores are the same on
	// every machine.
	maxPrice int64 = 1000000000 * 1000000000
	// maxText is the longest text of a price.
	maxText = 32
)

// source is the source of a node's price.
type source uint8

const (
	nowhere source = iota
	annotation
	label
	table
	sources
)

// sourceNames are the values of the metrics' label "source". The records use them too.
var sourceNames = [sources]string{"none", "annotation", "label", "table"}

// prices determines the prices of nodes.
type prices struct {
	annotation, label                   string
	instanceTypes, zones, capacityTypes string
	rows                                []row
	spot                                sets.String
}

// row is a row of the table, see config.NodeCostPrice.
type row struct {
	instanceType, zone, capacityType string
	price                            int64
}

func newPrices(args *config.NodeCostArgs) *prices {
	p := &prices{
		annotation: *args.PriceAnnotation, label: args.PriceLabel,
		instanceTypes: *args.InstanceTypeLabel, zones: *args.ZoneLabel, capacityTypes: args.CapacityTypeLabel,
	}
	for i := range args.Prices {
		given := &args.Prices[i]
		p.rows = append(p.rows, row{
			instanceType: given.InstanceType, zone: given.Zone, capacityType: given.CapacityType,
			price: given.PricePerHour.ScaledValue(resource.Nano),
		})
	}
	if args.Spot != nil {
		p.spot = sets.NewString(args.Spot.CapacityTypes...)
	}
	return p
}

// of returns the price of a node and its source, and whether the node has an annotation or a label that is not a price.
func (p *prices) of(node *v1.Node) (price int64, from source, ignored bool) {
	if price, ok, given := read(node.Annotations, p.annotation); ok {
		return price, annotation, false
	} else if given {
		ignored = true
	}
	if price, ok, given := read(node.Labels, p.label); ok {
		return price, label, ignored
	} else if given {
		ignored = true
	}
	if len(p.rows) > 0 {
		instanceType, zone, capacityType := node.Labels[p.instanceTypes], node.Labels[p.zones], node.Labels[p.capacityTypes]
		for i := range p.rows {
			if row := &p.rows[i]; (row.instanceType == "" || row.instanceType == instanceType) &&
				(row.zone == "" || row.zone == zone) && (row.capacityType == "" || row.capacityType == capacityType) {
				return row.price, table, ignored
			}
		}
	}
	return 0, nowhere, ignored
}

// isSpot reports whether a node is a spot node.
func (p *prices) isSpot(node *v1.Node) bool {
	return p.spot != nil && p.spot.Has(node.Labels[p.capacityTypes])
}

// read returns the price in a label or annotation, and whether the label or annotation exists.
func read(values map[string]string, key string) (price int64, ok, given bool) {
	if key == "" {
		return 0, false, false
	}
	text, given := values[key]
	if !given {
		return 0, false, false
	}
	price, ok = parse(text)
	return price, ok, true
}

// parse parses a price: a quantity without an exponent, such as 0.096 or 96m, at least 0 and at most maxPrice. It is
// rounded up to billionths, so that only 0 is free.
//
// Exponents are refused because nodes can write the text themselves: for 1e-100000000 the parser would make a number
// with so many digits, while all pods wait.
func parse(text string) (int64, bool) {
	if len(text) > maxText || strings.ContainsAny(text, "eE") {
		return 0, false
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 || quantity.CmpInt64(maxPrice/1000000000) > 0 {
		return 0, false
	}
	return quantity.ScaledValue(resource.Nano), true
}
