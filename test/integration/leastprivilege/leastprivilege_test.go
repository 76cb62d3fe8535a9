// SPDX-License-Identifier: Apache-2.0

package leastprivilege

import (
	"maps"
	"reflect"
	"strings"
	"testing"
)

// The account of all tests, and a line of an audit log of its.
var account = ServiceAccount{Namespace: "kube-system", Name: "my-scheduler"}

// line is an event as the API server writes it; more are further fields, each with a comma before it.
func line(id, verb, more, decided string) string {
	return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"` + id + `",` +
		`"stage":"ResponseComplete","requestURI":"/somewhere?watch=true","verb":"` + verb + `","user":{"username":"` + account.User() + `"}` + more +
		`,"annotations":{"authorization.k8s.io/decision":"` + decided + `"}}` + "\n"
}

// object is the field that says what a request was about.
func object(fields string) string { return `,"objectRef":{` + fields + `}` }

func TestAuditLogTellsWhatTheAuthorizerWasAsked(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		want Usage
	}{
		"a list of everything, and once more": {
			line("1", "list", object(`"resource":"pods","apiVersion":"v1"`), "allow") +
				line("2", "list", object(`"resource":"pods","apiVersion":"v1"`), "allow"),
			Usage{{Verb: "list", Resource: "pods", Allowed: true}: 2},
		},
		"a watch that began and ended": {
			strings.ReplaceAll(line("1", "watch", object(`"resource":"pods"`), "allow"), "ResponseComplete", "ResponseStarted") +
				line("1", "watch", object(`"resource":"pods"`), "allow"),
			Usage{{Verb: "watch", Resource: "pods", Allowed: true}: 1},
		},
		"one object": {
			line("1", "update", object(`"resource":"leases","namespace":"a","name":"x","apiGroup":"coordination.k8s.io"`), "allow"),
			Usage{{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "a", Name: "x", Allowed: true}: 1},
		},
		"a new object, whose name the authorizer did not know": {
			line("1", "create", object(`"resource":"events","namespace":"a","name":"x"`), "allow"),
			Usage{{Verb: "create", Resource: "events", Namespace: "a", Allowed: true}: 1},
		},
		"a part of an object, whose name it did know": {
			line("1", "create", object(`"resource":"pods","subresource":"binding","namespace":"a","name":"x"`), "allow"),
			Usage{{Verb: "create", Resource: "pods/binding", Namespace: "a", Name: "x", Allowed: true}: 1},
		},
		"a refusal": {
			line("1", "get", object(`"resource":"secrets","namespace":"a","name":"x"`), "forbid"),
			Usage{{Verb: "get", Resource: "secrets", Namespace: "a", Name: "x"}: 1},
		},
		"a path": {line("1", "get", "", "allow"), Usage{{Verb: "get", Path: "/somewhere", Allowed: true}: 1}},
		"somebody else": {
			strings.ReplaceAll(line("1", "list", object(`"resource":"pods"`), "allow"), account.User(), "system:apiserver"), Usage{},
		},
		"one that the authorizer never saw": {line("1", "list", object(`"resource":"pods"`), ""), Usage{}},
		"an empty line, and half a line at the end": {
			"\n" + strings.TrimSuffix(line("1", "list", object(`"resource":"pods"`), "allow"), "}\n"), Usage{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadAudit(strings.NewReader(test.log), account.User())
			if err != nil || !maps.Equal(got, test.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestFileThatIsNoAuditLogIsRefusedWithTheNextStep(t *testing.T) {
	for name, log := range map[string]string{
		"no JSON":         "I1120 22:24:00 started\n",
		"another kind":    `{"kind":"Pod","apiVersion":"v1"}` + "\n",
		"another version": `{"kind":"Event","apiVersion":"audit.k8s.io/v1beta1"}` + "\n",
	} {
		if _, err := ReadAudit(strings.NewReader(log), "u"); err == nil || !strings.Contains(err.Error(), "; next: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const (
	clusterBinding = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: my-scheduler}]
`
	clusterRole = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules:
- {apiGroups: ["", apps], resources: [one, two], verbs: [list]}
- {nonResourceURLs: [/metrics], verbs: [get]}
`
	role = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: kube-system}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [a, b], verbs: [get]}
`
	roleBinding = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: my-scheduler}]
