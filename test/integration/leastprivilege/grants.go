// SPDX-License-Identifier: Apache-2.0

package leastprivilege

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// Grant is the smallest part of a rule: one verb on one resource.
type Grant struct {
	// Role is where it stands: "ClusterRole my-scheduler".
	Role string
	Verb string
	// Group, Resource and Path are as in Request.
	Group, Resource, Path string
	// Namespace is the only one in which it holds; empty is everywhere.
	Namespace string
	// Name is the only object for which it holds; empty is all.
	Name string
}

// String says the grant in words.
func (g Grant) String() string {
	if g.Path != "" {
		return g.Verb + " " + g.Path
	}
	return g.Verb + " " + describe(g.Group, g.Resource, g.Namespace, g.Name)
}

// covers tells whether the grant is a reason to allow a request. Wildcards and parts of paths are not looked into: what
// is granted has to be said, else it cannot be measured.
func (g Grant) covers(request Request) bool {
	return g.Verb == request.Verb && g.Group == request.Group && g.Resource == request.Resource && g.Path == request.Path &&
		(g.Namespace == "" || g.Namespace == request.Namespace) && (g.Name == "" || g.Name == request.Name)
}

// ServiceAccount names a service account.
type ServiceAccount struct{ Namespace, Name string }

// User is the name under which the API server knows it.
func (s ServiceAccount) User() string { return "system:serviceaccount:" + s.Namespace + ":" + s.Name }

// ReadGrants gives what the roles in a stream of manifests grant to a service account through the bindings in the same
// stream. Other kinds are passed over. It refuses bindings whose effect the manifests alone do not tell: to somebody
// else, or of a role that is not there or that is put together from others.
func ReadGrants(manifests io.Reader, account ServiceAccount) ([]Grant, error) {
	type roleKey struct{ kind, namespace, name string }
	rules := map[roleKey][]rbacv1.PolicyRule{}
	type binding struct {
		name      string
		role      roleKey
		namespace string
		subjects  []rbacv1.Subject
	}
	var bindings []binding
	err := eachObject(manifests, func(object runtime.Object) error {
		switch object := object.(type) {
		case *rbacv1.ClusterRole:
			if object.AggregationRule != nil {
				return fmt.Errorf("the ClusterRole %s is put together from others; next: write its rules out", object.Name)
			}
			rules[roleKey{"ClusterRole", "", object.Name}] = object.Rules
		case *rbacv1.Role:
			rules[roleKey{"Role", object.Namespace, object.Name}] = object.Rules
		case *rbacv1.ClusterRoleBinding:
			bindings = append(bindings, binding{
				"ClusterRoleBinding " + object.Name, roleKey{object.RoleRef.Kind, "", object.RoleRef.Name}, "", object.Subjects,
			})
		case *rbacv1.RoleBinding:
			role := roleKey{object.RoleRef.Kind, "", object.RoleRef.Name}
			if role.kind == "Role" {
				role.namespace = object.Namespace
			}
			bindings = append(bindings, binding{"RoleBinding " + object.Name, role, object.Namespace, object.Subjects})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var grants []Grant
	for _, binding := range bindings {
		want := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
		if !slices.Equal(binding.subjects, []rbacv1.Subject{want}) {
			return nil, fmt.Errorf("the %s is for %v; next: make the ServiceAccount %s/%s its only subject",
				binding.name, binding.subjects, account.Namespace, account.Name)
		}
		bound, there := rules[binding.role]
		if !there {
			return nil, fmt.Errorf("the %s is of the %s %s, which the manifests do not have; "+
				"next: write its rules out in a role beside it",
				binding.name, binding.role.kind, binding.role.name)
		}
		role := strings.TrimSpace(binding.role.kind + " " + binding.role.name)
		for _, rule := range bound {
			grants = append(grants, grantsOf(role, binding.namespace, rule)...)
		}
	}
	return grants, nil
}

// grantsOf takes a rule apart.
func grantsOf(role, namespace string, rule rbacv1.PolicyRule) []Grant {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var grants []Grant
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			grants = append(grants, Grant{Role: role, Verb: verb, Path: path})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					grants = append(grants, Grant{
						Role: role, Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name,
					})
				}
			}
		}
	}
	return grants
}

// eachObject decodes the documents of a stream of manifests; kinds that are not Kubernetes' own are passed over.
func eachObject(manifests io.Reader, visit func(runtime.Object) error) error {
	documents := yaml.NewYAMLReader(bufio.NewReader(manifests))
	decoder := scheme.Codecs.UniversalDeserializer()
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("document %d of the manifests: %w; next: correct it", number, err)
		}
		json, err := yaml.ToJSON(document)
		if err == nil && string(json) == "null" {
			continue
		}
		var object runtime.Object
		if err == nil {
			object, _, err = decoder.Decode(json, nil, nil)
		}
		if runtime.IsNotRegisteredError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("document %d of the manifests: %w; next: correct it", number, err)
		}
		if err := visit(object); err != nil {
			return err
		}
	}
}
