// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"kube-scheduler-fork/test/cluster"
)

const scheduler = "system:kube-scheduler"

// used makes each plugin use the whole API that it can use, by the name of the role that grants it.
var used = map[string]func(*testing.T, *stand){
	"kube-scheduler-capacity-scheduling": func(t *testing.T, s *stand) {
		s.createQuota(t, "rights", "cpu: 4, memory: 8Gi", "cpu: 4, memory: 8Gi")
		s.start(t, "quota.yaml")
		s.expectRoom(t, "rights", 4)
	},
	"kube-scheduler-coscheduling": func(t *testing.T, s *stand) {
		s.createGroup(t, "red")
		s.start(t, "gang.yaml")
		s.createMembers(t, "red")
		s.awaitBoundGang(t, "red")
	},
	"kube-scheduler-node-resource-topology-match": func(t *testing.T, s *stand) {
		s.createNodeWithZones(t, "with-zones", 8)
		s.start(t, "numa.yaml")
		s.AwaitBound(t, s.CreatePod(t, guaranteed("fits", "8")))
	},
	"kube-scheduler-preemption-toleration": func(t *testing.T, s *stand) {
		s.Create(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: important}, value: 1000}")
		s.start(t, "quota.yaml", "          - name: CapacityScheduling\n", "          - name: PreemptionToleration\n")
		s.AwaitBound(t, s.CreatePod(t, guaranteed("victim", "8")))
		important := guaranteed("important", "8")
		important.Spec.PriorityClassName = "important"
		s.AwaitBound(t, s.CreatePod(t, important))
		s.Await(t, "the victim to be gone", func() error {
			_, err := s.Pod(t, corev1.NamespaceDefault, "victim")
			if apierrors.IsNotFound(err) {
				return nil
			}
			return cluster.Unless(err != nil, "it is there: %v", err)
		})
	},
}

// The permissions are in addition to the role system:kube-scheduler. Each is removed first, and must then be missing;
// once granted, it must be used; and the scheduler must not request any other.
func TestPluginsAreAllowedWhatTheyUseAndNothingElse(t *testing.T) {
	roles := map[string][]rbacv1.PolicyRule{}
	files, err := filepath.Glob(rbac + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, use := range used {
		t.Run(strings.TrimPrefix(name, "kube-scheduler-"), func(t *testing.T) {
			s := newStand(t)
			// For most plugins one node is enough; a gang needs five.
			s.AddNodes(t, map[bool]int{true: nodes, false: 1}[name == "kube-scheduler-coscheduling"])
			role, err := s.Client().RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var grants []rbacv1.PolicyRule
			for _, rule := range role.Rules {
				grants = append(grants, validation.BreakdownRule(rule)...)
			}
			roles[name] = grants
			s.Kubectl(t, t.Context(), "delete", "clusterrolebinding", name)
			restore := func() { s.Kubectl(t, context.Background(), "apply", "-f", rbac) }
			t.Cleanup(restore)
			for _, grant := range grants {
				s.awaitVerdict(t, grant, false)
			}
			restore()
			for _, grant := range grants {
				s.awaitVerdict(t, grant, true)
			}
			use(t, s)
			s.expectUsed(t, name, grants)
		})
	}
	if len(files) != len(roles) || len(files) == 0 {
		t.Errorf("%d roles are looked at, and %v are there; next: use each of them", len(roles), files)
	}
}

// awaitVerdict waits until the API server allows or refuses the scheduler one verb on one resource.
func (s *stand) awaitVerdict(t *testing.T, grant rbacv1.PolicyRule, want bool) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: scheduler, Groups: []string{"system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: grant.Verbs[0], Group: grant.APIGroups[0], Resource: grant.Resources[0],
		},
	}}
	s.Await(t, fmt.Sprintf("the verdict %v about %s", want, describe(grant)), func() error {
		answer, err := s.Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return cluster.Unless(answer.Status.Allowed == want, "it is %v: %s", answer.Status.Allowed, answer.Status.Reason)
	})
}

func describe(grant rbacv1.PolicyRule) string {
	return strings.Join(slices.Concat(grant.Verbs, grant.Resources, grant.APIGroups), " ")
}

// expectUsed compares the scheduler's requests in the audit log with the grants of a role.
func (s *stand) expectUsed(t *testing.T, role string, grants []rbacv1.PolicyRule) {
	t.Helper()
	s.Await(t, "each grant of "+role+" to be used, and no other to be missed", func() error {
		missing := map[string]bool{}
		for _, grant := range grants {
			missing[describe(grant)] = true
		}
		for _, event := range s.Audit(t) {
			if event.User.Username != scheduler || event.ObjectRef == nil {
				continue
			}
			asked := strings.Join([]string{event.Verb, event.ObjectRef.Resource, event.ObjectRef.APIGroup}, " ")
			switch event.Annotations["authorization.k8s.io/decision"] {
			case "forbid":
				t.Fatalf("the scheduler asked for this, and was refused: %s; next: grant it in manifests/rbac", asked)
			case "allow":
				if strings.Contains(event.Annotations["authorization.k8s.io/reason"], `ClusterRole "`+role+`"`) {
					delete(missing, asked)
				}
			}
		}
		return cluster.Unless(len(missing) == 0, "not used: %v", missing)
	})
}
