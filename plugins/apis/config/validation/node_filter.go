// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// maxRuleWeight is the largest weight of upstream's preferred terms.
const maxRuleWeight = 100

// ValidateNodeFilterArgs checks that there are 1 to 100 rules, each with a unique name, a condition for nodes, and the
// fields of its action.
func ValidateNodeFilterArgs(path *field.Path, args *config.NodeFilterArgs) error {
	rulesPath := path.Child("rules")
	errs := validateLength(rulesPath, len(args.Rules), maxRules, "rules")
	seen := sets.NewString()
	for i := range args.Rules {
		rule, rulePath := &args.Rules[i], rulesPath.Index(i)
		errs = append(errs, validateRule(rulePath, rule.Name, rule.Action, seen, config.FilterPrefer, config.FilterShare)...)
		errs = append(errs, validatePatterns(rulePath.Child("nodeNames"), rule.NodeNames)...)
		errs = append(errs, validateSelector(rule.NodeSelector, rulePath.Child("nodeSelector"))...)
		errs = append(errs, validatePatterns(rulePath.Child("namespaces"), rule.Namespaces)...)
		errs = append(errs, validateSelector(rule.PodSelector, rulePath.Child("podSelector"))...)
		if len(rule.NodeNames) == 0 && rule.NodeSelector == nil {
			errs = append(errs, field.Required(rulePath, "at least one of nodeNames and nodeSelector; for rules about pods only, use the plugin PodFilter"))
		}
		errs = append(errs, validateWeight(rulePath, rule)...)
		errs = append(errs, validateShare(rulePath, rule)...)
		if rule.RestrictedLabels {
			errs = append(errs, validateRestrictedLabels(rulePath, rule)...)
		}
	}
	errs = append(errs, validateAction(path.Child("defaultAction"), args.DefaultAction)...)
	return errs.ToAggregate()
}

func validateWeight(path *field.Path, rule *config.NodeFilterRule) field.ErrorList {
	path = path.Child("weight")
	switch {
	case rule.Action != config.FilterPrefer && rule.Weight != 0:
		return field.ErrorList{field.Forbidden(path, "only rules with the action Prefer have a weight")}
	case rule.Action == config.FilterPrefer && rule.Weight == 0:
		return field.ErrorList{field.Required(path, fmt.Sprintf("1 to %d, with the action Prefer", maxRuleWeight))}
	case rule.Action == config.FilterPrefer:
		return validateRange(path, rule.Weight, 1, maxRuleWeight)
	}
	return nil
}

func validateShare(path *field.Path, rule *config.NodeFilterRule) field.ErrorList {
	var errs field.ErrorList
	isShare := rule.Action == config.FilterShare
	for _, bound := range []struct {
		name    string
		percent *int32
	}{{"minPercent", rule.MinPercent}, {"maxPercent", rule.MaxPercent}} {
		switch {
		case bound.percent == nil:
		case !isShare:
			errs = append(errs, field.Forbidden(path.Child(bound.name), "only rules with the action Share have it"))
		default:
			errs = append(errs, validateRange(path.Child(bound.name), *bound.percent, 0, 100)...)
		}
	}
	switch {
	case rule.WhenUnsatisfiable == "":
	case !isShare:
		errs = append(errs, field.Forbidden(path.Child("whenUnsatisfiable"), "only rules with the action Share have it"))
	default:
		errs = append(errs, validateOneOf(path.Child("whenUnsatisfiable"), string(rule.WhenUnsatisfiable),
			string(v1.DoNotSchedule), string(v1.ScheduleAnyway))...)
	}
	switch {
	case !isShare:
	case rule.MinPercent == nil && rule.MaxPercent == nil:
		errs = append(errs, field.Required(path, "at least one of minPercent and maxPercent, with the action Share"))
	case rule.MinPercent != nil && rule.MaxPercent != nil && *rule.MinPercent > *rule.MaxPercent:
		errs = append(errs, field.Invalid(path.Child("minPercent"), *rule.MinPercent, fmt.Sprintf("must be at most maxPercent, which is %d", *rule.MaxPercent)))
	}
	return errs
}

