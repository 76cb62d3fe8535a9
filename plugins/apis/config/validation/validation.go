// SPDX-License-Identifier: Apache-2.0

// Package validation checks the plugins' arguments when the scheduler starts. Each function returns all errors, with
// the path and the valid values of the field.
package validation

import (
	"fmt"
	pathpkg "path"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	// maxPreferredValues is the range of a score: with more values, two of them would have the same score.
	maxPreferredValues = 100
	// maxRules bounds the work per node, and the values of the metrics' label "rule".
	maxRules = 100
	// systemNamespace is the namespace of pods that a cluster needs.
	systemNamespace = metav1.NamespaceSystem
)

// Functions returns the validators by the name of the plugin. Each is a func(*field.Path, *config.<Name>Args) error, as
// in the table of the scheduler's own validation, which calls them by reflection.
func Functions() map[string]interface{} {
	return map[string]interface{}{
		"Chaos":                ValidateChaosArgs,
		"Coscheduling":         ValidateCoschedulingArgs,
		"DataLocality":         ValidateDataLocalityArgs,
		"ExtensionPointLogger": ValidateExtensionPointLoggerArgs,
		"MyScorePlugin":        ValidateMyScorePluginArgs,
		"NodeCost":             ValidateNodeCostArgs,
		"NodeFilter":           ValidateNodeFilterArgs,
		"NodeLoad":             ValidateNodeLoadArgs,
		"Overcommit":           ValidateOvercommitArgs,
		"PodFilter":            ValidatePodFilterArgs,
		"RandScore":            ValidateRandScoreArgs,
		"RunningImageLocality": ValidateRunningImageLocalityArgs,
		"WorkloadTopology":     ValidateWorkloadTopologyArgs,
	}
}

// ArgsPath returns the path of a plugin's arguments for errors of the plugin itself, which does not know the index of
// its profile.
func ArgsPath(plugin string) *field.Path {
	return field.NewPath("pluginConfig").Key(plugin).Child("args")
}

// ValidateMyScorePluginArgs checks that nodeLabel is a label key and that there are 1 to 100 different label values.
func ValidateMyScorePluginArgs(path *field.Path, args *config.MyScorePluginArgs) error {
	errs := metav1validation.ValidateLabelName(*args.NodeLabel, path.Child("nodeLabel"))
	valuesPath := path.Child("preferredValues")
	errs = append(errs, validateLength(valuesPath, len(args.PreferredValues), maxPreferredValues, "label values")...)
	seen := sets.NewString()
	for i, value := range args.PreferredValues {
		errs = append(errs, validateLabelValue(valuesPath.Index(i), value)...)
		errs = append(errs, validateUnique(valuesPath.Index(i), value, seen)...)
	}
	return errs.ToAggregate()
}

// ValidateExtensionPointLoggerArgs checks the sample rate and the names of the namespaces.
func ValidateExtensionPointLoggerArgs(path *field.Path, args *config.ExtensionPointLoggerArgs) error {
	var errs field.ErrorList
	// The negated condition refuses NaN too.
	if rate := *args.SampleRate; !(rate > 0 && rate <= 1) {
		errs = append(errs, field.Invalid(path.Child("sampleRate"), rate, "must be more than 0 and at most 1"))
	}
	errs = append(errs, validateNamespaces(path.Child("namespaces"), args.Namespaces)...)
	return errs.ToAggregate()
}

// ValidateRandScoreArgs accepts all arguments: every number is a seed.
func ValidateRandScoreArgs(path *field.Path, args *config.RandScoreArgs) error {
	return nil
}

// ValidatePodFilterArgs checks that there are 1 to 100 rules, each with a unique name and at least one condition.
func ValidatePodFilterArgs(path *field.Path, args *config.PodFilterArgs) error {
	rulesPath := path.Child("rules")
	errs := validateLength(rulesPath, len(args.Rules), maxRules, "rules")
	seen := sets.NewString()
	for i := range args.Rules {
		rule, rulePath := &args.Rules[i], rulesPath.Index(i)
		errs = append(errs, validateRule(rulePath, rule.Name, rule.Action, seen)...)
		errs = append(errs, validatePatterns(rulePath.Child("podNames"), rule.PodNames)...)
		errs = append(errs, validatePatterns(rulePath.Child("namespaces"), rule.Namespaces)...)
		errs = append(errs, validateSelector(rule.PodSelector, rulePath.Child("podSelector"))...)
		if len(rule.PodNames) == 0 && len(rule.Namespaces) == 0 && rule.PodSelector == nil {
			errs = append(errs, field.Required(rulePath, "at least one of podNames, namespaces and podSelector; for all pods, use defaultAction"))
		}
	}
	errs = append(errs, validateAction(path.Child("defaultAction"), args.DefaultAction)...)
	return errs.ToAggregate()
}

// ValidateRunningImageLocalityArgs checks that count is supported and that both weights are percentages.
func ValidateRunningImageLocalityArgs(path *field.Path, args *config.RunningImageLocalityArgs) error {
	errs := validateOneOf(path.Child("count"), string(args.Count), string(config.CountImages), string(config.CountContainers))
	errs = append(errs, validateRange(path.Child("sizeWeight"), args.SizeWeight, 0, 100)...)
	errs = append(errs, validateRange(path.Child("spreadWeight"), *args.SpreadWeight, 0, 100)...)
	return errs.ToAggregate()
}