`
	// foreign is of a kind that nobody here knows.
	foreign = "\n---\napiVersion: example.com/v1\nkind: Thing\n"
)

func TestGrantsAreTheSmallestPartsOfTheBoundRules(t *testing.T) {
	const inCluster, inNamespace = "ClusterRole r", "Role r"
	for name, test := range map[string]struct {
		manifests string
		want      []Grant
	}{
		"everywhere": {clusterRole + foreign + clusterBinding, []Grant{
			{Role: inCluster, Verb: "list", Resource: "one"},
			{Role: inCluster, Verb: "list", Resource: "two"},
			{Role: inCluster, Verb: "list", Group: "apps", Resource: "one"},
			{Role: inCluster, Verb: "list", Group: "apps", Resource: "two"},
			{Role: inCluster, Verb: "get", Path: "/metrics"},
		}},
		"in a namespace": {roleBinding + role, []Grant{
			{Role: inNamespace, Verb: "get", Resource: "configmaps", Namespace: "kube-system", Name: "a"},
			{Role: inNamespace, Verb: "get", Resource: "configmaps", Namespace: "kube-system", Name: "b"},
		}},
		"a role that nobody binds": {clusterRole, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadGrants(strings.NewReader(test.manifests), account)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestClusterRoleBoundInANamespaceGrantsThereOnly(t *testing.T) {
	binding := strings.ReplaceAll(roleBinding, "kind: Role,", "kind: ClusterRole,")
	grants, err := ReadGrants(strings.NewReader(clusterRole+binding), account)
	if err != nil || len(grants) == 0 || grants[0].Namespace != "kube-system" {
		t.Errorf("got %+v, %v", grants, err)
	}
}

func TestBindingsWhoseEffectTheManifestsDoNotTellAreRefused(t *testing.T) {
	for name, manifests := range map[string]string{
		"a role that is elsewhere": clusterBinding,
		"somebody else":            clusterRole + strings.ReplaceAll(clusterBinding, "name: my-scheduler", "name: default"),
		"one more subject": clusterRole + strings.ReplaceAll(clusterBinding, "my-scheduler}",
			"my-scheduler}, {kind: Group, apiGroup: rbac.authorization.k8s.io, name: system:authenticated}"),
		"a role of the same name in another namespace": strings.ReplaceAll(role, "kube-system", "other") + roleBinding,
		"a role that is put together": strings.ReplaceAll(clusterRole, "rules:",
			"aggregationRule: {clusterRoleSelectors: [{}]}\nrules:") + clusterBinding,
	} {
		refuse(t, name, manifests)
	}
}

// refuse sees that manifests are refused and that the error says what is next.
func refuse(t *testing.T, name, manifests string) {
	t.Helper()
	grants, err := ReadGrants(strings.NewReader(manifests), account)
	if err == nil || !strings.Contains(err.Error(), "; next: ") {
		t.Errorf("%s: %+v, %v", name, grants, err)
	}
}

func TestManifestsThatCannotBeReadAreRefused(t *testing.T) {
	for name, manifests := range map[string]string{
		"no YAML":                 "{",
		"no kind":                 "apiVersion: v1\n",
		"a field of another type": strings.ReplaceAll(role, "verbs: [get]", "verbs: get"),
	} {
		refuse(t, name, manifests)
	}
}

func TestComparisonFindsWhatIsGrantedTooMuchAndWhatIsMissing(t *testing.T) {
	var (
		listPods   = Grant{Role: "ClusterRole r", Verb: "list", Resource: "pods"}
		listed     = Request{Verb: "list", Resource: "pods", Allowed: true}
		bindPods   = Grant{Role: "ClusterRole r", Verb: "create", Resource: "pods/binding"}
		bound      = Request{Verb: "create", Resource: "pods/binding", Namespace: "a", Name: "x", Allowed: true}
		readConfig = Grant{Role: "Role r", Verb: "get", Resource: "configmaps", Namespace: "a", Name: "x"}
		read       = Request{Verb: "get", Resource: "configmaps", Namespace: "a", Name: "x", Allowed: true}
		path       = Request{Verb: "get", Path: "/apis", Allowed: true}
	)
	in := func(request Request, namespace, name string) Request {
		request.Namespace, request.Name = namespace, name
		return request
	}
	refused := func(request Request) Request {
		request.Allowed = false
		return request
	}
	for name, test := range map[string]struct {
		grants   []Grant
		requests []Request
		// want are parts of the findings, in their order.
		want []string
	}{
		"what was used is granted, and nothing else": {
			[]Grant{listPods, bindPods, readConfig}, []Request{listed, bound, in(bound, "b", "y"), read, path}, nil,
		},
		"nothing at all": {nil, nil, nil},
		"never used": {
			[]Grant{listPods, readConfig}, []Request{listed}, []string{"Role r: get configmaps x in a: it was never used"},
		},
		"refused": {
			[]Grant{listPods}, []Request{listed, refused(read)}, []string{"get configmaps x in a: it was asked for and refused"},
		},
		"refused although granted, as before the rule was there": {
			[]Grant{readConfig}, []Request{refused(read)}, []string{"get configmaps x in a: it was asked for and refused"},
		},
		"a path refused": {nil, []Request{refused(path)}, []string{"get /apis: it was asked for and refused"}},
		"allowed by another role": {
			[]Grant{listPods}, []Request{listed, read}, []string{"get configmaps x in a: it was allowed, but not by these rules"},
		},
		"another name": {
			[]Grant{readConfig}, []Request{read, in(read, "a", "y")}, []string{"get configmaps y in a: it was allowed, but not by"},
		},
		"another namespace": {
			[]Grant{readConfig}, []Request{read, in(read, "b", "x")}, []string{"get configmaps x in b: it was allowed, but not by"},
		},
		"used in one namespace only": {
			[]Grant{bindPods}, []Request{bound, in(bound, "a", "y")},
			[]string{"create pods/binding: it holds everywhere, but was only used in a"},
		},
		"used for one name only": {
			[]Grant{bindPods}, []Request{bound, in(bound, "b", "x")},
			[]string{"create pods/binding: it holds for all objects, but was only used for x"},
		},
		"granted twice": {
			[]Grant{listPods, listPods}, []Request{listed},
			[]string{"list pods: another rule grants all of it", "list pods: another rule grants all of it"},
		},
		"granted everywhere and once more in a namespace": {
			[]Grant{bindPods, {Role: "Role r", Verb: "create", Resource: "pods/binding", Namespace: "a"}},
			[]Request{bound, in(bound, "b", "y")}, []string{"Role r: create pods/binding in a: another rule grants all of it"},
		},
		"a wildcard": {
			[]Grant{{Role: "ClusterRole r", Verb: "*", Resource: "pods"}}, []Request{listed},
			[]string{"list pods: it was allowed, but not by these rules", "ClusterRole r: * pods: a wildcard"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			usage := Usage{}
			for _, request := range test.requests {
				usage[request]++
			}
			c := Compare(test.grants, usage)
			var lines []string
			if err := c.Err(); err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(test.want) {
				t.Fatalf("findings: %q, want %q", lines, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(lines[i], want) || !strings.Contains(lines[i], "; next: ") {
					t.Errorf("finding %q, want %q and what is next", lines[i], want)
				}
			}
		})
	}
}

func TestTableCountsTheRequestsOfEachGrant(t *testing.T) {
	lease := Grant{Role: "Role r", Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "a", Name: "x"}
	c := Compare([]Grant{lease, {Role: "ClusterRole r", Verb: "list", Resource: "pods"}}, Usage{
		{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "a", Name: "x", Allowed: true}: 7,
		{Verb: "get", Path: "/apis", Allowed: true}:                                                               2,
	})
	var table strings.Builder
	if err := c.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	const want = "" +
		"RESOURCE                     VERB   WHERE        NAME   REQUESTS   GRANTED BY\n" +
		"pods                         list   everywhere   any    0          ClusterRole r\n" +
		"leases.coordination.k8s.io   get    a            x      7          Role r\n" +
		"/apis                        get                        2          (every user)\n"
	if table.String() != want {
		t.Errorf("got\n%swant\n%s", table.String(), want)
	}
}
