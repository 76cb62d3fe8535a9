// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	// maxDataServers bounds the work for each pod that is added or changed.
	maxDataServers = 16
	// maxDataLevels bounds the work per node. Clouds and data centres have up to five: node, rack, row, zone, region.
	maxDataLevels = 8
)

// ValidateDataLocalityArgs checks that nodes or pods can name the datasets that they hold, that the percentages of the
// levels decrease, and that the filter's level is one of them.
func ValidateDataLocalityArgs(path *field.Path, args *config.DataLocalityArgs) error {
	errs := validateDataKey(path.Child("datasetsAnnotation"), *args.DatasetsAnnotation, "an annotation")
	errs = append(errs, validateKey(path.Child("nodeAnnotation"), *args.NodeAnnotation)...)
	if args.NodeLabelPrefix != "" {
		// A prefix such as "data.example.com/" is not a key itself, but must be one with the shortest name appended.
		if invalid := metav1validation.ValidateLabelName(args.NodeLabelPrefix+"x", path.Child("nodeLabelPrefix")); len(invalid) > 0 {
			errs = append(errs, field.Invalid(path.Child("nodeLabelPrefix"), args.NodeLabelPrefix,
				"must be the prefix of a label's key, such as 'data.example.com/' or 'dataset-', which the name of a dataset follows"))
		}
	}
	if *args.NodeAnnotation == "" && args.NodeLabelPrefix == "" && len(args.Servers) == 0 {
		errs = append(errs, field.Required(path, "at least one of nodeAnnotation, nodeLabelPrefix and servers, which locate the data"))
	}
	errs = append(errs, validateDataServers(path.Child("servers"), args.Servers)...)
	errs = append(errs, validateDataLevels(path, args)...)
	return errs.ToAggregate()
}

func validateDataServers(path *field.Path, servers []config.DataLocalityServer) field.ErrorList {
	var errs field.ErrorList
	if len(servers) > maxDataServers {
		errs = append(errs, field.TooMany(path, len(servers), maxDataServers))
	}
	for i := range servers {
		serverPath := path.Index(i)
		errs = append(errs, validateNamespaces(serverPath.Child("namespaces"), servers[i].Namespaces)...)
		errs = append(errs, validateSelector(servers[i].Selector, serverPath.Child("selector"))...)
		errs = append(errs, validateDataKey(serverPath.Child("datasetLabel"), servers[i].DatasetLabel, "a label")...)
	}
	return errs
}

func validateDataLevels(path *field.Path, args *config.DataLocalityArgs) field.ErrorList {
	levelsPath := path.Child("levels")
	errs := validateLength(levelsPath, len(args.Levels), maxDataLevels, "levels, the nearest first")
	keys := sets.NewString()
	for i := range args.Levels {
		level, levelPath := &args.Levels[i], levelsPath.Index(i)
		errs = append(errs, validateDataKey(levelPath.Child("topologyKey"), level.TopologyKey, "a label")...)
		errs = append(errs, validateUnique(levelPath.Child("topologyKey"), level.TopologyKey, keys)...)
		errs = append(errs, validateRange(levelPath.Child("percent"), level.Percent, 0, 100)...)
		if i > 0 && level.Percent >= args.Levels[i-1].Percent {
			errs = append(errs, field.Invalid(levelPath.Child("percent"), level.Percent,
				fmt.Sprintf("must be less than %d, the percent of the nearer level before it", args.Levels[i-1].Percent)))
		}
	}
	if args.RequireWithin != "" && !keys.Has(args.RequireWithin) {
		errs = append(errs, field.NotSupported(path.Child("requireWithin"), args.RequireWithin, keys.List()))
	}
	return errs
}

// validateDataKey checks the key of a label or of an annotation, which have the same rules.
func validateDataKey(path *field.Path, key, of string) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(path, "the key of "+of)}
	}
	return metav1validation.ValidateLabelName(key, path)
}