// ValidateChaosArgs checks that there are namespaces, without kube-system, and the ranges of the other fields.
func ValidateChaosArgs(path *field.Path, args *config.ChaosArgs) error {
	namespacesPath := path.Child("namespaces")
	errs := validateNamespaces(namespacesPath, args.Namespaces)
	if len(args.Namespaces) == 0 {
		errs = append(errs, field.Required(namespacesPath, "the names of the namespaces whose pods are to be disturbed"))
	}
	for i, namespace := range args.Namespaces {
		if namespace == systemNamespace {
			errs = append(errs, field.Forbidden(namespacesPath.Index(i), "the pods of "+systemNamespace+" are never disturbed"))
		}
	}
	errs = append(errs, validateRange(path.Child("rejectPercent"), args.RejectPercent, 0, 100)...)
	errs = append(errs, validateRange(path.Child("maxConsecutiveRejections"), *args.MaxConsecutiveRejections, 1, 100)...)
	errs = append(errs, validateRange(path.Child("randomBindPercent"), args.RandomBindPercent, 0, 100)...)
	return errs.ToAggregate()
}

func validateRange(path *field.Path, value, min, max int32) field.ErrorList {
	if value < min || value > max {
		return field.ErrorList{field.Invalid(path, value, validation.InclusiveRangeError(int(min), int(max)))}
	}
	return nil
}

func validateDuration(path *field.Path, value *metav1.Duration, min, max time.Duration) field.ErrorList {
	if value.Duration < min || value.Duration > max {
		return field.ErrorList{field.Invalid(path, value.Duration.String(), fmt.Sprintf("must be between %s and %s, inclusive", min, max))}
	}
	return nil
}

func validateLength(path *field.Path, length, max int, of string) field.ErrorList {
	if length == 0 {
		return field.ErrorList{field.Required(path, fmt.Sprintf("1 to %d %s", max, of))}
	}
	if length > max {
		return field.ErrorList{field.TooMany(path, length, max)}
	}
	return nil
}

// validateUnique returns an error if a value is in seen, and adds it.
func validateUnique(path *field.Path, value string, seen sets.String) field.ErrorList {
	if seen.Has(value) {
		return field.ErrorList{field.Duplicate(path, value)}
	}
	seen.Insert(value)
	return nil
}

func validateNamespaces(path *field.Path, namespaces []string) field.ErrorList {
	var errs field.ErrorList
	seen := sets.NewString()
	for i, namespace := range namespaces {
		errs = append(errs, corevalidation.ValidateDNS1123Label(namespace, path.Index(i))...)
		errs = append(errs, validateUnique(path.Index(i), namespace, seen)...)
	}
	return errs
}

// validateSelector checks an optional label selector. Upstream's own check omits the values of expressions: errors in
// them would be found when the plugin is created, without their path and one at a time.
func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	errs := metav1validation.ValidateLabelSelector(selector, path)
	for i := range selector.MatchExpressions {
		valuesPath := path.Child("matchExpressions").Index(i).Child("values")
		for j, value := range selector.MatchExpressions[i].Values {
			errs = append(errs, validateLabelValue(valuesPath.Index(j), value)...)
		}
	}
	return errs
}

// validateRule checks the common fields of rules. Actions other than Allow and Deny may be added.
func validateRule(path *field.Path, name string, action config.FilterAction, seen sets.String, more ...config.FilterAction) field.ErrorList {
	errs := corevalidation.ValidateDNS1123Label(name, path.Child("name"))
	errs = append(errs, validateUnique(path.Child("name"), name, seen)...)
	return append(errs, validateAction(path.Child("action"), action, more...)...)
}

func validateAction(path *field.Path, action config.FilterAction, more ...config.FilterAction) field.ErrorList {
	supported := []string{string(config.FilterAllow), string(config.FilterDeny)}
	for _, one := range more {
		supported = append(supported, string(one))
	}
	return validateOneOf(path, string(action), supported...)
}

// patternSyntax is the syntax of path.Match with the characters of names, because other characters match no name.
var patternSyntax = regexp.MustCompile(`^([a-z0-9.*?-]|\[\^?[a-z0-9.-]+\])+$`)

// validatePatterns checks that each pattern is valid and can match a name.
func validatePatterns(path *field.Path, patterns []string) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range patterns {
		_, err := pathpkg.Match(pattern, "")
		if err != nil || !patternSyntax.MatchString(pattern) || len(pattern) > validation.DNS1123SubdomainMaxLength {
			errs = append(errs, field.Invalid(path.Index(i), pattern, fmt.Sprintf("must be 1 to %d lower case letters, digits, '-', '.', "+
				"'*' (any text), '?' (any character) and classes such as [a-f0-9] or [^0-9] (one character)", validation.DNS1123SubdomainMaxLength)))
		}
	}
	return errs
}