// validateRestrictedLabels checks that a rule depends only on labels that the admission plugin NodeRestriction does not
// allow kubelets to set, change and remove, even on their own nodes: labels with the prefix
// node-restriction.kubernetes.io/, or with a subdomain of it.
//
// NodeRestriction protects other labels of kubernetes.io and k8s.io too, except those in k8s.io/kubelet/pkg/apis:
// hostname, zone and region, instance type, operating system and architecture, and all of kubelet.kubernetes.io/ and
// node.kubernetes.io/. But only that prefix is reserved for this use, so the rule needs it. A kubelet may set all
// labels without a domain, or with another one (by --node-labels, or by an update of its node).
//
// A new node has none of these labels. So an Allow must require one: with DoesNotExist or NotIn it would match every
// new node before an administrator has checked it. For a Deny, that is safe.
//
// A kubelet cannot change the name of its node. But the name is chosen when the node joins, so a rule must not depend
// on it.
func validateRestrictedLabels(path *field.Path, rule *config.NodeFilterRule) field.ErrorList {
	var errs field.ErrorList
	if len(rule.NodeNames) > 0 {
		errs = append(errs, field.Forbidden(path.Child("nodeNames"), "not with restrictedLabels, because anyone who joins a node chooses its name"))
	}
	selectorPath := path.Child("nodeSelector")
	must := "must begin with " + v1.LabelNamespaceNodeRestriction + "/, because the rule has restrictedLabels; kubelets can set other labels"
	if rule.NodeSelector == nil || len(rule.NodeSelector.MatchLabels)+len(rule.NodeSelector.MatchExpressions) == 0 {
		return append(errs, field.Required(selectorPath, "at least one label with restrictedLabels"))
	}
	for _, key := range sets.StringKeySet(rule.NodeSelector.MatchLabels).List() {
		if !isRestricted(key) {
			errs = append(errs, field.Invalid(selectorPath.Child("matchLabels"), key, must))
		}
	}
	for i := range rule.NodeSelector.MatchExpressions {
		expression, expressionPath := &rule.NodeSelector.MatchExpressions[i], selectorPath.Child("matchExpressions").Index(i)
		if !isRestricted(expression.Key) {
			errs = append(errs, field.Invalid(expressionPath.Child("key"), expression.Key, must))
		}
		if isNegative(expression.Operator) && rule.Action == config.FilterAllow {
			errs = append(errs, field.Invalid(expressionPath.Child("operator"), expression.Operator,
				"must be In or Exists in a rule with the action Allow and restrictedLabels; a node that has just joined has no such label, and would be allowed"))
		}
	}
	return errs
}

// isNegative reports whether an operator matches nodes without the label.
func isNegative(operator metav1.LabelSelectorOperator) bool {
	return operator == metav1.LabelSelectorOpNotIn || operator == metav1.LabelSelectorOpDoesNotExist
}

func isRestricted(key string) bool {
	domain := strings.SplitN(key, "/", 2)[0]
	return strings.Contains(key, "/") &&
		(domain == v1.LabelNamespaceNodeRestriction || strings.HasSuffix(domain, "."+v1.LabelNamespaceNodeRestriction))
}

// KubeletLabels returns the keys of a node selector that NodeRestriction allows a kubelet to set on its own node, each
// once.
func KubeletLabels(selector *metav1.LabelSelector) []string {
	keys := sets.String{}
	if selector == nil {
		return nil
	}
	for key := range selector.MatchLabels {
		keys.Insert(key)
	}
	for i := range selector.MatchExpressions {
		keys.Insert(selector.MatchExpressions[i].Key)
	}
	var settable []string
	for _, key := range keys.List() {
		if kubeletCanSet(key) {
			settable = append(settable, key)
		}
	}
	return settable
}

// ofKubelets are the labels of kubernetes.io and k8s.io that NodeRestriction allows a kubelet to set, from
// k8s.io/kubelet/pkg/apis of v1.23.
var ofKubelets = sets.NewString(
	v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceType, v1.LabelInstanceTypeStable, v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
)

func kubeletCanSet(key string) bool {
	if isRestricted(key) {
		return false
	}
	if ofKubelets.Has(key) || !strings.Contains(key, "/") {
		return true
	}
	// The kubelet's own domains are subdomains of these.
	domain := "." + strings.SplitN(key, "/", 2)[0]
	for _, its := range []string{v1.LabelNamespaceSuffixKubelet, v1.LabelNamespaceSuffixNode} {
		if strings.HasSuffix(domain, "."+its) {
			return true
		}
	}
	return !strings.HasSuffix(domain, ".kubernetes.io") && !strings.HasSuffix(domain, ".k8s.io")
}
