// SPDX-License-Identifier: Apache-2.0

package leastprivilege

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// grant is the smallest part of a rule: one verb on one resource, in one namespace or, if that is empty, everywhere.
type grant struct {
	role, namespace string
	rule            rbacv1.PolicyRule
}

func (g grant) String() string {
	return fmt.Sprintf("%s in %q: %s", g.role, g.namespace, describe(g.rule))
}

// describe returns a description of a rule with one verb.
func describe(rule rbacv1.PolicyRule) string {
	words := slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups, rule.ResourceNames, rule.NonResourceURLs)
	return strings.Join(words, " ")
}

// grants returns the account's grants in the API server's bindings that name it, including bindings outside the base.
// These, and the bindings of the base, must be for this account alone.
func (s *stand) grants(t *testing.T) []grant {
	t.Helper()
	rbac, all := s.Client().RbacV1(), metav1.ListOptions{}
	clusterBindings, err := rbac.ClusterRoleBindings().List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	bindings, err := rbac.RoleBindings(metav1.NamespaceAll).List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range clusterBindings.Items {
		meta := metav1.ObjectMeta{Name: binding.Name}
		everywhere := rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: binding.RoleRef, Subjects: binding.Subjects}
		bindings.Items = append(bindings.Items, everywhere)
	}
	var grants []grant
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	for _, binding := range bindings.Items {
		if bound := slices.Contains(binding.Subjects, subject); !bound && binding.Name != schedulerName {
			continue
		} else if !bound || len(binding.Subjects) > 1 {
			t.Errorf("the binding %s in %q is for %v; next: bind %s, and nothing else",
				binding.Name, binding.Namespace, binding.Subjects, account.User())
		}
		var rules []rbacv1.PolicyRule
		if binding.RoleRef.Kind == "Role" {
			role, err := rbac.Roles(binding.Namespace).Get(t.Context(), binding.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rules = role.Rules
		} else {
			role, err := rbac.ClusterRoles().Get(t.Context(), binding.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rules = role.Rules
		}
		for _, rule := range rules {
			for _, part := range validation.BreakdownRule(rule) {
				role := binding.RoleRef.Kind + " " + binding.RoleRef.Name
				grants = append(grants, grant{role, binding.Namespace, part})
			}
		}
	}
	return grants
}

// request is an authorization request to the API server, as the minimal rule that would allow it.
type request struct {
	verb, group, resource, name, path string
	namespace                         string
	allowed                           bool
}

func (r request) String() string { return fmt.Sprintf("%s in %q", describe(r.rule()), r.namespace) }

func (r request) rule() rbacv1.PolicyRule {
	if r.path != "" {
		return rbacv1.PolicyRule{Verbs: []string{r.verb}, NonResourceURLs: []string{r.path}}
	}
	rule := rbacv1.PolicyRule{Verbs: []string{r.verb}, APIGroups: []string{r.group}, Resources: []string{r.resource}}
	if r.name != "" {
		rule.ResourceNames = []string{r.name}
	}
	return rule
}

// requests returns the account's requests in the audit log, each once,
// except those that never reached the authorizer (too many requests).
func requests(log []auditv1.Event) []request {
	asked := map[request]bool{}
	for _, event := range log {
		decision := event.Annotations["authorization.k8s.io/decision"]
		if event.User.Username != account.User() || decision == "" {
			continue
		}
		r := request{verb: event.Verb, allowed: decision == "allow"}
		if object := event.ObjectRef; object == nil {
			r.path, _, _ = strings.Cut(event.RequestURI, "?")
		} else {
			r.group, r.resource, r.namespace, r.name = object.APIGroup, object.Resource, object.Namespace, object.Name
			if object.Subresource != "" {
				r.resource += "/" + object.Subresource
			} else if event.Verb == "create" {
				r.name = "" // the log has the name from the response
			}
		}
		asked[r] = true
	}
	return slices.SortedFunc(maps.Keys(asked), func(a, b request) int {
		return strings.Compare(a.String(), b.String())
	})
}

// covered reports whether one of the grants allows a request.
func covered(r request, grants []grant) bool {
	var holding []rbacv1.PolicyRule
	for _, grant := range grants {
		if grant.namespace == "" || grant.namespace == r.namespace {
			holding = append(holding, grant.rule)
		}
	}
	well, _ := validation.Covers(holding, []rbacv1.PolicyRule{r.rule()})
	return well
}

// compare reports missing and unused grants.
func compare(grants []grant, requests []request) (findings []string) {
	for _, r := range requests {
		switch {
		case !r.allowed:
			findings = append(findings, r.String()+": it was asked for and refused; "+
				"next: grant it, or see to it that no code asks")
		case r.path != "":
			// Every user may discover the APIs.
		case !covered(r, grants):
			findings = append(findings, r.String()+": it was allowed, but not by these rules; next: grant it: "+
				"on another cluster it may be refused")
		}
	}
	for i, grant := range grants {
		namespaces, names := map[string]bool{}, map[string]bool{}
		missed := false
		others := slices.Delete(slices.Clone(grants), i, i+1)
		for _, r := range requests {
			if covered(r, grants[i:i+1]) {
				namespaces[r.namespace], names[r.name] = true, true
				missed = missed || !covered(r, others)
			}
		}
		switch {
		case strings.Contains(describe(grant.rule), "*"):
			findings = append(findings, grant.String()+": a wildcard grants what is not used; "+
				"next: name what it stands for")
		case !missed:
			findings = append(findings, grant.String()+": it was never used, or another rule grants all of it that was; "+
				"next: take it out of the role, or let the test use it")
		case grant.namespace == "" && len(namespaces) == 1 && !namespaces[""]:
			findings = append(findings, grant.String()+": it holds everywhere, and was only used in one namespace; "+
				"next: move it to a Role there, or let the test use it elsewhere too")
		case len(grant.rule.ResourceNames) == 0 && len(names) == 1 && !names[""]:
			findings = append(findings, grant.String()+": it holds for all objects, and was only used for one; "+
				"next: give the rule resourceNames, or let the test use it for another too")
		}
	}
	return findings
}
