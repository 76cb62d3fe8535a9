// Package validation checks the plugins' arguments when the scheduler starts. Each function returns every error it
// finds, with the path of the field, so that a file is mended in one go.
package validation

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// maxPreferredValues is the range of a score: with more values two of them would score the same.
const maxPreferredValues = 100

// ValidateMyScorePluginArgs checks that the label is a label's key and that 1 to 100 different label values are given.
func ValidateMyScorePluginArgs(path *field.Path, args *config.MyScorePluginArgs) error {
	errs := metav1validation.ValidateLabelName(args.NodeLabel, path.Child("nodeLabel"))
	valuesPath := path.Child("preferredValues")
	if len(args.PreferredValues) == 0 {
		errs = append(errs, field.Required(valuesPath, "1 to 100 label values"))
	}
	if len(args.PreferredValues) > maxPreferredValues {
		errs = append(errs, field.TooMany(valuesPath, len(args.PreferredValues), maxPreferredValues))
	}
	seen := sets.NewString()
	for i, value := range args.PreferredValues {
		for _, message := range validation.IsValidLabelValue(value) {
			errs = append(errs, field.Invalid(valuesPath.Index(i), value, message))
		}
		if seen.Has(value) {
			errs = append(errs, field.Duplicate(valuesPath.Index(i), value))
		}
		seen.Insert(value)
	}
	return errs.ToAggregate()
}
